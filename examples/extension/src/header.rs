//! The header of a `SKILL.md`: YAML between two lines of three hyphens.
//!
//! Why here: what the server says of a skill must be what clients find when they read the header themselves.
//! Invariants: everything the author wrote is kept; `name` and `description` are there and are texts.
//! Spec: skills extension, "Frontmatter"; Agent Skills specification, "SKILL.md format"

use serde_json::{Map, Value};
use serde_saphyr::{MergeKeyPolicy, budget, options};

/// The most bytes that a header may have.
pub const MAX_HEADER_BYTES: usize = 64 * 1024;

/// Why a `SKILL.md` has no usable header.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is not UTF-8.
    #[error("the file is no text")]
    NotText,
    /// The file does not begin with a header, or the header does not end.
    #[error("the file must begin with a line \"---\", the header, and another line \"---\"")]
    Missing,
    /// The header is longer than [`MAX_HEADER_BYTES`].
    #[error("the header has more than {MAX_HEADER_BYTES} bytes")]
    TooLong,
    /// The header is no mapping in YAML.
    #[error("the header cannot be read: {0}")]
    Yaml(String),
    /// A field that every skill has is not there, or does not fit.
    #[error("the field \"{field}\" must be {right}")]
    Field {
        /// The field.
        field: &'static str,
        /// What it has to be.
        right: &'static str,
    },
    /// A key of `metadata` that only extensions of the protocol may define.
    #[error("the key \"{0}\" of \"metadata\" is reserved")]
    Reserved(String),
}

/// The fields of the header.
pub(crate) fn read(file: &[u8]) -> Result<Map<String, Value>, HeaderError> {
    let text = std::str::from_utf8(file).map_err(|_| HeaderError::NotText)?;
    let yaml = cut(text).ok_or(HeaderError::Missing)?;
    if yaml.len() > MAX_HEADER_BYTES {
        return Err(HeaderError::TooLong);
    }
    let fields = parse(yaml)?;
    text_field(&fields, "name", "a text of 1 to 64 characters", 64)?;
    text_field(&fields, "description", "a text of 1 to 1,024 characters", 1024)?;
    if let Some(Value::Object(metadata)) = fields.get("metadata")
        && let Some(key) = metadata.keys().find(|key| key.starts_with("io.modelcontextprotocol/"))
    {
        return Err(HeaderError::Reserved(key.clone()));
    }
    Ok(fields)
}

/// What stands between the first line and the next one of three hyphens.
fn cut(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return rest.get(..end);
        }
        end += line.len();
    }
    None
}

/// YAML 1.2 as most programs read it: words such as `yes` are texts and `<<` is a key like any other. A header has no use
/// for anchors, with which a short one can say a long thing.
fn parse(yaml: &str) -> Result<Map<String, Value>, HeaderError> {
    let options = options! {
        budget: budget! { max_anchors: 0, max_aliases: 0, max_depth: 32 },
        merge_keys: MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
        reject_unsupported_tags: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|error| HeaderError::Yaml(error.to_string()))
}

fn text_field(
    fields: &Map<String, Value>,
    field: &'static str,
    right: &'static str,
    most: usize,
) -> Result<(), HeaderError> {
    let text = fields.get(field).and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if text.is_empty() || text.chars().count() > most {
        return Err(HeaderError::Field { field, right });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(yaml: &str) -> Result<Value, HeaderError> {
        read(format!("---\nname: a\ndescription: b\n{yaml}\n---\nText.\n").as_bytes()).map(Value::Object)
    }

    #[test]
    fn everything_the_author_wrote_is_kept_with_its_kind() {
        let yaml = "license: \"1.0\"\nversion: 1.5\ncount: 3\non: yes\nready: true\nnothing: ~\ndate: 2024-01-01\n\
                    allowed-tools: [a, b]\nmetadata:\n  author: \"x: y\"\n  <<: kept\nnote: >-\n  two\n  lines\n\
                    long: |\n  # no comment\n  end\n";
        let expected = json!({
            "name": "a", "description": "b", "license": "1.0", "version": 1.5, "count": 3, "on": "yes", "ready": true,
            "nothing": null, "date": "2024-01-01", "allowed-tools": ["a", "b"],
            "metadata": { "author": "x: y", "<<": "kept" }, "note": "two lines", "long": "# no comment\nend\n",
        });
        assert_eq!(fields(yaml).unwrap(), expected);
    }

    #[test]
    fn what_no_two_readers_would_read_alike_is_refused() {
        let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
        for yaml in ["name: again", "a: &x 1\nb: *x", "a: !own b", "a: [", "? [1]\n: 2", "\t- a", "a: .inf", &*deep] {
            assert!(matches!(fields(yaml), Err(HeaderError::Yaml(_))), "{yaml:?}: {:?}", fields(yaml));
        }
    }

    #[test]
    fn a_header_begins_the_file_and_ends() {
        let whole = "---\r\nname: a\r\ndescription: b\r\n---  \r\n\r\n---\r\n";
        assert!(read(whole.as_bytes()).is_ok());
        assert!(read(format!("\u{feff}{whole}").as_bytes()).is_ok());
        assert!(read(b"---\nname: a\ndescription: b\n---").is_ok());
        for bad in ["", "---", "---\n", "---\nname: a", "name: a\n---\n", "\n---\n---\n", "----\n---\n"] {
            assert!(matches!(read(bad.as_bytes()), Err(HeaderError::Missing)), "{bad:?}");
        }
        assert!(matches!(read(b"---\nname: \xff\n---\n"), Err(HeaderError::NotText)));
        let long = format!("a: {}", "x".repeat(MAX_HEADER_BYTES));
        assert!(matches!(fields(&long), Err(HeaderError::TooLong)));
    }

    #[test]
    fn name_and_description_are_texts_and_reserved_keys_are_refused() {
        for header in ["name: a", "description: b", "name: 1\ndescription: b", "name: a\ndescription: ' '", "[a]", "a"]
        {
            let read = read(format!("---\n{header}\n---\n").as_bytes());
            assert!(matches!(read, Err(HeaderError::Field { .. } | HeaderError::Yaml(_))), "{header}: {read:?}");
        }
        assert!(fields("metadata: {other/x: 1}").is_ok());
        assert!(matches!(fields("metadata: {io.modelcontextprotocol/x: 1}"), Err(HeaderError::Reserved(_))));
    }

    proptest::proptest! {
        #[test]
        fn no_file_makes_it_panic(text in "(---\r?\n)?[\\PC\n\t]{0,60}(\n---)?") {
            let _ = read(text.as_bytes());
        }
    }
}
