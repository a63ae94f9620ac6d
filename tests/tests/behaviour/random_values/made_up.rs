//! What a handler may come up with.
//!
//! Invariants: addresses, times and media types are what they have to be, since that is the author's business; all else
//! is anything that the types can hold.

use mcp_core::FormSchema;
use mcp_wire::RawJson;
use mcp_wire::types::{
    Annotations, AudioContent, ContentBlock, CreateMessageParams, EmbeddedResource, Icon, IconTheme, ImageContent,
    IncludeContext, MetaObject, ModelPreferences, Resource, ResourceContents, Role, SamplingContent, SamplingMessage,
    TaskSupport, TextContent, Tool, ToolAnnotations, ToolChoice, ToolChoiceMode, ToolExecution, ToolResultContent,
    ToolUseContent,
};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(super) struct MadeUp {
    pub(super) title: String,
    pub(super) meta: MetaObject,
    pub(super) annotations: Annotations,
    pub(super) icons: Vec<Icon>,
    pub(super) hints: ToolAnnotations,
    /// What the tool says its result looks like.
    pub(super) schema: Value,
    pub(super) structured: Option<Value>,
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) contents: Vec<ResourceContents>,
    pub(super) to_model: CreateMessageParams,
    pub(super) form: FormSchema,
}

pub(super) fn values() -> impl Strategy<Value = MadeUp> {
    let said = (any::<String>(), meta(), annotations(), icons(), hints());
    let answered = (output_schema(), of(anything()), vec(block(), 0..4), vec(contents(), 1..3));
    (said, answered, to_model(), form()).prop_map(|(said, answered, to_model, form)| {
        let (title, meta, annotations, icons, hints) = said;
        let (schema, structured, blocks, contents) = answered;
        MadeUp { title, meta, annotations, icons, hints, schema, structured, blocks, contents, to_model, form }
    })
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..3).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn meta() -> impl Strategy<Value = MetaObject> {
    let key = prop_oneof![Just("com.example/key".to_owned()), any::<String>()];
    btree_map(key, anything(), 0..3).prop_map(|members| members.into_iter().collect())
}

/// An object without `null` and fractions, for which the newest schema has no room in its JSON values.
fn object() -> impl Strategy<Value = Value> {
    let value = prop_oneof![any::<String>().prop_map(Value::from), any::<i64>().prop_map(Value::from)];
    btree_map(any::<String>(), value, 0..3).prop_map(|members| members.into_iter().collect())
}

fn output_schema() -> impl Strategy<Value = Value> {
    select(vec![
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } }, "$defs": { "a": { "type": "null" } } }),
        json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
        json!({ "type": "array", "items": { "type": "object" } }),
        json!({ "type": ["object", "null"] }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] }),
        json!({}),
    ])
}

fn annotations() -> impl Strategy<Value = Annotations> {
    let audience = of(vec(select(vec![Role::User, Role::Assistant]), 0..3));
    (audience, of(0.0..=1.0), of(Just("2025-01-12T15:00:58Z"))).prop_map(|(audience, priority, changed)| {
        let mut annotations = Annotations::new();
        annotations.audience = audience;
        annotations.priority = priority;
        annotations.last_modified = changed.map(ToOwned::to_owned);
        annotations
    })
}

fn icons() -> impl Strategy<Value = Vec<Icon>> {
    let theme = of(select(vec![IconTheme::Light, IconTheme::Dark]));
    let icon = (of(any::<String>()), of(vec(any::<String>(), 0..2)), theme).prop_map(|(mime_type, sizes, theme)| {
        let mut icon = Icon::new("https://example.com/icon.svg");
        icon.mime_type = mime_type;
        icon.sizes = sizes;
        icon.theme = theme;
        icon
    });
    vec(icon, 0..3)
}

fn hints() -> impl Strategy<Value = ToolAnnotations> {
    let flag = || of(any::<bool>());
    (of(any::<String>()), flag(), flag(), flag(), flag()).prop_map(|(title, reads, destroys, repeats, open)| {
        let mut hints = ToolAnnotations::new();
        hints.title = title;
        (hints.read_only_hint, hints.destructive_hint) = (reads, destroys);
        (hints.idempotent_hint, hints.open_world_hint) = (repeats, open);
        hints
    })
}

fn contents() -> impl Strategy<Value = ResourceContents> {
    let body = prop_oneof![
        any::<String>().prop_map(|text| ResourceContents::text("test://contents", text)),
        any::<Vec<u8>>().prop_map(|bytes| ResourceContents::blob("test://contents", &bytes)),
    ];
    (body, of(any::<String>()), of(meta())).prop_map(|(mut contents, mime_type, meta)| {
        contents.mime_type = mime_type;
        contents.meta = meta;
        contents
    })
}

fn link() -> impl Strategy<Value = Resource> {
    let text = || of(any::<String>());
    (any::<String>(), text(), text(), of(0..1_u64 << 53), icons()).prop_map(|(name, title, mime_type, size, icons)| {
        let mut link = Resource::new("test://link", name).with_icons(icons);
        link.title.clone_from(&title);
        link.description = title;
        link.mime_type = mime_type;
        link.size = size;
        link
    })
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let block = prop_oneof![
        any::<String>().prop_map(ContentBlock::text),
        any::<Vec<u8>>().prop_map(|bytes| ContentBlock::image(&bytes, "image/png")),
        any::<Vec<u8>>().prop_map(|bytes| ContentBlock::audio(&bytes, "audio/wav")),
        contents().prop_map(|contents| ContentBlock::Resource(EmbeddedResource::new(contents))),
        link().prop_map(ContentBlock::link),
    ];
    (block, of(annotations()), of(meta())).prop_map(|(mut block, annotations, meta)| {
        if let Some(annotations) = annotations {
            block = block.with_annotations(annotations);
        }
        if let Some(meta) = meta {
            block = block.with_meta(meta);
        }
        block
    })
}

fn said_to_model() -> impl Strategy<Value = SamplingContent> {
    let hinted = || (of(annotations()), of(meta()));
    let tool_result = (vec(block(), 0..3), of(anything()), of(any::<bool>()));
    prop_oneof![
        (any::<String>(), hinted()).prop_map(|(text, (annotations, meta))| {
            let mut block = TextContent::new(text);
            (block.annotations, block.meta) = (annotations, meta);
            SamplingContent::Text(block)
        }),
        (any::<Vec<u8>>(), hinted()).prop_map(|(bytes, (annotations, meta))| {
            let mut block = ImageContent::new(&bytes, "image/png");
            (block.annotations, block.meta) = (annotations, meta);
            SamplingContent::Image(block)
        }),
        (any::<Vec<u8>>(), hinted()).prop_map(|(bytes, (annotations, meta))| {
            let mut block = AudioContent::new(&bytes, "audio/wav");
            (block.annotations, block.meta) = (annotations, meta);
            SamplingContent::Audio(block)
        }),
        (object(), of(meta())).prop_map(|(input, meta)| {
            let mut block = ToolUseContent::new("id", "tool", RawJson::from(input));
            block.meta = meta;
            SamplingContent::ToolUse(block)
        }),
        (tool_result, of(meta())).prop_map(|((content, structured, is_error), meta)| {
            let mut block = ToolResultContent::new("id", content);
            block.structured_content = structured.map(RawJson::from);
            (block.is_error, block.meta) = (is_error, meta);
            SamplingContent::ToolResult(block)
        }),
    ]
}

fn to_model() -> impl Strategy<Value = CreateMessageParams> {
    // Mostly one block, which every revision has words for.
    let blocks = prop_oneof![3 => vec(said_to_model(), 1), 1 => vec(said_to_model(), 0..3)];
    let message = (select(vec![Role::User, Role::Assistant]), blocks, of(meta())).prop_map(|(role, content, meta)| {
        let mut message = SamplingMessage::new(role, content);
        message.meta = meta;
        message
    });
    let share = || of(0.0..=1.0);
    let wishes = (share(), share(), share(), of(any::<String>())).prop_map(|(cost, speed, wits, hint)| {
        let mut wishes = ModelPreferences::new();
        (wishes.cost_priority, wishes.speed_priority, wishes.intelligence_priority) = (cost, speed, wits);
        hint.into_iter().fold(wishes, ModelPreferences::with_hint)
    });
    let context = of(select(vec![IncludeContext::None, IncludeContext::ThisServer, IncludeContext::AllServers]));
    let modes = vec![ToolChoiceMode::Auto, ToolChoiceMode::Required, ToolChoiceMode::None];
    let tools = prop_oneof![3 => Just(None), 1 => (offered_tool(), select(modes)).prop_map(Some)];
    let rest = (of(object()), of(any::<String>()), of(-2.0..2.0), of(vec(any::<String>(), 0..3)), of(meta()));
    (vec(message, 0..3), of(wishes), context, tools, rest).prop_map(|(messages, wishes, context, tools, rest)| {
        let mut params = CreateMessageParams::new(messages, 100);
        params.model_preferences = wishes;
        params.include_context = context;
        let (metadata, prompt, temperature, stops, meta) = rest;
        params.metadata = metadata.map(RawJson::from);
        (params.system_prompt, params.temperature, params.stop_sequences, params.meta) =
            (prompt, temperature, stops, meta);
        if let Some((tool, mode)) = tools {
            params = params.with_tool(tool).with_tool_choice(ToolChoice::new(mode));
        }
        params
    })
}

fn offered_tool() -> impl Strategy<Value = Tool> {
    let texts = (any::<String>(), of(any::<String>()));
    (texts, hints(), icons(), of(output_schema()), any::<bool>()).prop_map(|(texts, hints, icons, schema, as_task)| {
        let mut tool = Tool::new("tool", json!({ "type": "object" }));
        (tool.title, tool.description) = (Some(texts.0), texts.1);
        (tool.annotations, tool.icons) = (Some(hints), Some(icons));
        tool.output_schema = schema.map(RawJson::from);
        tool.execution = as_task.then(|| ToolExecution::new(TaskSupport::Optional));
        tool
    })
}

fn form() -> impl Strategy<Value = FormSchema> {
    let formats = vec!["email", "uri", "date", "date-time"];
    (any::<u8>(), of(any::<String>()), select(formats), -9_i64..9).prop_map(|(fields, title, format, number)| {
        let has = |field: u32| fields & (1 << field) != 0;
        let titled = [("s", "Small"), ("l", "Large")];
        let mut form = FormSchema::builder()
            .string("text", |field| field.required().title(title.as_deref().unwrap_or_default()).min_length(1));
        if has(0) {
            form = form.string("formatted", |field| field.format(format));
        }
        if has(1) {
            form = form.integer("whole", |field| field.minimum(number).default_value(number));
        }
        if has(2) {
            form = form.number("number", |field| field.maximum(0.5).default_value(0.25));
        }
        if has(3) {
            form = form.boolean("yes", |field| field.default_value(has(0)));
        }
        if has(4) {
            form = form.choice("choice", &["a", "b"], |field| field.default_value("b"));
        }
        if has(5) {
            form = form.titled_choice("titled", &titled, |field| field.default_value("s").description("Which?"));
        }
        // One revision has no words for these, so that they are rarer.
        if has(6) && has(7) {
            form = form.choices("several", &["a", "b"], |field| field.max_items(1).default_value(json!(["a"])));
            form = form.titled_choices("titles", &titled, |field| field.min_items(1));
        }
        form.build().expect("the fields are in order")
    })
}
