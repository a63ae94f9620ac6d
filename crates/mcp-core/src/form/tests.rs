//! Forms from every source, and the answers to them.
//!
//! Why here: deriving, reading, building and checking are one promise about the same few forms.
//! Invariants: whatever makes a form, its JSON reads back as the same form.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn assert_round_trip(form: &FormSchema) {
    let again = FormSchema::from_value(&form.as_value()).unwrap();
    assert_eq!(again.as_value(), form.as_value());
    assert_eq!(serde_json::to_value(form).unwrap(), form.as_value());
}

fn one_field(schema: &Value) -> Result<FormSchema, FormError> {
    FormSchema::from_value(&json!({"type": "object", "properties": {"f": schema}}))
}

fn complaints(form: &FormSchema, content: &Value) -> Vec<(String, String)> {
    let violations = form.check(content.as_object().unwrap()).err().unwrap_or_default();
    violations.into_iter().map(|violation| (violation.path, violation.reason)).collect()
}

#[cfg(feature = "schemars")]
mod derived {
    use std::collections::{BTreeSet, HashMap};

    use schemars::JsonSchema;
    use serde::Serialize;

    use super::*;

    #[derive(JsonSchema, Serialize, Default)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only the schema of the type is used")]
    enum Plain {
        #[default]
        RedWine,
        Beer,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema of the type is used")]
    enum Titled {
        /// By train
        Train,
        #[schemars(title = "On foot")]
        Foot,
        Car,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema of the type is used")]
    enum Payload {
        A(u8),
        B,
    }

    /// Not part of the form.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema of the type is used")]
    struct Everything {
        /// Who comes
        #[schemars(title = "Name", length(min = 1, max = 10))]
        name: String,
        #[schemars(extend("format" = "email"))]
        mail: Option<String>,
        #[serde(default)]
        small: u8,
        #[schemars(range(min = 1, max = 5))]
        stars: i32,
        weight: Option<f64>,
        /// Sure?
        sure: bool,
        #[serde(default)]
        news: bool,
        #[serde(default)]
        drink: Plain,
        /// How to travel
        travel: Titled,
        back: Option<Titled>,
        #[schemars(length(min = 1, max = 2))]
        drinks: Vec<Plain>,
        ways: Option<Vec<Titled>>,
        #[serde(default)]
        set: BTreeSet<String2>,
        note: Option<String>,
    }

    #[derive(JsonSchema, Serialize, PartialEq, Eq, PartialOrd, Ord)]
    #[expect(dead_code, reason = "only the schema of the type is used")]
    enum String2 {
        Only,
    }

    #[test]
    fn a_struct_becomes_a_form_of_the_allowed_kinds() {
        let form = FormSchema::of::<Everything>().unwrap();
        let titled = json!([
            {"const": "Car", "title": "Car"}, {"const": "Train", "title": "By train"}, {"const": "Foot", "title": "On foot"},
        ]);
        assert_eq!(
            form.as_value(),
            json!({
                "type": "object",
                "required": ["name", "stars", "sure", "travel", "drinks"],
                "properties": {
                    "name": {"type": "string", "title": "Name", "description": "Who comes", "minLength": 1, "maxLength": 10},
                    "mail": {"type": "string", "format": "email"},
                    "small": {"type": "integer", "minimum": 0, "maximum": 255, "default": 0},
                    "stars": {"type": "integer", "minimum": 1, "maximum": 5},
                    "weight": {"type": "number"},
                    "sure": {"type": "boolean", "description": "Sure?"},
                    "news": {"type": "boolean", "default": false},
                    "drink": {"type": "string", "enum": ["red_wine", "beer"], "default": "red_wine"},
                    "travel": {"type": "string", "description": "How to travel", "oneOf": titled},
                    "back": {"type": "string", "oneOf": titled},
                    "drinks": {"type": "array", "items": {"type": "string", "enum": ["red_wine", "beer"]},
                        "minItems": 1, "maxItems": 2},
                    "ways": {"type": "array", "items": {"anyOf": titled}},
                    "set": {"type": "array", "items": {"type": "string", "enum": ["Only"]}, "default": []},
                    "note": {"type": "string"},
                },
            })
        );
        assert_round_trip(&form);
    }

    #[test]
    fn required_fields_come_first_in_their_order() {
        let text = serde_json::to_string(&FormSchema::of::<Everything>().unwrap()).unwrap();
        let place = |name: &str| text.find(&format!("\"{name}\":{{")).unwrap();
        let places = ["name", "stars", "sure", "travel", "drinks", "back"].map(place);
        assert!(places.is_sorted(), "{text}");
    }

    macro_rules! assert_refused {
        ($kind:ty) => {{
            #[derive(JsonSchema)]
            #[expect(dead_code, reason = "only the schema of the type is used")]
            struct Form {
                fine: String,
                bad: $kind,
            }
            let error = FormSchema::of::<Form>().unwrap_err();
            assert!(matches!(&error, FormError::Field { field, .. } if field == "bad"), "{error}");
        }};
    }

    #[test]
    fn what_no_form_can_hold_is_refused_by_the_name_of_its_field() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema of the type is used")]
        struct Nested {
            inner: String,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema of the type is used")]
        struct Recursive(Option<Box<Self>>);
        assert_refused!(Nested);
        assert_refused!(Option<Nested>);
        assert_refused!(Vec<f64>);
        assert_refused!(Vec<String>);
        assert_refused!(Vec<Option<Plain>>);
        assert_refused!(Vec<Vec<Plain>>);
        assert_refused!(HashMap<String, String>);
        assert_refused!((String, u8));
        assert_refused!([u8; 2]);
        assert_refused!(Payload);
        assert_refused!(());
        assert_refused!(Value);
        assert_refused!(Recursive);
    }

    #[test]
    fn what_a_form_cannot_say_about_a_text_is_refused() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema of the type is used")]
        struct Form {
            #[schemars(regex(pattern = "^a"))]
            bad: String,
        }
        let error = FormSchema::of::<Form>().unwrap_err().to_string();
        assert!(error.contains("`bad`") && error.contains("`pattern`"), "{error}");
    }

    #[test]
    fn only_structs_with_named_fields_are_forms() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only the schema of the type is used")]
        struct Open {
            #[serde(flatten)]
            rest: HashMap<String, u8>,
            name: String,
        }
        for error in [
            FormSchema::of::<String>().unwrap_err(),
            FormSchema::of::<Plain>().unwrap_err(),
            FormSchema::of::<Payload>().unwrap_err(),
            FormSchema::of::<Vec<Plain>>().unwrap_err(),
        ] {
            assert!(matches!(error, FormError::Root { .. }), "{error}");
        }
        // Members that nobody named are tolerated in answers anyway.
        assert!(FormSchema::of::<Open>().is_ok());
    }
}

#[test]
fn the_five_forms_of_enums_are_read_and_written_alike() {
    let schema = json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2"], "default": "option2"},
        "titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First"}]},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}, "minItems": 1,
            "maxItems": 2, "default": ["option1"]},
        "titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First"}]}},
    }, "required": ["titledMulti"]});
    let form = FormSchema::from_value(&schema).unwrap();
    assert_eq!(form.as_value(), schema);
    assert_round_trip(&form);
    let answer = json!({"untitledSingle": "option1", "titledSingle": "value1", "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"], "titledMulti": ["value1"]});
    assert_eq!(complaints(&form, &answer), []);
}

#[test]
fn the_object_around_the_fields_is_read_strictly() {
    for bad in [
        json!([]),
        json!({}),
        json!({"type": "object"}),
        json!({"properties": {}}),
        json!({"type": "array", "properties": {}}),
        json!({"type": "object", "properties": []}),
        json!({"type": "object", "properties": {}, "required": "a"}),
        json!({"type": "object", "properties": {}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "a"]}),
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        json!({"type": "object", "properties": {}, "$schema": 1}),
    ] {
        assert!(matches!(FormSchema::from_value(&bad), Err(FormError::Root { .. })), "{bad}");
    }
    let empty = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}});
    assert!(FormSchema::from_value(&empty).is_ok());
}

#[test]
fn fields_outside_the_allowed_forms_are_refused() {
    for bad in [
        json!(true),
        json!({}),
        json!({"type": "null"}),
        json!({"type": ["string", "null"]}),
        json!({"type": "object", "properties": {}}),
        json!({"type": "string", "pattern": "a"}),
        json!({"type": "string", "format": "uuid"}),
        json!({"type": "string", "minLength": -1}),
        json!({"type": "string", "minLength": 1.5}),
        json!({"type": "string", "minLength": 3, "maxLength": 2}),
        json!({"type": "string", "title": 1}),
        json!({"type": "string", "minimum": 1}),
        json!({"type": "string", "default": 1}),
        json!({"type": "string", "maxLength": 1, "default": "ab"}),
        json!({"type": "string", "format": "date", "default": "soon"}),
        json!({"type": "integer", "minimum": 3, "maximum": 2}),
        json!({"type": "integer", "default": 1.5}),
        json!({"type": "integer", "minimum": 1, "default": 0}),
        json!({"type": "number", "exclusiveMinimum": 1}),
        json!({"type": "boolean", "default": "yes"}),
        json!({"type": "boolean", "enum": [true]}),
        json!({"type": "string", "enum": []}),
        json!({"type": "string", "enum": ["a", "a"]}),
        json!({"type": "string", "enum": [1]}),
        json!({"type": "string", "enum": ["a"], "default": "b"}),
        json!({"type": "string", "enum": ["a"], "maxLength": 1}),
        json!({"type": "string", "enum": ["a"], "enumNames": []}),
        json!({"type": "string", "enum": ["a"], "oneOf": [{"const": "a", "title": "A"}]}),
        json!({"type": "string", "enumNames": ["A"]}),
        json!({"type": "string", "oneOf": [{"const": "a"}]}),
        json!({"type": "string", "oneOf": [{"const": "a", "title": "A", "description": "no"}]}),
        json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "a", "title": "B"}]}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "array", "items": {"type": "number", "enum": ["a"]}}),
        json!({"type": "array", "items": {"enum": ["a"]}}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"], "enumNames": ["A"]}}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"], "title": "x"}}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "uniqueItems": true}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 2, "maxItems": 1}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": ["b"]}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": "a"}),
    ] {
        let read = one_field(&bad);
        assert!(matches!(&read, Err(FormError::Field { field, .. }) if field == "f"), "{bad}: {read:?}");
    }
}

fn built() -> FormSchema {
    FormSchema::builder()
        .string("name", |field| field.title("Name").required().min_length(2).max_length(4))
        .string("mail", |field| field.format("email"))
        .integer("age", |field| field.minimum(0).maximum(150).default_value(30))
        .number("score", |field| field.maximum(9.5))
        .boolean("sure", |field| field.description("Sure?").default_value(true))
        .choice("color", &["red", "blue"], |field| field.default_value("red"))
        .titled_choice("size", &[("s", "Small"), ("l", "Large")], |field| field)
        .choices("days", &["mo", "tu"], |field| field.min_items(1).max_items(2).default_value(["mo"].as_slice()))
        .titled_choices("meals", &[("b", "Breakfast")], |field| field.required())
        .build()
        .unwrap()
}

#[test]
fn a_form_is_built_by_hand_in_its_order() {
    let form = built();
    assert_round_trip(&form);
    let text = serde_json::to_string(&form).unwrap();
    let names = ["name", "mail", "age", "score", "sure", "color", "size", "days", "meals"];
    assert!(names.map(|name| text.find(&format!("\"{name}\":{{")).unwrap()).is_sorted(), "{text}");
    assert!(text.ends_with(r#""required":["name","meals"]}"#), "{text}");
    assert_eq!(
        form.as_value()["properties"]["size"]["oneOf"],
        json!([{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}])
    );
}

#[test]
fn a_built_form_that_contradicts_itself_is_refused() {
    let twice = FormSchema::builder().string("a", |field| field).boolean("a", |field| field).build();
    assert!(twice.unwrap_err().to_string().contains("twice"));
    let foreign = FormSchema::builder().integer("a", |field| field.min_length(1)).build();
    assert!(foreign.unwrap_err().to_string().contains("`minLength`"));
    assert!(FormSchema::builder().choice("a", &[], |field| field).build().is_err());
}

#[test]
fn a_good_answer_passes_and_unknown_members_are_tolerated() {
    let form = built();
    assert_eq!(complaints(&form, &json!({"name": "äöü日", "meals": []})), []);
    let full = json!({"name": "Anna", "mail": "a@b", "age": 3.0, "score": -1e300, "sure": false, "color": "blue",
        "size": "l", "days": ["tu"], "meals": ["b"], "other": {"x": [null]}});
    assert_eq!(complaints(&form, &full), []);
}

#[test]
fn each_flaw_of_an_answer_is_named_with_its_member() {
    let form = built();
    for (field, value, reason) in [
        ("name", json!("x"), "must have at least 2 characters"),
        ("name", json!("xxxxx"), "must have at most 4 characters"),
        ("name", json!(null), "must be a string"),
        ("mail", json!("nobody"), "must be a valid email"),
        ("age", json!("3"), "must be an integer"),
        ("age", json!(1.5), "must be a whole number"),
        ("age", json!(-1), "must be at least 0"),
        ("age", json!(151), "must be at most 150"),
        ("score", json!(9.75), "must be at most 9.5"),
        ("score", json!("9"), "must be a number"),
        ("sure", json!("true"), "must be true or false"),
        ("color", json!("green"), "must be one of red, blue"),
        ("size", json!("Small"), "must be one of s, l"),
        ("size", json!(1), "must be one of s, l"),
        ("days", json!([]), "must have at least 1 items"),
        ("days", json!(["mo", "tu", "mo"]), "must have at most 2 items"),
        ("days", json!("mo"), "must be an array of choices"),
    ] {
        let mut content = json!({"name": "Anna", "meals": []});
        content[field] = value.clone();
        assert_eq!(complaints(&form, &content), [(format!("/{field}"), reason.to_owned())], "{field} {value}");
    }
    assert_eq!(
        complaints(&form, &json!({"meals": ["b", "x"]})),
        [("/name".to_owned(), "is required".to_owned()), ("/meals/1".to_owned(), "must be one of b".to_owned()),]
    );
}

#[test]
fn a_report_about_an_answer_is_bounded() {
    let form = built();
    let found = form.check(json!({"meals": vec!["x"; 1000]}).as_object().unwrap()).unwrap_err();
    assert_eq!(found.len(), 8);
}

#[test]
fn integers_are_compared_digit_for_digit() {
    let form = FormSchema::builder().integer("n", |field| field.maximum(9_007_199_254_740_993_u64)).build().unwrap();
    assert_eq!(complaints(&form, &json!({"n": 9_007_199_254_740_993_u64})), []);
    assert_eq!(complaints(&form, &json!({"n": 9_007_199_254_740_994_u64})).len(), 1);
}

#[test]
fn formats_are_checked_for_their_shape() {
    for (format, good, bad) in [
        ("email", vec!["a@b.c", "\"a@b\"@c", "ä@ö"], vec!["", "a", "@b", "a@", "a b@c", "a@.b", "a@b."]),
        ("uri", vec!["https://a/b", "urn:x:y", "a+b-c.d:e"], vec!["", "a", "a:", ":a", "1a:b", "ä:b", "a: b", "/a"]),
        (
            "date",
            vec!["2024-02-29", "2000-02-29", "1999-12-31"],
            vec![
                "",
                "2023-02-29",
                "1900-02-29",
                "2024-13-01",
                "2024-00-10",
                "2024-04-31",
                "2024-1-01",
                "24-01-01",
                "2024-01-00",
            ],
        ),
        (
            "date-time",
            vec!["2024-02-29T23:59:60Z", "2024-01-01t00:00:00.123+14:00", "2024-01-01T00:00:00-00:30"],
            vec![
                "",
                "2024-01-01",
                "2024-01-01T24:00:00Z",
                "2024-01-01T00:60:00Z",
                "2024-01-01T00:00:00",
                "2024-01-01T00:00:00.Z",
                "2024-01-01 00:00:00Z",
                "2024-01-01T00:00:00+1:00",
                "2024-02-30T00:00:00Z",
                "äääää-T00:00:00Z",
            ],
        ),
    ] {
        let form = FormSchema::builder().string("f", |field| field.format(format)).build().unwrap();
        for text in good {
            assert_eq!(complaints(&form, &json!({"f": text})), [], "{format} {text}");
        }
        for text in bad {
            assert_eq!(complaints(&form, &json!({"f": text})).len(), 1, "{format} {text}");
        }
    }
}

#[test]
fn what_an_older_revision_lacks_is_known_and_taken_out() {
    let form = built();
    assert!(form.needs_titled_enums() && form.needs_multi_select() && form.needs_defaults_beyond_boolean());
    assert_eq!(form.for_2025_06_18(), None);
    let single = FormSchema::builder()
        .titled_choice("size", &[("s", "Small")], |field| field.default_value("s"))
        .integer("age", |field| field.default_value(1).minimum(1))
        .boolean("sure", |field| field.default_value(true))
        .build()
        .unwrap();
    let older = single.for_2025_06_18().unwrap();
    assert!(!older.needs_titled_enums() && !older.needs_multi_select() && !older.needs_defaults_beyond_boolean());
    assert_eq!(
        older.as_value(),
        json!({"type": "object", "properties": {
            "size": {"type": "string", "enum": ["s"], "enumNames": ["Small"]},
            "age": {"type": "integer", "minimum": 1},
            "sure": {"type": "boolean", "default": true},
        }})
    );
    assert_round_trip(&older);
    assert_eq!(older.for_2025_06_18(), Some(older.clone()));
}

fn field_like() -> impl Strategy<Value = Value> {
    let text = "[a-c]{0,2}";
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3..4_i64).prop_map(Value::from),
        (-3.0..4.0).prop_map(|number: f64| json!(number)),
        text.prop_map(Value::from),
        prop::collection::vec(text, 0..3).prop_map(Value::from),
    ];
    let kind = prop::sample::select(vec!["string", "integer", "number", "boolean", "array"]);
    let keyword = prop::sample::select(vec![
        "title",
        "description",
        "default",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "enum",
        "enumNames",
        "minItems",
        "maxItems",
    ]);
    (kind, prop::collection::btree_map(keyword, leaf, 0..4), prop::collection::vec(text, 1..3)).prop_map(
        |(kind, keywords, values)| {
            let mut schema = json!({"type": kind});
            for (keyword, value) in keywords {
                schema[keyword] = value;
            }
            if kind == "array" {
                schema["items"] = json!({"type": "string", "enum": values});
            }
            schema
        },
    )
}

proptest! {
    #[test]
    fn whatever_is_read_is_written_alike_and_checks_its_own_default(schema in field_like(), answer in field_like()) {
        if let Ok(form) = one_field(&schema) {
            prop_assert_eq!(&form.as_value()["properties"]["f"], &schema);
            if let Some(default) = schema.get("default") {
                prop_assert_eq!(complaints(&form, &json!({"f": default})), []);
            }
            let _ = complaints(&form, &json!({"f": answer}));
            if let Some(older) = form.for_2025_06_18() {
                prop_assert!(FormSchema::from_value(&older.as_value()).is_ok());
            }
        }
    }

    #[test]
    fn random_texts_never_panic_a_format_check(text in "\\PC{0,30}|[0-9TZ:+.-]{0,30}") {
        for format in TextFormat::ALL {
            let form = FormSchema::builder().string("f", |field| field.format(format.name())).build().unwrap();
            let _ = complaints(&form, &json!({"f": text}));
        }
    }
}
