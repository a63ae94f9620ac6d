//! What each older revision gets of each type, and that nothing is lost that it can say.

use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use super::*;
use crate::Revision;
use crate::capability::ClientCapability;
use crate::types::{
    EmbeddedResource, Icon, MetaObject, PromptArgument, PromptMessage, Role, SamplingMessage, TaskSupport,
    ToolAnnotations, ToolExecution, ToolResultContent,
};

/// Chooses which optional members a value has.
#[derive(Clone, Copy, Debug)]
struct Choice(u32);

impl Choice {
    fn one<T>(&mut self, value: T) -> Option<T> {
        self.0 = self.0.rotate_right(1);
        (self.0 & 1 == 1).then_some(value)
    }

    fn meta(&mut self) -> Option<MetaObject> {
        self.one(MetaObject::from_iter([("com.example/own".to_owned(), json!({"deep": [1]}))]))
    }

    fn icons(&mut self) -> Option<Vec<Icon>> {
        self.one(vec![Icon::new("https://example.com/i.png").with_sizes(vec!["48x48".to_owned()])])
    }

    fn annotations(&mut self) -> Option<Annotations> {
        let annotations = Annotations {
            audience: self.one(vec![Role::User, Role::Assistant]),
            priority: self.one(0.5),
            last_modified: self.one("2025-01-12T15:00:58Z".to_owned()),
        };
        self.one(annotations)
    }

    fn title(&mut self) -> Option<String> {
        self.one("For people".to_owned())
    }

    fn contents(&mut self) -> ResourceContents {
        let mut contents = ResourceContents::text("test://a", "inner");
        contents.mime_type = self.one("text/plain".to_owned());
        contents.meta = self.meta();
        contents
    }

    fn resource(&mut self) -> Resource {
        Resource {
            title: self.title(),
            description: self.one("What it holds".to_owned()),
            mime_type: self.one("text/plain".to_owned()),
            size: self.one(12),
            annotations: self.annotations(),
            icons: self.icons(),
            meta: self.meta(),
            ..Resource::new("file:///main.rs", "main.rs")
        }
    }

    fn template(&mut self) -> ResourceTemplate {
        ResourceTemplate {
            title: self.title(),
            annotations: self.annotations(),
            icons: self.icons(),
            meta: self.meta(),
            ..ResourceTemplate::new("test://{id}", "family")
        }
    }

    fn block(&mut self, kind: u32) -> ContentBlock {
        let mut block = match kind % 5 {
            0 => ContentBlock::text("said"),
            1 => ContentBlock::image(b"picture", "image/png"),
            2 => ContentBlock::audio(b"noise", "audio/wav"),
            3 => ContentBlock::link(self.resource()),
            _ => ContentBlock::Resource(EmbeddedResource::new(self.contents())),
        };
        *block.annotations_mut() = self.annotations();
        *block.meta_mut() = self.meta();
        block
    }

    fn tool(&mut self, schema: &Value) -> Tool {
        Tool {
            title: self.title(),
            description: self.one("What it does".to_owned()),
            output_schema: self.one(RawJson::from(schema)),
            annotations: self.one(ToolAnnotations::new().with_title("For people").with_read_only(true)),
            execution: self.one(ToolExecution::new(TaskSupport::Optional)),
            icons: self.icons(),
            meta: self.meta(),
            ..Tool::new("tool", json!({"type": "object", "title": "kept"}))
        }
    }

    fn prompt(&mut self) -> Prompt {
        let argument = PromptArgument { title: self.title(), ..PromptArgument::new("argument") };
        Prompt {
            title: self.title(),
            arguments: self.one(vec![argument]),
            icons: self.icons(),
            meta: self.meta(),
            ..Prompt::new("prompt")
        }
    }

    fn implementation(&mut self) -> Implementation {
        Implementation {
            title: self.title(),
            description: self.one("What it is".to_owned()),
            website_url: self.one("https://example.com".to_owned()),
            icons: self.icons(),
            ..Implementation::new("program", "1")
        }
    }
}

fn choices() -> impl Strategy<Value = Choice> {
    any::<u32>().prop_map(Choice)
}

fn revisions() -> impl Strategy<Value = Revision> {
    proptest::sample::select(Revision::ALL.to_vec())
}

fn values() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        json!({"type": "object", "properties": {}}),
        json!({"type": "array"}),
        json!({"type": ["object", "null"]}),
        json!({"anyOf": []}),
        json!(true),
        json!(null),
        json!([1]),
        json!("text"),
    ])
}

/// When each member that was ever added was added, written down from the published schemas and not from `Rules`.
fn since(owner: &str, member: &str) -> Revision {
    match (owner, member) {
        // Tools have annotations later than content and resources do.
        ("tools", "annotations") => Revision::V2025_03_26,
        ("annotations", "title") => Revision::V2025_03_26,
        ("implementation", "description") => Revision::V2025_11_25,
        (_, "title" | "_meta" | "lastModified" | "outputSchema" | "structuredContent") => Revision::V2025_06_18,
        (_, "icons" | "execution" | "websiteUrl") => Revision::V2025_11_25,
        _ => Revision::V2024_11_05,
    }
}

/// Looks for what the revision lacks. `owner` is the member that holds the value, through arrays.
fn find_foreign(owner: &str, value: &Value, revision: Revision) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| find_foreign(owner, item, revision)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            let removed = name == "execution" && revision >= Revision::V2026_07_28;
            let later = since(owner, name) > revision;
            let block = match member.as_str() {
                Some("audio") if name == "type" => revision < Revision::V2025_03_26,
                Some("resource_link") if name == "type" => revision < Revision::V2025_06_18,
                _ => false,
            };
            let shape = revision < Revision::V2026_07_28
                && match name.as_str() {
                    "structuredContent" => !member.is_object(),
                    "outputSchema" => member.get("type") != Some(&json!("object")),
                    _ => false,
                };
            if removed || later || block || shape {
                return Err(format!("{owner}.{name} in {}: {member}", revision.as_str()));
            }
            match name.as_str() {
                // These are the author's own.
                "inputSchema" | "outputSchema" | "structuredContent" | "_meta" => Ok(()),
                _ => find_foreign(name, member, revision),
            }
        }),
        _ => Ok(()),
    }
}

/// Fits a value, and checks all that holds for every type.
fn check<T: Serialize + Clone + PartialEq + std::fmt::Debug>(
    owner: &str,
    original: &T,
    revision: Revision,
    fit: impl Fn(&mut T, &Rules),
) -> Result<T, TestCaseError> {
    let mut fitted = original.clone();
    fit(&mut fitted, revision.rules());
    let json = serde_json::to_value(&fitted).unwrap();
    prop_assert_eq!(find_foreign(owner, &json, revision), Ok(()));
    let mut again = fitted.clone();
    fit(&mut again, revision.rules());
    prop_assert_eq!(&again, &fitted);
    let untouched = find_foreign(owner, &serde_json::to_value(original).unwrap(), revision).is_ok();
    prop_assert!(!untouched || fitted == *original, "{:?} had nothing foreign", original);
    Ok(fitted)
}

proptest! {
    #[test]
    fn tools_hold_only_what_the_revision_has(mut choice in choices(), schema in values(), revision in revisions()) {
        let tool = choice.tool(&schema);
        let fitted = check("tools", &tool, revision, Tool::for_rules)?;
        prop_assert_eq!(&fitted.input_schema, &tool.input_schema);
        prop_assert_eq!(&fitted.description, &tool.description);
        check("", &ListToolsResult::new(vec![tool]), revision, ListToolsResult::for_rules)?;
    }

    #[test]
    fn results_hold_only_what_the_revision_has(
        mut choice in choices(),
        kinds in proptest::collection::vec(any::<u32>(), 0..4),
        structured in values(),
        revision in revisions(),
    ) {
        let blocks: Vec<_> = kinds.iter().map(|kind| choice.block(*kind)).collect();
        let result =
            CallToolResult { structured_content: choice.one(structured.into()), ..CallToolResult::new(blocks) };
        let fitted = check("", &result, revision, CallToolResult::for_rules)?;
        let said = !result.content.is_empty() || result.structured_content.is_some();
        prop_assert_eq!(!fitted.content.is_empty() || fitted.structured_content.is_some(), said);

        let messages = result.content.into_iter().map(PromptMessage::user).collect();
        check("", &GetPromptResult::new(messages), revision, GetPromptResult::for_rules)?;
    }

    #[test]
    fn resources_and_prompts_hold_only_what_the_revision_has(mut choice in choices(), revision in revisions()) {
        let resources = ListResourcesResult::new(vec![choice.resource()]);
        check("", &resources, revision, ListResourcesResult::for_rules)?;
        let templates = ListResourceTemplatesResult::new(vec![choice.template()]);
        check("", &templates, revision, ListResourceTemplatesResult::for_rules)?;
        let read = ReadResourceResult::new(vec![choice.contents()]);
        check("", &read, revision, ReadResourceResult::for_rules)?;
        let prompts = ListPromptsResult::new(vec![choice.prompt()]);
        check("", &prompts, revision, ListPromptsResult::for_rules)?;
        check("implementation", &choice.implementation(), revision, Implementation::for_rules)?;
    }
}

#[test]
fn a_model_is_asked_in_the_words_of_the_revision() {
    let hints = Annotations::new().with_priority(0.5).with_last_modified("2025-01-12T15:00:58Z");
    let meta = MetaObject::from_iter([("com.example/own".to_owned(), json!(1))]);
    let mut sound = AudioContent::new(b"12", "audio/wav");
    (sound.annotations, sound.meta) = (Some(hints), Some(meta.clone()));
    let message = SamplingMessage::new(Role::User, vec![SamplingContent::Audio(sound)]).with_meta(meta);
    let asked = CreateMessageParams::new(vec![message], 1);
    let fitted = |revision: Revision| {
        let mut fitted = asked.clone();
        fitted.for_rules(revision.rules()).unwrap();
        serde_json::to_value(&fitted.messages[0]).unwrap()
    };
    let (own, told) = (json!({"com.example/own": 1}), json!({"priority": 0.5}));
    assert_eq!(
        fitted(Revision::V2024_11_05),
        json!({"role": "user", "content":
            {"type": "text", "text": "Audio left out: audio/wav, 2 bytes", "annotations": told}})
    );
    assert_eq!(
        fitted(Revision::V2025_03_26),
        json!({"role": "user", "content":
            {"type": "audio", "data": "MTI=", "mimeType": "audio/wav", "annotations": told}})
    );
    let whole = json!({"type": "audio", "data": "MTI=", "mimeType": "audio/wav", "_meta": own,
        "annotations": {"priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"}});
    assert_eq!(fitted(Revision::V2025_06_18), json!({"role": "user", "content": whole}));
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        assert_eq!(fitted(revision), json!({"role": "user", "content": whole, "_meta": own}));
    }
}

#[test]
fn what_tools_and_models_tell_each_other_is_fitted_or_refused() {
    let said = ToolResultContent::new("1", Vec::new()).with_structured_content(json!([1]));
    let message = SamplingMessage::new(Role::User, vec![SamplingContent::ToolResult(said)]);
    let mut offered = Tool::new("tool", json!({"type": "object"})).with_output_schema(json!({"type": "array"}));
    offered.execution = Some(ToolExecution::new(TaskSupport::Optional));
    let asked = CreateMessageParams::new(vec![message], 1);
    let fitted = |params: CreateMessageParams, revision: Revision| {
        let mut fitted = params;
        fitted.for_rules(revision.rules()).map(|()| serde_json::to_value(&fitted).unwrap())
    };
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18] {
        assert_eq!(fitted(asked.clone(), revision), Err(NoForm("tools in sampling")));
    }
    let older = fitted(asked.clone().with_tool(offered.clone()), Revision::V2025_11_25).unwrap();
    assert_eq!(
        older["messages"][0]["content"],
        json!({"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "[1]"}]})
    );
    assert_eq!(
        (older["tools"][0].get("outputSchema"), &older["tools"][0]["execution"]),
        (None, &json!({"taskSupport": "optional"}))
    );
    let newest = fitted(asked.with_tool(offered), Revision::V2026_07_28).unwrap();
    assert_eq!(newest["messages"][0]["content"]["structuredContent"], json!([1]));
    assert_eq!(
        (newest["tools"][0].get("execution"), &newest["tools"][0]["outputSchema"]),
        (None, &json!({"type": "array"}))
    );
}

#[test]
fn sound_becomes_a_text_that_names_type_and_size() {
    for bytes in [&b""[..], b"1", b"12", b"123", b"1234"] {
        let mut block = ContentBlock::audio(bytes, "audio/wav");
        block.for_rules(Revision::V2024_11_05.rules());
        assert_eq!(block.as_text(), Some(&*format!("Audio left out: audio/wav, {} bytes", bytes.len())));
    }
}

#[test]
fn a_link_becomes_a_text_that_keeps_its_hints() {
    let hints = Annotations::new().with_priority(0.5).with_last_modified("2025-01-12T15:00:58Z");
    let mut block = ContentBlock::link(Resource::new("file:///a", "a")).with_annotations(hints);
    block.for_rules(Revision::V2025_03_26.rules());
    assert_eq!(
        serde_json::to_value(&block).unwrap(),
        json!({"type": "text", "text": "Resource a: file:///a", "annotations": {"priority": 0.5}})
    );
}

#[test]
fn structured_content_that_stands_alone_becomes_a_text() {
    let mut result = CallToolResult::new(Vec::new()).with_structured_content(json!([1, 2]));
    result.for_rules(Revision::V2025_11_25.rules());
    assert_eq!(result, CallToolResult::text("[1,2]"));
}

#[test]
fn capabilities_are_said_in_the_shapes_of_the_revision() {
    let client = ClientCapabilities {
        tasks: Some(Box::new(json!({"list": {}}))),
        ..serde_json::from_value::<ClientCapabilities>(json!({"roots": {"listChanged": true}}))
            .unwrap()
            .with(&ClientCapability::SamplingTools)
            .with(&ClientCapability::SamplingContext)
            .with(&ClientCapability::ElicitationForm)
            .with(&ClientCapability::ElicitationUrl)
            .with(&ClientCapability::Extension("com.example/x".to_owned()))
    };
    let old = json!({"roots": {"listChanged": true}, "sampling": {}});
    let form = json!({"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}});
    let full = json!({"roots": {"listChanged": true}, "sampling": {"context": {}, "tools": {}}, "tasks": {"list": {}},
        "elicitation": {"form": {}, "url": {}}});
    let modern = json!({"roots": {}, "sampling": {"context": {}, "tools": {}}, "elicitation": {"form": {}, "url": {}},
        "extensions": {"com.example/x": {}}});
    for (revision, expected) in Revision::ALL.into_iter().zip([old.clone(), old, form, full, modern]) {
        let mut fitted = client.clone();
        fitted.for_rules(revision.rules());
        assert_eq!(serde_json::to_value(&fitted).unwrap(), expected, "{}", revision.as_str());
    }

    let mut url_only = ClientCapabilities::new().with(&ClientCapability::ElicitationUrl);
    url_only.for_rules(Revision::V2025_06_18.rules());
    assert_eq!(url_only, ClientCapabilities::new());

    let extended = ServerCapabilities::new().with_completions().with_extension("com.example/x", MetaObject::new());
    let server = ServerCapabilities { tasks: Some(Box::new(json!({"list": {}}))), ..extended };
    let completing = json!({"completions": {}});
    let full = json!({"completions": {}, "tasks": {"list": {}}});
    let modern = json!({"completions": {}, "extensions": {"com.example/x": {}}});
    for (revision, expected) in Revision::ALL.into_iter().zip([json!({}), completing.clone(), completing, full, modern])
    {
        let mut fitted = server.clone();
        fitted.for_rules(revision.rules());
        assert_eq!(serde_json::to_value(&fitted).unwrap(), expected, "{}", revision.as_str());
    }
}

#[test]
fn completion_loses_its_context_where_there_is_none() {
    let reference = Reference::Prompt { name: "p".to_owned(), title: Some("P".to_owned()) };
    let mut params = CompleteParams::new(reference, "a", "v").with_known_arguments([].into());
    params.for_rules(Revision::V2025_06_18.rules());
    assert!(params.context.is_some());
    params.for_rules(Revision::V2025_03_26.rules());
    assert_eq!(params, CompleteParams::new(Reference::prompt("p"), "a", "v"));
}
