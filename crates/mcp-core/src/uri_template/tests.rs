//! Templates in both directions.
//!
//! Why here: parsing, expanding and matching are one promise: they agree.
//! Invariants: the tables are worked out by hand from RFC 6570 and the rules in the type's documentation.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn template(text: &str) -> UriTemplate {
    UriTemplate::parse(text).unwrap()
}

/// The matched variables as `name=value` words, lists in brackets; `None` if there is no match.
fn read(text: &str, uri: &str) -> Option<String> {
    let mut words = String::new();
    for (name, value) in template(text).matches(uri)?.iter() {
        match value {
            VariableValue::Text(value) => write!(words, "{name}={value} ").unwrap(),
            VariableValue::List(items) => write!(words, "{name}=[{}] ", items.join("|")).unwrap(),
        }
    }
    Some(words.trim_end().to_owned())
}

#[track_caller]
fn assert_read(text: &str, uri: &str, expected: &str) {
    assert_eq!(read(text, uri).as_deref(), Some(expected), "{text} on {uri}");
}

#[track_caller]
fn assert_no_match(text: &str, uri: &str) {
    assert_eq!(read(text, uri), None, "{text} on {uri}");
}

#[test]
fn values_are_decoded_once_and_stay_in_their_segment() {
    let text = "file:///{dir}/{name}";
    assert_read(text, "file:///a%2Fb/c%20d.txt", "dir=a/b name=c d.txt");
    assert_read(text, "file:///a/%2525", "dir=a name=%25");
    assert_read(text, "file:///%c3%a4/%C3%A4", "dir=ä name=ä");
    assert_read(text, "file:///ä/日", "dir=ä name=日");
    for uri in
        ["file:///a/b/c", "file:///a/b/", "file:///a/", "file:////b", "file:///a", "file:///a/b?c", "file:///a/b#c"]
    {
        assert_no_match(text, uri);
    }
}

#[test]
fn bad_escapes_and_bytes_that_are_no_text_do_not_match() {
    for uri in
        ["file:///a/%", "file:///a/%4", "file:///a/%zz", "file:///a/%C3%28", "file:///a/%ff", "file:///a/%ED%A0%80"]
    {
        for text in ["file:///{dir}/{name}", "file:///{+path}", "file:///a{/path*}"] {
            assert_no_match(text, uri);
        }
    }
    assert_no_match("x{?q}", "x?q=%");
    assert_no_match("{+a}0", "%20");
    assert_no_match("{a}4{b}", "%41");
}

#[test]
fn characters_that_no_address_holds_do_not_match() {
    for uri in ["not a uri", "x:a b", "x:a\nb", "x:<a>", "x:\"", "x:{a}", "x:a|b", "x:\u{7f}"] {
        assert_no_match("{+anything}", uri);
    }
}

#[test]
fn the_scheme_alone_compares_without_case() {
    assert_read("file:///{a}", "FILE:///b", "a=b");
    assert_read("File:///{a}", "fiLe:///b", "a=b");
    assert_no_match("file://host/{a}", "file://HOST/b");
    assert_no_match("db://x/{a}", "db://X/b");
    assert_no_match("x/a%2fb/{a}", "x/a%2Fb/c");
    assert_no_match("x/y:{a}", "X/y:b");
}

#[test]
fn reserved_expansion_spans_segments() {
    assert_read("file:///{+path}", "file:///x/y", "path=x/y");
    assert_read("file:///{+path}", "file:///x/y?z#f", "path=x/y?z#f");
    assert_read("{+base}/{name}", "x/y/z", "base=x/y name=z");
    assert_read("{+a}x{b}", "1x2/x3", "a=1x2/ b=3");
    assert_no_match("file:///{+path}", "file:///");
}

#[test]
fn query_members_come_in_any_order_and_may_be_absent() {
    let text = "search{?q,page}";
    assert_read(text, "search?page=2&q=a%26b", "q=a&b page=2");
    assert_read(text, "search?page=2", "page=2");
    assert_read(text, "search", "");
    assert_read(text, "search?q=", "q=");
    assert_read(text, "search?q", "q=");
    assert_read(text, "search?q=a/b?c=d", "q=a/b?c=d");
    for uri in
        ["search?", "search?q=1&q=2", "search?other=1", "search?q=1&", "search?q=1#f", "search&q=1", "search/?q=1"]
    {
        assert_no_match(text, uri);
    }
}

#[test]
fn continued_queries_belong_together() {
    let text = "x{?a}{&b,c}";
    assert_read(text, "x?c=3&a=1", "a=1 c=3");
    assert_read(text, "x&b=2", "b=2");
    assert_no_match(text, "x&a=1");
    assert_read("x?fixed=1{&b}", "x?fixed=1&b=2", "b=2");
    assert_read("x?fixed=1{&b}", "x?fixed=1", "");
    assert_read("x{?a}{#f}", "x?a=1#g", "a=1 f=g");
    assert_read("x{?a}#here", "x?a=1#here", "a=1");
}

#[test]
fn every_operator_has_its_inverse() {
    assert_read("x{/a}", "x/1", "a=1");
    assert_read("x{/a}", "x", "");
    assert_read("x{/a,b}/z", "x/1/2/z", "a=1 b=2");
    assert_read("x{/a,b}/z", "x/1/z", "a=1");
    assert_no_match("x{/a,b}/z", "x/1/2/3/z");
    assert_no_match("x{/a}", "x/1/2");
    assert_read("x{.ext}", "x.tar.gz", "ext=tar.gz");
    assert_read("x{.a,b}", "x.tar.gz", "a=tar b=gz");
    assert_read("{name}{.ext}", "a.tar.gz", "name=a ext=tar.gz");
    assert_read("x{#f}", "x#a/b?c", "f=a/b?c");
    assert_read("x{#f}", "x#", "f=");
    assert_read("x{;p,q}/y", "x;q=2;p=1/y", "p=1 q=2");
    assert_read("x{;p}", "x;p", "p=");
    assert_no_match("x{;p}", "x;q=1");
    assert_read("{a,b}", "1,2", "a=1 b=2");
    assert_read("{a,b}", "1", "a=1");
    assert_no_match("{a,b}", "1,2,3");
    assert_read("{a}", "1,2", "a=1,2");
    assert_read("{+a,b}/z", "1/x,2/z", "a=1/x b=2");
}

#[test]
fn exploded_variables_are_lists() {
    assert_read("x{/list*}", "x/a/b%2Fc", "list=[a|b/c]");
    assert_read("x{/list*}/end", "x/a/b/end", "list=[a|b]");
    assert_read("{list*}", "a,b%2C", "list=[a|b,]");
    assert_read("x{?list*,q}", "x?list=a&q=1&list=b", "list=[a|b] q=1");
    assert_read("x{;list*}", "x;list=a;list=b", "list=[a|b]");
    assert_read("x{.list*}", "x.a.b", "list=[a|b]");
    assert_read("x{/list*}", "x", "");
}

#[test]
fn a_prefix_counts_decoded_characters() {
    assert_read("{v:1}", "%61", "v=a");
    assert_no_match("{v:1}", "%61%62");
    assert_read("{v:2}", "%61%62", "v=ab");
    assert_read("{v:1}", "%F0%9F%8D%95", "v=🍕");
    assert_read("/{v:1}/{v}", "/a/abc", "v=abc");
    assert_no_match("/{v:1}/{v}", "/b/abc");
    assert_read("/{v:1}/{v:3}", "/a/abc", "v=abc");
    assert_no_match("/{v:1}/{v:3}", "/b/abc");
}

#[test]
fn a_repeated_variable_has_one_value() {
    assert_read("{a}/{a}", "x/%78", "a=x");
    assert_no_match("{a}/{a}", "x/y");
}

#[test]
fn earlier_expressions_take_as_little_as_they_can() {
    assert_read("{a}-{b}", "1-2-3", "a=1 b=2-3");
    assert_read("{+a}/{+b}", "1/2/3", "a=1 b=2/3");
}

#[test]
fn expansion_follows_the_examples_of_the_rfc() {
    let variables: Variables = [
        ("var", VariableValue::from("value")),
        ("hello", "Hello World!".into()),
        ("half", "50%".into()),
        ("empty", "".into()),
        ("path", "/foo/bar".into()),
        ("x", "1024".into()),
        ("y", "768".into()),
        ("dub", "me/too".into()),
        ("list", vec!["red".to_owned(), "green".to_owned(), "blue".to_owned()].into()),
        ("none", Vec::new().into()),
    ]
    .into_iter()
    .collect();
    for (text, expected) in [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,empty}", "?1024,"),
        ("?{x,undef}", "?1024"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{list}", "red,green,blue"),
        ("{list*}", "red,green,blue"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{+path}/here", "/foo/bar/here"),
        ("{+x,hello,y}", "1024,Hello%20World!,768"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("foo{#empty}", "foo#"),
        ("foo{#undef}", "foo"),
        ("X{.var,x}", "X.value.1024"),
        ("X{.empty}", "X."),
        ("X{.list}", "X.red,green,blue"),
        ("X{.list*}", "X.red.green.blue"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{/var,empty}", "/value/"),
        ("{/list}", "/red,green,blue"),
        ("{/list*}", "/red/green/blue"),
        ("{/dub}", "/me%2Ftoo"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{;hello:5}", ";hello=Hello"),
        ("{;list}", ";list=red,green,blue"),
        ("{;list*}", ";list=red;list=green;list=blue"),
        ("{?x,y,undef,empty}", "?x=1024&y=768&empty="),
        ("{?var:3}", "?var=val"),
        ("{?list}", "?list=red,green,blue"),
        ("{?list*}", "?list=red&list=green&list=blue"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{?x}{&y}", "?x=1024&y=768"),
        ("{?none}{?x}", ""),
        ("x/ä{none}", "x/%C3%A4"),
    ] {
        match UriTemplate::parse(text) {
            Ok(parsed) => assert_eq!(parsed.expand(&variables), expected, "{text}"),
            Err(error) => assert!(matches!(error, UriTemplateError::Ambiguous { .. }) && expected.is_empty(), "{text}"),
        }
    }
}

#[test]
fn malformed_templates_are_refused_with_their_place() {
    for (text, place) in [
        ("a{", 1),
        ("a{b", 1),
        ("a}", 1),
        ("a b", 1),
        ("a%zz", 1),
        ("{}", 1),
        ("{a b}", 1),
        ("{=a}", 1),
        ("{!a}", 1),
        ("{a,}", 3),
        ("{,a}", 1),
        ("{a:0}", 1),
        ("{a:10000}", 1),
        ("{a:x}", 1),
        ("{a:}", 1),
        ("{a:01}", 1),
        ("{.}", 2),
        ("{a..b}", 1),
        ("{a.}", 1),
        ("{..a}", 2),
        ("{a-b}", 1),
        ("{a{b}}", 1),
        ("<", 0),
        ("{a*:1}", 1),
        ("{ä}", 1),
        ("{a%2}", 1),
        ("{|a}", 1),
        ("a\u{85}", 1),
        ("{a:+1}", 1),
    ] {
        match UriTemplate::parse(text) {
            Err(UriTemplateError::Malformed { offset, .. }) => assert_eq!(offset, place, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(UriTemplate::parse("{a.b_c%20d}{/e}").is_ok());
}

#[test]
fn templates_that_could_be_read_in_several_ways_are_refused() {
    for text in [
        "{a}{b}",
        "{a}{+b}",
        "{/a}{b}",
        "{a}{b}{c}{d}x",
        "{a*,b}",
        "{/a*,b}",
        "{?a}x",
        "{?a}{/b}",
        "{?a}{?b}",
        "{&a}{b}",
    ] {
        assert!(matches!(UriTemplate::parse(text), Err(UriTemplateError::Ambiguous { .. })), "{text}");
    }
}

#[test]
fn limits_hold_at_their_edges() {
    assert!(UriTemplate::parse(&"x".repeat(MAX_TEMPLATE_BYTES)).is_ok());
    assert_eq!(UriTemplate::parse(&"x".repeat(MAX_TEMPLATE_BYTES + 1)), Err(UriTemplateError::TooLong));
    assert!(UriTemplate::parse(&"{a}/".repeat(MAX_TEMPLATE_VARIABLES)).is_ok());
    assert_eq!(UriTemplate::parse(&"{a}/".repeat(MAX_TEMPLATE_VARIABLES + 1)), Err(UriTemplateError::TooManyVariables));
    let many = format!("{{{}a}}", "a,".repeat(MAX_TEMPLATE_VARIABLES));
    assert_eq!(UriTemplate::parse(&many), Err(UriTemplateError::TooManyVariables));
    let longest = "x".repeat(MAX_URI_BYTES);
    assert!(template("{+a}").matches(&longest).is_some());
    assert!(template("{+a}").matches(&format!("{longest}x")).is_none());
}

#[test]
fn crafted_templates_and_addresses_stay_linear() {
    // With backtracking each of these would outlast the universe, so that ending at all is the proof.
    let text = "{+a}".to_owned()
        + &(1..MAX_TEMPLATE_VARIABLES).fold(String::new(), |text, index| format!("{text}a{{+v{index}}}"));
    let template = template(&format!("{text}!"));
    assert_eq!(template.matches(&"a".repeat(100_000)), None);
    let found = template.matches(&format!("{}!", "a".repeat(100_000))).unwrap();
    assert_eq!(found.text("a"), Some("a"));
    let segments = UriTemplate::parse("x{/list*}/{a}/{b}/{c}!").unwrap();
    assert_eq!(segments.matches(&format!("x{}", "/a".repeat(50_000))), None);
    let long_literal = UriTemplate::parse(&format!("{{a}}{}b{{c}}", "a".repeat(4000))).unwrap();
    assert_eq!(long_literal.matches(&"a".repeat(100_000)), None);
    let members =
        UriTemplate::parse("x{?list*}").unwrap().matches(&format!("x?list=1{}", "&list=1".repeat(10_000))).unwrap();
    assert_eq!(members.list("list").unwrap().len(), 10_001);
}

#[test]
fn the_more_specific_template_is_the_greater() {
    let descending =
        ["x://a/b/{c}", "x://a/{b}", "x://{/a}/{b}", "x://{+a}/{b}", "x://{a}", "x://{/a*}", "x://{+a,b}", "{+a}"];
    let keys: Vec<_> = descending.iter().map(|text| template(text).specificity()).collect();
    assert!(keys[0] > keys[1] && keys[1] > keys[2] && keys[2] > keys[3] && keys[3] > keys[4]);
    assert!(keys[4] > keys[5] && keys[5] > keys[6] && keys[6] > keys[7]);
    assert_eq!(template("x://{a}").specificity(), template("y://{b}").specificity());
}

#[test]
fn variables_keep_their_order_and_their_names_once() {
    assert_eq!(template("{b}/{a,b}{?c*}{&d}").variables().collect::<Vec<_>>(), ["b", "a", "c", "d"]);
    let mut variables: Variables = [("a", "1"), ("b", "2"), ("a", "3")].into_iter().collect();
    assert_eq!(variables.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((variables.len(), variables.text("a")), (2, Some("3")));
    variables.insert("c", vec!["x".to_owned()]);
    assert_eq!((variables.text("c"), variables.list("a")), (None, None));
    assert!(Variables::new().is_empty());
}

/// A template with what its variables may hold so that one reading is right.
fn unambiguous() -> impl Strategy<Value = (String, Variables)> {
    let value = "[a-z /?#&;,.%äß日🍕=-]{1,8}";
    let name = |index: usize| format!("v{index}");
    prop::collection::vec((0..9_usize, value, prop::collection::vec("[a-z /%ä,]{1,4}", 1..4)), 1..6).prop_map(
        move |pieces| {
            let mut text = "test://".to_owned();
            let mut tail = String::new();
            let mut variables = Variables::new();
            let mut tail_variables = Variables::new();
            for (index, (kind, value, list)) in pieces.into_iter().enumerate() {
                let name = name(index);
                // What stays unescaped must not look like the text around it.
                let plain = value.replace(['.', '-'], "_");
                match kind {
                    0 => write!(text, "s/{{{name}}}/").unwrap(),
                    1 => write!(text, "{{/{name}}}/e").unwrap(),
                    2 => write!(text, "{{;{name}}}/e").unwrap(),
                    3 => write!(text, "{{.{name}}}/e").unwrap(),
                    4 => write!(text, "{{;{name}*}}/e").unwrap(),
                    5 => write!(text, "l/{{{name}*}}/e").unwrap(),
                    6 => write!(tail, "{}{name}", if tail.is_empty() { "{?" } else { "," }).unwrap(),
                    _ => write!(tail, "{}{name}*", if tail.is_empty() { "{?" } else { "," }).unwrap(),
                }
                let value =
                    if matches!(kind, 4 | 5 | 7 | 8) { VariableValue::List(list) } else { VariableValue::Text(plain) };
                if kind > 5 { tail_variables.insert(name, value) } else { variables.insert(name, value) }
            }
            if !tail.is_empty() {
                tail.push('}');
            }
            for (name, value) in tail_variables.iter() {
                variables.insert(name, value.clone());
            }
            (text + &tail, variables)
        },
    )
}

#[test]
fn a_value_that_looks_escaped_still_is_decoded_once_and_expands_as_its_form_says() {
    for (text, uri, again) in [
        ("x:{v}", "x:%2541", "x:%2541"),
        ("x:{?v}", "x:?v=%2541", "x:?v=%2541"),
        ("x:{+v}", "x:%2541", "x:%41"),
        ("x:{#v}", "x:#%2541", "x:#%41"),
    ] {
        let found = template(text).matches(uri).unwrap();
        assert_eq!(found.text("v"), Some("%41"), "{text}");
        assert_eq!(template(text).expand(&found), again, "{text}");
    }
}

#[test]
fn a_form_that_may_be_missing_is_there_if_it_begins_and_the_rest_still_fits() {
    let template = template("x:a{/v}/{+w}");
    for (uri, v, w) in
        [("x:a/b//", Some("b"), "/"), ("x:a/b/c", Some("b"), "c"), ("x:a/b%2F/", None, "b//"), ("x:a/b", None, "b")]
    {
        let found = template.matches(uri).unwrap();
        assert_eq!((found.text("v"), found.text("w")), (v, Some(w)), "{uri}");
    }
}

#[test]
fn between_reserved_variables_a_comma_separates_and_an_escaped_one_is_a_values() {
    let template = template("{+a,b}");
    let found = template.matches("x%2Cy,z").unwrap();
    assert_eq!((found.text("a"), found.text("b")), (Some("x,y"), Some("z")));
    // RFC 6570 3.2.3 writes it as it is, so the way back is open for values without one only.
    assert_eq!(template.expand(&found), "x,y,z");
    assert_eq!(template.matches("x,y,z"), None);
}

proptest! {
    #[test]
    fn matching_is_the_inverse_of_expanding((text, variables) in unambiguous()) {
        let template = template(&text);
        let uri = template.expand(&variables);
        prop_assert_eq!(template.matches(&uri), Some(variables), "{} as {}", text, uri);
    }

    #[test]
    fn what_a_match_yields_expands_to_a_match_again(
        text in "(x|/|-|\\{[+#./;?&]?[a-c](,[a-c]|\\*|:[1-3])?\\}){1,6}",
        uri in "([a-cx/?&#;=.,-]|%2F|%41|ä){0,12}",
    ) {
        // A variable that occurs twice may be absent in one place and not in the other.
        if let Ok(template) = UriTemplate::parse(&text)
            && template.variables().count() == template.specs().count()
            && let Some(variables) = template.matches(&uri)
        {
            let again = template.expand(&variables);
            prop_assert!(template.matches(&again).is_some(), "{} on {} gave {:?}, then {}", text, uri, variables, again);
        }
    }

    #[test]
    fn random_text_never_panics(text in "\\PC{0,40}", braces in "[{}a-c,*:?&;/+#.%0-9é]{0,30}", uri in "\\PC{0,40}|[%a-f0-9/?&;=é]{0,30}") {
        for text in [text, braces] {
            if let Ok(template) = UriTemplate::parse(&text) {
                let _ = template.matches(&uri);
                let _ = template.expand(&Variables::new());
            }
        }
    }
}
