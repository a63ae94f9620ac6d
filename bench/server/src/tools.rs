//! The tools: two that are called and as many as wanted that are listed beside them.
//!
//! Why here: the schemas of the first two are derived from types, as users do it; the others are in `listed`.
//! Invariants: the same number of tools is always the same list.

use mcp_core::{HandlerError, TaskOffer, Tool};
use mcp_wire::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::listed::{Listed, listed};

/// The two tools that are called, then others up to `count`. With `is_offering` the calls of the first may become tasks.
pub(crate) fn all(count: usize, is_offering: bool) -> Vec<Tool> {
    let echo = Tool::plain("echo", |arguments: Echo| arguments.text).description("Answers the text it was given.");
    let echo = if is_offering { echo.task(TaskOffer::optional()) } else { echo };
    let add = Tool::plain("add", |arguments: Add| {
        arguments.a.checked_add(arguments.b).map(|sum| sum.to_string()).ok_or_else(|| HandlerError::tell("too large"))
    });
    let mut tools = vec![echo, add.description("Adds two whole numbers.")];
    tools.extend(listed(count.saturating_sub(tools.len())).map(answering));
    tools
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// The text to answer.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

/// Answers its arguments.
fn answering(Listed { name, description, schema }: Listed) -> Tool {
    let tool =
        Tool::raw(name, RawJson::from(schema), async |arguments: RawJson, _context| Ok(arguments.as_str().to_owned()));
    tool.description(description)
}
