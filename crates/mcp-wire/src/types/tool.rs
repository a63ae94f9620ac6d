//! Tools: how they are listed and what a call answers.
//!
//! Why here: the two results of the tool methods and the parts that only they use.
//! Invariants: schemas and structured content are the texts that the author or the peer wrote, `null` included.
//! Spec: 2026-07-28 server/tools, "Data Types"

use serde::{Deserialize, Serialize};

use super::{ContentBlock, Icon, MetaObject, present};
use crate::RawJson;

/// A tool as it stands in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name by which it is called, unique per server.
    pub name: String,
    /// The name for people; takes precedence over the one in the annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments, an object whose root has the type `object`.
    pub input_schema: RawJson,
    /// The JSON Schema of its structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// Hints about what it does to the world. Nothing a client may rely on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// How it may be run (2025-11-25 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ToolExecution>,
    /// Pictures for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl Tool {
    /// A tool by name and the schema of its arguments.
    pub fn new(name: impl Into<String>, input_schema: impl Into<RawJson>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: input_schema.into(),
            output_schema: None,
            annotations: None,
            execution: None,
            icons: None,
            meta: None,
        }
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Says what the tool does.
        with_description(description: String);
        /// Sets the schema of the structured content.
        with_output_schema(output_schema: RawJson);
        /// Sets the hints.
        with_annotations(annotations: ToolAnnotations);
        /// Says how the tool may be run.
        with_execution(execution: ToolExecution);
        /// Sets the pictures.
        with_icons(icons: Vec<Icon>);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

/// Hints about what a tool does. A client must not trust those of a server that it does not trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The name for people, where the tool has no title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Absent: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy, not only add. Absent: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments has no further effect. Absent: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It deals with an open world, such as the web. Absent: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// No hints yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the name for people.
        with_title(title: String);
        /// Says whether the tool changes nothing.
        with_read_only(read_only_hint: bool);
        /// Says whether the tool may destroy.
        with_destructive(destructive_hint: bool);
        /// Says whether a repeated call has no further effect.
        with_idempotent(idempotent_hint: bool);
        /// Says whether the tool deals with an open world.
        with_open_world(open_world_hint: bool);
    }
}

/// How a tool may be run (2025-11-25 only).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolExecution {
    /// Whether calls may become tasks. Absent: forbidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_support: Option<TaskSupport>,
}

/// Whether calls of a tool may become tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TaskSupport {
    /// They must not.
    Forbidden,
    /// They may.
    Optional,
    /// They must.
    Required,
}

impl ToolExecution {
    /// A tool with this support for tasks.
    #[must_use]
    pub const fn new(task_support: TaskSupport) -> Self {
        Self { task_support: Some(task_support) }
    }
}

/// The answer to `tools/call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// What the model reads; may be empty.
    pub content: Vec<ContentBlock>,
    /// The same answer for programs, in the shape of the tool's output schema. `null` is a value of its own.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<RawJson>,
    /// The call failed and the content says why, so that the model can try otherwise. Absent: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl CallToolResult {
    /// A successful answer.
    #[must_use]
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self { content, ..Self::default() }
    }

    /// A successful answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }

    /// A failure that the model is told about.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    setters! {
        /// Sets the answer for programs.
        with_structured_content(structured_content: RawJson);
        /// Says whether the call failed.
        with_is_error(is_error: bool);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

/// The answer to `tools/list`: one page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// The tools of this page.
    pub tools: Vec<Tool>,
    /// Where the next page starts; absent: there is none. The empty string is a cursor too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Further facts.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<MetaObject>,
}

impl ListToolsResult {
    /// The last or only page.
    #[must_use]
    pub fn new(tools: Vec<Tool>) -> Self {
        Self { tools, next_cursor: None, meta: None }
    }

    setters! {
        /// Says where the next page starts.
        with_next_cursor(next_cursor: String);
        /// Sets further facts.
        with_meta(meta: MetaObject);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_keep_their_text() {
        let text = r#"{"name":"t","inputSchema":{"type":"object", "$defs":{"b":1,"a":1.0}}}"#;
        let tool: Tool = serde_json::from_str(text).unwrap();
        assert_eq!(tool.input_schema.as_str(), r#"{"type":"object", "$defs":{"b":1,"a":1.0}}"#);
        assert_eq!(serde_json::to_string(&tool).unwrap(), text);
    }

    #[test]
    fn every_member_has_its_name_on_the_wire() {
        let tool = Tool::new("t", json!({"type": "object"}))
            .with_title("T")
            .with_description("d")
            .with_output_schema(json!({"type": "array"}))
            .with_annotations(
                ToolAnnotations::new()
                    .with_title("A")
                    .with_read_only(false)
                    .with_destructive(true)
                    .with_idempotent(false)
                    .with_open_world(true),
            )
            .with_execution(ToolExecution::new(TaskSupport::Required))
            .with_icons(vec![Icon::new("data:image/png;base64,")])
            .with_meta(MetaObject::from_iter([("k".to_owned(), json!(1))]));
        let expected = json!({
            "name": "t",
            "title": "T",
            "description": "d",
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "array"},
            "annotations": {"title": "A", "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false,
                "openWorldHint": true},
            "execution": {"taskSupport": "required"},
            "icons": [{"src": "data:image/png;base64,"}],
            "_meta": {"k": 1},
        });
        let text = serde_json::to_string(&tool).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
        assert_eq!(serde_json::from_str::<Tool>(&text).unwrap(), tool);
    }

    #[test]
    fn structured_null_is_not_the_absence_of_structured_content() {
        let null: CallToolResult = serde_json::from_str(r#"{"content":[],"structuredContent":null}"#).unwrap();
        assert_eq!(null.structured_content, Some(RawJson::NULL));
        assert_eq!(serde_json::to_string(&null).unwrap(), r#"{"content":[],"structuredContent":null}"#);
        let none: CallToolResult = serde_json::from_str(r#"{"content":[],"other":null}"#).unwrap();
        assert_eq!(none, CallToolResult::default());
    }

    #[test]
    fn a_result_without_content_is_refused() {
        assert!(serde_json::from_str::<CallToolResult>(r#"{"structuredContent":{}}"#).is_err());
    }

    #[test]
    fn a_failure_says_so() {
        assert_eq!(
            serde_json::to_string(&CallToolResult::error("no")).unwrap(),
            r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#
        );
    }

    #[test]
    fn an_empty_cursor_is_a_cursor() {
        let page: ListToolsResult = serde_json::from_str(r#"{"tools":[],"nextCursor":""}"#).unwrap();
        assert_eq!(page.next_cursor.as_deref(), Some(""));
        assert_eq!(serde_json::to_string(&page).unwrap(), r#"{"tools":[],"nextCursor":""}"#);
    }
}
