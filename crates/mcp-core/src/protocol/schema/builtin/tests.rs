//! What the built-in validator accepts, refuses and reports.
//!
//! Why here: the bounds and the references are visible only through the validator as a whole.
//! Invariants: each limit is tried on both of its sides.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::protocol::schema::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS};

fn compile(schema: &Value) -> Result<Arc<dyn CompiledSchema>, SchemaError> {
    BuiltinValidator::new().compile(schema, SchemaRole::Result)
}

fn refused(schema: &Value) -> SchemaError {
    match compile(schema) {
        Ok(_) => panic!("{schema} must be refused"),
        Err(error) => error,
    }
}

fn violations(schema: &Value, instance: &Value) -> Vec<Violation> {
    compile(schema).unwrap().check(instance).err().unwrap_or_default()
}

fn accepts(schema: &Value, instance: &Value) -> bool {
    compile(schema).unwrap().check(instance).is_ok()
}

#[test]
fn the_dialect_is_2020_12_unless_draft_07_is_declared() {
    let tuple = json!({"prefixItems": [{"type": "string"}]});
    assert!(!accepts(&tuple, &json!([1])));
    let with_dialect = |dialect: &str| json!({"$schema": dialect, "prefixItems": [{"type": "string"}]});
    assert!(!accepts(&with_dialect("https://json-schema.org/draft/2020-12/schema"), &json!([1])));
    assert!(!accepts(&with_dialect("https://json-schema.org/draft/2020-12/schema#"), &json!([1])));
    let draft_07 = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}],
        "prefixItems": [{"type": "string"}], "definitions": {"a": {}}, "dependencies": {"a": ["b"]}});
    assert!(!accepts(&draft_07, &json!([1])));
    assert!(accepts(&with_dialect("http://json-schema.org/draft-07/schema"), &json!([1])));
}

#[test]
fn an_unknown_dialect_is_refused_by_name() {
    for dialect in [json!("http://json-schema.org/draft-04/schema#"), json!("urn:mine"), json!(7), json!("")] {
        assert!(matches!(refused(&json!({"$schema": dialect})), SchemaError::UnknownDialect { .. }), "{dialect}");
    }
    let mixed = json!({"$defs": {"a": {"$id": "a", "$schema": "http://json-schema.org/draft-07/schema"}}});
    assert!(matches!(refused(&mixed), SchemaError::UnknownDialect { pointer, .. } if pointer == "/$defs/a"));
}

#[test]
fn arguments_need_an_object_root_and_results_any_object() {
    let arguments = |schema: &Value| BuiltinValidator::new().compile(schema, SchemaRole::Arguments).map(|_| ());
    assert_eq!(arguments(&json!({"type": "object"})), Ok(()));
    for root in [json!({}), json!({"type": "string"}), json!({"type": ["object"]}), json!({"type": null})] {
        assert_eq!(arguments(&root), Err(SchemaError::RootType), "{root}");
    }
    for root in [json!(true), json!(null), json!([]), json!("object")] {
        assert_eq!(arguments(&root), Err(SchemaError::NotAnObject), "{root}");
        assert_eq!(refused(&root), SchemaError::NotAnObject, "{root}");
    }
    assert!(accepts(&json!({"type": "array"}), &json!([])));
}

#[test]
fn a_violation_names_the_failing_member() {
    let schema = json!({"type": "object", "required": ["name"], "additionalProperties": false, "properties": {
        "name": {"type": "string"},
        "a/b": {"type": "array", "items": {"type": "integer"}},
    }});
    assert_eq!(
        violations(&schema, &json!({"name": 3, "a/b": [1, "x"]})),
        [
            Violation::new("/a~1b/1", "must be of type integer, not string"),
            Violation::new("/name", "must be of type string, not integer"),
        ]
    );
    assert_eq!(violations(&schema, &json!({})), [Violation::new("", "\"name\" is required")]);
    assert_eq!(
        violations(&schema, &json!({"name": "n", "x": 1, "y": 2})),
        [Violation::new("", "member \"x\" and 1 more are not allowed")]
    );
}

#[test]
fn a_report_is_bounded_and_does_not_echo_large_values() {
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    assert_eq!(violations(&schema, &json!(vec!["x"; 100])).len(), MAX_VIOLATIONS);
    assert_eq!(violations(&schema, &json!(vec!["x"; MAX_LISTED_NODES])).len(), 1);
    let huge = "q".repeat(100_000);
    for (schema, instance) in [
        (json!({"type": "integer"}), json!(huge)),
        (json!({"enum": ["a"]}), json!(huge)),
        (json!({"const": "a"}), json!(huge)),
        (json!({"maxLength": 2}), json!(huge)),
        (json!({"pattern": "^a"}), json!(huge)),
        (json!({"not": {}}), json!(huge)),
        (json!({"anyOf": [{"type": "null"}]}), json!([huge])),
        (json!({"uniqueItems": true}), json!([huge, huge])),
        (json!({"contains": {"type": "null"}}), json!([huge])),
        (json!({"additionalProperties": false}), json!({&huge: 1})),
        (json!({"unevaluatedProperties": false}), json!({&huge: 1})),
        (json!({"propertyNames": {"maxLength": 2}}), json!({&huge: 1})),
        (json!({"prefixItems": [true], "unevaluatedItems": false}), json!([1, huge])),
        (json!({"additionalProperties": {"type": "null"}}), json!({&huge: 1})),
    ] {
        let found = violations(&schema, &instance);
        assert_eq!(found.len(), 1, "{schema}");
        assert!(found[0].reason.len() <= 240 && found[0].reason.matches('q').count() <= 110, "{:?}", found[0]);
        assert!(found[0].path.len() <= 256);
    }
}

#[test]
fn formats_are_annotations() {
    assert!(accepts(&json!({"format": "email"}), &json!("no address")));
    let draft_07 = json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "uri"});
    assert!(accepts(&draft_07, &json!("no address")));
}

#[test]
fn patterns_that_need_backtracking_or_much_memory_are_refused_with_the_reason() {
    for (pattern, words) in [
        ("(?=x)y", "look-around"),
        ("(a)\\1", "backreferences"),
        ("(", "unclosed group"),
        ("([a-z]{1000}){1000}x", "more than 524288 bytes"),
    ] {
        let schema = json!({"properties": {"a": {"pattern": pattern}}});
        let SchemaError::Pattern { pointer, reason, .. } = refused(&schema) else { panic!("{pattern}") };
        assert_eq!(pointer, "/properties/a/pattern");
        assert!(reason.contains(words), "{reason}");
        let named = json!({"patternProperties": {pattern: true}});
        assert!(matches!(refused(&named), SchemaError::Pattern { .. }), "{pattern}");
    }
}

#[test]
fn a_pattern_that_would_explode_with_backtracking_stays_linear() {
    let schema = json!({"pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"});
    let compiled = compile(&schema).unwrap();
    // With backtracking this input would outlast the universe, so that ending at all is the proof.
    assert!(compiled.check(&json!("a".repeat(100_000))).is_err());
    let nested = compile(&json!({"patternProperties": {"^(a|a|aa)*$": false}})).unwrap();
    assert!(nested.check(&json!({format!("{}!", "a".repeat(100_000)): 1})).is_ok());
}

/// A schema of exactly `depth` nested objects.
fn nested(depth: usize) -> Value {
    (1..depth).fold(json!({}), |inner, _| json!({"not": inner}))
}

#[test]
fn depth_is_limited_at_its_edge() {
    assert!(compile(&nested(MAX_SCHEMA_DEPTH)).is_ok());
    assert_eq!(refused(&nested(MAX_SCHEMA_DEPTH + 1)), SchemaError::TooDeep);
    let mut data = json!(1);
    for _ in 0..MAX_SCHEMA_DEPTH {
        data = json!([data]);
    }
    assert_eq!(refused(&json!({"const": data})), SchemaError::TooDeep);
}

#[test]
fn sub_schemas_are_limited_at_their_edge() {
    let wide = |count: usize| {
        let properties: Map<_, _> = (1..count).map(|index| (index.to_string(), json!({}))).collect();
        json!({"properties": properties})
    };
    assert!(compile(&wide(MAX_SUBSCHEMAS)).is_ok());
    assert!(matches!(refused(&wide(MAX_SUBSCHEMAS + 1)), SchemaError::TooMany(_)));
}

#[test]
fn text_is_limited_at_its_edge() {
    let sized = |bytes: usize| json!({"title": "x".repeat(bytes - r#"{"title":""}"#.len())});
    assert!(compile(&sized(MAX_SCHEMA_BYTES)).is_ok());
    assert_eq!(refused(&sized(MAX_SCHEMA_BYTES + 1)), SchemaError::TooLarge);
}

#[test]
fn patterns_and_long_locations_are_limited() {
    let patterns = |count: usize| json!({"allOf": vec![json!({"pattern": "a"}); count]});
    assert!(compile(&patterns(256)).is_ok());
    assert!(matches!(refused(&patterns(257)), SchemaError::TooMany(_)));
    let members: Map<_, _> = (0..5000).map(|index| (index.to_string(), json!({}))).collect();
    let long = json!({"properties": {"x".repeat(10_000): {"properties": members}}});
    assert!(matches!(refused(&long), SchemaError::TooMany(_)));
}

#[test]
fn references_inside_the_document_are_followed() {
    let text = json!({"type": "string"});
    for schema in [
        json!({"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": text}}),
        json!({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "string"}}}),
        json!({"$ref": "other", "$defs": {"a": {"$id": "other", "type": "string"}}}),
        json!({"$id": "https://example.com/root", "$ref": "other#/$defs/b",
            "$defs": {"a": {"$id": "other", "$defs": {"b": text}}}}),
        json!({"$id": "https://example.com/root", "$ref": "https://example.com/root#/$defs/a", "$defs": {"a": text}}),
        json!({"$dynamicRef": "#node", "$defs": {"a": {"$dynamicAnchor": "node", "type": "string"}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a",
            "definitions": {"a": text}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"$ref": "#here"}],
            "definitions": {"a": {"$id": "#here", "type": "string"}}}),
    ] {
        assert!(accepts(&schema, &json!("text")), "{schema}");
        assert!(!accepts(&schema, &json!(1)), "{schema}");
    }
}

#[test]
fn references_out_of_the_document_are_refused_by_name() {
    for reference in [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json",
        "other.json#/a",
        "urn:x:y",
        "https://json-schema.org/draft/2020-12/schema",
        "//host/x",
    ] {
        for keyword in ["$ref", "$dynamicRef"] {
            let schema = json!({"properties": {"a": {keyword: reference}}});
            let SchemaError::ExternalReference { pointer, reference: named } = refused(&schema) else {
                panic!("{reference}")
            };
            assert_eq!((pointer, named), (format!("/properties/a/{keyword}"), reference.to_owned()));
        }
    }
    let based = json!({"$id": "https://example.com/root", "$ref": "other"});
    assert!(matches!(refused(&based), SchemaError::ExternalReference { .. }));
}

#[test]
fn references_to_nothing_are_refused() {
    for reference in ["#/$defs/b", "#nowhere", "#/%zz", "#/%ff", "#/$defs", "#/const", "http://[", "#/$defs/a/type"] {
        let schema = json!({"const": {}, "$defs": {"a": {"type": "string"}}, "items": {"$ref": reference}});
        assert!(matches!(refused(&schema), SchemaError::UnresolvedReference { .. }), "{reference}");
    }
}

#[test]
fn a_property_named_like_a_reference_is_none() {
    let schema = json!({"properties": {"$ref": {"type": "string"}, "$id": {"type": "integer"}},
        "const": {"$ref": "https://example.com"}});
    assert!(compile(&schema).is_ok());
}

#[test]
fn cycles_that_consume_nothing_are_refused() {
    let back = json!({"$ref": "#/$defs/a"});
    let mut cycles = vec![
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": back}}),
        json!({"$defs": {"a": {"dependentSchemas": {"x": back}}}}),
        json!({"$defs": {"a": {"$anchor": "a", "anyOf": [{"$ref": "#a"}]}}}),
        json!({"$dynamicAnchor": "node", "allOf": [{"$dynamicRef": "#node"}]}),
        json!({"$id": "https://example.com/a", "$dynamicAnchor": "node", "$ref": "b",
            "$defs": {"b": {"$id": "b", "$dynamicRef": "#node", "$defs": {"c": {"$dynamicAnchor": "node"}}}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a": {"dependencies": {"x": {"$ref": "#/definitions/a"}}}}}),
    ];
    for keyword in ["not", "if", "then", "else"] {
        cycles.push(json!({"$defs": {"a": {keyword: back}}}));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        cycles.push(json!({"$defs": {"a": {keyword: [true, back]}}}));
    }
    for schema in cycles {
        assert!(matches!(refused(&schema), SchemaError::EndlessReference { .. }), "{schema}");
    }
}

#[test]
fn recursion_that_consumes_the_instance_is_fine() {
    let tree = json!({"type": "object", "properties": {
        "value": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#"}},
    }});
    assert!(accepts(&tree, &json!({"value": 1, "children": [{"value": 2, "children": []}]})));
    assert_eq!(violations(&tree, &json!({"children": [{"value": "x"}]}))[0].path, "/children/0/value");
    for keyword in ["additionalProperties", "items", "contains", "unevaluatedProperties", "propertyNames"] {
        assert!(compile(&json!({"allOf": [{keyword: {"$ref": "#"}}]})).is_ok(), "{keyword}");
    }
}

#[test]
fn siblings_of_a_draft_07_reference_are_ignored() {
    let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {
        "a": {"$ref": "#/definitions/b", "allOf": [{"$ref": "#/definitions/a"}], "$id": "ignored"}, "b": {}}});
    assert!(compile(&schema).is_ok());
}

#[test]
fn references_that_multiply_are_refused() {
    let doubling = |levels: usize| {
        let mut definitions: Map<_, _> = (0..levels)
            .map(|level| {
                let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
                (level.to_string(), json!({"allOf": [next, next]}))
            })
            .collect();
        definitions.insert(levels.to_string(), json!({"type": "string"}));
        json!({"$ref": "#/$defs/0", "$defs": definitions})
    };
    assert!(accepts(&doubling(11), &json!("x")));
    assert!(matches!(refused(&doubling(12)), SchemaError::TooMany(_)));
    assert!(matches!(refused(&doubling(60)), SchemaError::TooMany(_)));
}

/// A recursive schema that nests `links` sub-schemas twice over each level of the instance.
fn chain(links: usize, keyword: &str) -> Value {
    let next = |link: usize| json!({"$ref": format!("#/$defs/{}", link + 1)});
    let mut definitions: Map<_, _> =
        (0..links).map(|link| (link.to_string(), json!({keyword: [{"type": "null"}, next(link)]}))).collect();
    let last = json!({"type": ["array", "object"], "items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}});
    definitions.insert(links.to_string(), last);
    json!({"$ref": "#/$defs/0", "$defs": definitions})
}

#[test]
fn the_deepest_instance_of_the_deepest_recursion_fits_a_small_stack() {
    // Test threads have 2 MiB, as have the workers of the usual runtimes.
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for links in [0, 1, 3, 10, 30] {
            let compiled = compile(&chain(links, keyword)).unwrap();
            let deepest = MAX_INSTANCE_DEPTH.min(MAX_RECURSION / (2 * links + 3));
            let around = |leaf: Value, levels: usize| {
                (0..levels).fold(leaf, |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) })
            };
            let good = compiled.check(&around(json!([]), deepest - 1));
            assert_eq!(good.is_ok(), keyword != "allOf" || links == 0, "{keyword} {links}");
            assert!(compiled.check(&around(json!("bad"), deepest)).is_err());
            let too_deep = compiled.check(&around(json!([]), deepest)).unwrap_err();
            assert_eq!(too_deep, [Violation::new("", "the value is nested too deep")]);
        }
        assert!(compile(&chain(30, keyword)).is_ok());
        assert!(matches!(refused(&chain(31, keyword)), SchemaError::TooMany(_)));
        assert!(matches!(refused(&chain(4000, keyword)), SchemaError::TooMany(_)));
    }
}

#[test]
fn an_invalid_schema_is_refused_with_its_place() {
    let SchemaError::Invalid { pointer, .. } = refused(&json!({"properties": {"a": {"required": "x"}}})) else {
        panic!("another error")
    };
    assert_eq!(pointer, "/properties/a/required");
}

/// Values rich in keywords, so that random documents reach deep into the code.
fn schema_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,6}".prop_map(Value::from),
        prop::sample::select(vec![
            "#",
            "#a",
            "#/$defs/a",
            "#/properties/a",
            "#/items",
            "a",
            "http://a/b",
            "http://a/b#",
            "/",
            "//",
            "%",
            "#/%",
            "string",
            "object",
            "^a+$",
            "(?=a)",
            "urn:a",
            "file:///a",
            "a#b",
            "#/0",
            "https://json-schema.org/draft/2020-12/schema",
            "http://json-schema.org/draft-07/schema#",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let key = prop::sample::select(vec![
            "$ref",
            "$dynamicRef",
            "$id",
            "$anchor",
            "$dynamicAnchor",
            "$defs",
            "$schema",
            "$recursiveRef",
            "$recursiveAnchor",
            "$vocabulary",
            "definitions",
            "dependencies",
            "properties",
            "patternProperties",
            "additionalProperties",
            "unevaluatedProperties",
            "items",
            "prefixItems",
            "additionalItems",
            "unevaluatedItems",
            "contains",
            "minContains",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
            "dependentSchemas",
            "dependentRequired",
            "propertyNames",
            "type",
            "pattern",
            "enum",
            "const",
            "required",
            "multipleOf",
            "maximum",
            "x-mcp-header",
            "contentEncoding",
            "contentMediaType",
            "contentSchema",
            "a",
            "0",
            "",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_documents_never_panic(schema in schema_like(), instance in schema_like()) {
        for role in [SchemaRole::Arguments, SchemaRole::Result] {
            if let Ok(compiled) = BuiltinValidator::new().compile(&schema, role)
                && let Err(found) = compiled.check(&instance)
            {
                prop_assert!(!found.is_empty() && found.len() <= MAX_VIOLATIONS);
            }
        }
        let _ = crate::protocol::schema::mirrored_parameters(&schema);
    }

    #[test]
    fn random_members_of_an_object_schema_never_panic(
        members in prop::collection::btree_map("[a-c]|items|not", schema_like(), 0..4),
        instance in schema_like(),
    ) {
        let schema = json!({"type": "object", "properties": members, "$defs": members});
        if let Ok(compiled) = BuiltinValidator::new().compile(&schema, SchemaRole::Arguments) {
            let _ = compiled.check(&instance);
        }
    }
}
