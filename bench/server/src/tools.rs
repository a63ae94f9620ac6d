//! The tools: two that are called and as many as wanted that are listed beside them.
//!
//! Why here: a list of a hundred tools costs what it costs only with schemas like those of real servers.
//! Invariants: the same number of tools is always the same list.

use mcp_core::{HandlerError, Tool};
use mcp_wire::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The two tools that are called, then others up to `count`.
pub(crate) fn all(count: usize) -> Vec<Tool> {
    let echo = Tool::plain("echo", |arguments: Echo| arguments.text).description("Answers the text it was given.");
    let add = Tool::plain("add", |arguments: Add| {
        arguments.a.checked_add(arguments.b).map(|sum| sum.to_string()).ok_or_else(|| HandlerError::tell("too large"))
    });
    let mut tools = vec![echo, add.description("Adds two whole numbers.")];
    tools.extend((0..count.saturating_sub(tools.len())).map(listed));
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

const ACTIONS: [(&str, &str); 7] = [
    ("list", "Lists"),
    ("search", "Searches"),
    ("create", "Creates"),
    ("update", "Changes"),
    ("archive", "Archives"),
    ("export", "Exports"),
    ("assign", "Assigns"),
];
const THINGS: [&str; 14] = [
    "invoices",
    "customers",
    "orders",
    "tickets",
    "shipments",
    "contracts",
    "projects",
    "reports",
    "products",
    "suppliers",
    "payments",
    "meetings",
    "documents",
    "machines",
];

/// A tool that stands in the list and answers its arguments.
fn listed(index: usize) -> Tool {
    let (action, verb) = ACTIONS[index % ACTIONS.len()];
    let thing = THINGS[index / ACTIONS.len() % THINGS.len()];
    // Beyond every pair of an action and a thing, names go on with a number.
    let name = match index / (ACTIONS.len() * THINGS.len()) {
        0 => format!("{action}_{thing}"),
        round => format!("{action}_{thing}_{round}"),
    };
    Tool::raw(name, schema(action, thing), async |arguments: RawJson, _context| Ok(arguments.as_str().to_owned()))
        .description(format!("{verb} {thing} in the company's books and answers what came of it."))
}

fn schema(action: &str, thing: &str) -> RawJson {
    let number =
        json!({ "type": "integer", "minimum": 1, "description": format!("The number of one of the {thing}.") });
    let (properties, required) = match action {
        "list" => (
            json!({
                "limit": { "type": "integer", "minimum": 1, "maximum": 200, "default": 50, "description": "How many." },
                "order": { "type": "string", "enum": ["newest", "oldest", "name"], "description": "What comes first." },
                "include_archived": { "type": "boolean", "default": false },
            }),
            json!([]),
        ),
        "search" => (
            json!({
                "query": { "type": "string", "minLength": 1, "maxLength": 500, "description": "Words to look for." },
                "fields": {
                    "type": "array",
                    "items": { "type": "string", "enum": ["title", "body", "owner", "labels"] },
                    "uniqueItems": true,
                    "description": "Where to look; everywhere when left out.",
                },
                "period": period(),
            }),
            json!(["query"]),
        ),
        "create" => (
            json!({ "record": record(thing), "notify": addresses(), "draft": { "type": "boolean" } }),
            json!(["record"]),
        ),
        "update" => (
            json!({
                "number": number,
                "changes": record(thing),
                "reason": { "type": ["string", "null"], "maxLength": 2000, "description": "Kept with the change." },
            }),
            json!(["number", "changes"]),
        ),
        "archive" => (
            json!({
                "numbers": { "type": "array", "items": number, "minItems": 1, "maxItems": 100 },
                "until": { "type": "string", "format": "date", "description": "When to bring them back." },
            }),
            json!(["numbers"]),
        ),
        "export" => (
            json!({
                "format": { "type": "string", "enum": ["csv", "json", "pdf"] },
                "period": period(),
                "columns": { "type": "array", "items": { "type": "string", "pattern": "^[a-z_]+$" }, "maxItems": 40 },
            }),
            json!(["format", "period"]),
        ),
        _ => (
            json!({
                "number": number,
                "to": { "type": "string", "description": "The name of a person or a team." },
                "priority": { "type": "string", "enum": ["low", "normal", "high", "urgent"], "default": "normal" },
                "share": { "type": "number", "exclusiveMinimum": 0, "maximum": 1, "description": "Part of their time." },
            }),
            json!(["number", "to"]),
        ),
    };
    RawJson::from(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

fn record(thing: &str) -> Value {
    json!({
        "type": "object",
        "description": format!("What is known of one of the {thing}."),
        "properties": {
            "title": { "type": "string", "minLength": 1, "maxLength": 200 },
            "amount": { "type": "number", "minimum": 0 },
            "currency": { "type": "string", "enum": ["EUR", "USD", "GBP", "CHF"] },
            "labels": { "type": "array", "items": { "type": "string", "maxLength": 40 }, "maxItems": 20 },
            "owner": {
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "team": { "type": "string" },
                },
                "required": ["name"],
            },
        },
        "required": ["title"],
    })
}

fn period() -> Value {
    json!({
        "type": "object",
        "description": "From the first day to the last, both included.",
        "properties": {
            "from": { "type": "string", "format": "date" },
            "to": { "type": "string", "format": "date" },
        },
        "required": ["from", "to"],
    })
}

fn addresses() -> Value {
    json!({
        "type": "array",
        "items": { "type": "string", "format": "email" },
        "maxItems": 10,
        "description": "Who is told.",
    })
}
