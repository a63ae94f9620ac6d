//! The tools that are only listed, as any number of them, with schemas like those of real servers.
//!
//! Why here: every server of a comparison lists the same; those of other libraries include this file.
//! Invariants: uses serde_json alone; the same number of tools is always the same list.

use serde_json::{Value, json};

/// A tool that stands in the list.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The JSON Schema of its arguments.
    pub(crate) schema: Value,
}

/// The first `count` tools.
pub(crate) fn listed(count: usize) -> impl Iterator<Item = Listed> {
    (0..count).map(tool)
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

fn tool(index: usize) -> Listed {
    let (action, verb) = ACTIONS[index % ACTIONS.len()];
    let thing = THINGS[index / ACTIONS.len() % THINGS.len()];
    // Beyond every pair of an action and a thing, names go on with a number.
    let name = match index / (ACTIONS.len() * THINGS.len()) {
        0 => format!("{action}_{thing}"),
        round => format!("{action}_{thing}_{round}"),
    };
    let description = format!("{verb} {thing} in the company's books and answers what came of it.");
    Listed { name, description, schema: schema(action, thing) }
}

fn schema(action: &str, thing: &str) -> Value {
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
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
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
