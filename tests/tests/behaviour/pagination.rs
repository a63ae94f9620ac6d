//! Pages of lists.
//!
//! Spec: 2026-07-28 server/utilities/pagination

use mcp_core::{
    HandlerError, Limits, NoArguments, Prompt, PromptReply, RequestContext, Resource, ResourceTemplate, Server,
    ServerBuilder, Tool,
};
use mcp_tests::{Client, Lane, lanes};
use serde_json::{Value, json};

lanes! {
    everywhere {
        every_list_comes_in_pages,
        the_last_page_has_no_cursor,
        pages_neither_skip_nor_repeat_while_the_list_changes,
        the_order_is_that_of_registration,
        a_cursor_that_is_none_is_invalid_params,
        a_cursor_of_another_list_is_invalid_params,
        a_cursor_outlives_what_it_points_at,
    }
}

fn tool(name: &str) -> Tool {
    Tool::typed(name, |_: NoArguments, _context: RequestContext| async { Ok::<_, HandlerError>("x") })
}

fn server(page: usize) -> ServerBuilder {
    let mut limits = Limits::default();
    limits.page = page;
    let mut builder = Server::builder("s", "1").limits(limits);
    for name in ["a", "b", "c", "d", "e"] {
        builder = builder
            .tool(tool(name))
            .resource(Resource::text(format!("test://{name}"), name, "x"))
            .prompt(Prompt::new(name, |_, _| async { Ok(PromptReply::user("x")) }))
            .resource_template(ResourceTemplate::new(format!("test://{name}/{{id}}"), name, |request, _| async move {
                Ok(request.text("x"))
            }));
    }
    builder
}

/// A page: the names on it, and where the next one starts.
async fn page(client: &Client, method: &str, cursor: Option<&Value>) -> (String, Option<Value>) {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    let reply = client.request(method, params).await;
    let member = match method {
        "tools/list" => "tools",
        "resources/list" => "resources",
        "prompts/list" => "prompts",
        _ => "resourceTemplates",
    };
    let listed = reply.result()[member].as_array().unwrap();
    let names = listed.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    (names, reply.result().get("nextCursor").cloned())
}

const LISTS: [&str; 4] = ["tools/list", "resources/list", "prompts/list", "resources/templates/list"];

async fn every_list_comes_in_pages(lane: Lane) {
    let client = lane.connect(server(2)).await;
    for method in LISTS {
        let mut cursor = None;
        let mut pages = Vec::new();
        loop {
            let (names, next) = page(&client, method, cursor.as_ref()).await;
            pages.push(names);
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(pages, ["ab", "cd", "e"], "{method}");
    }
}

async fn the_last_page_has_no_cursor(lane: Lane) {
    for size in [5, 6, 50] {
        let client = lane.connect(server(size)).await;
        assert_eq!(page(&client, "tools/list", None).await, ("abcde".to_owned(), None));
        assert_eq!(page(&client, "tools/list", Some(&json!(null))).await.0, "abcde");
    }
}

async fn pages_neither_skip_nor_repeat_while_the_list_changes(lane: Lane) {
    let client = lane.connect(server(2)).await;
    let (names, next) = page(&client, "tools/list", None).await;
    assert_eq!(names, "ab");
    // Before, at and after the place where the next page starts.
    client.server().remove_tool("a");
    client.server().remove_tool("b");
    client.server().remove_tool("d");
    client.server().add_tool(tool("f")).unwrap();
    let (names, next) = page(&client, "tools/list", next.as_ref()).await;
    assert_eq!(names, "ce");
    client.server().add_tool(tool("a")).unwrap();
    let (names, next) = page(&client, "tools/list", next.as_ref()).await;
    assert_eq!((names.as_str(), next), ("fa", None), "what is new is at the end");
}

async fn the_order_is_that_of_registration(lane: Lane) {
    let builder = Server::builder("s", "1").tool(tool("z")).tool(tool("a")).tool(tool("m"));
    let client = lane.connect(builder).await;
    for _ in 0..3 {
        assert_eq!(page(&client, "tools/list", None).await.0, "zam");
    }
}

async fn a_cursor_that_is_none_is_invalid_params(lane: Lane) {
    let client = lane.connect(server(2)).await;
    for method in LISTS {
        for cursor in [
            json!(""),
            json!("x"),
            json!("!!!!"),
            json!("AAAA"),
            json!(7),
            json!({}),
            json!(true),
            json!("x".repeat(100_000)),
        ] {
            let reply = client.request(method, json!({ "cursor": cursor })).await;
            assert_eq!(reply.code_at(200), -32602);
        }
    }
}

async fn a_cursor_of_another_list_is_invalid_params(lane: Lane) {
    let client = lane.connect(server(2)).await;
    let (_, of_tools) = page(&client, "tools/list", None).await;
    for method in &LISTS[1..] {
        let reply = client.request(method, json!({ "cursor": of_tools })).await;
        assert_eq!(reply.code(), -32602, "{method}");
    }
}

async fn a_cursor_outlives_what_it_points_at(lane: Lane) {
    let client = lane.connect(server(2)).await;
    let (_, next) = page(&client, "tools/list", None).await;
    for name in ["a", "b", "c", "d", "e"] {
        client.server().remove_tool(name);
    }
    assert_eq!(page(&client, "tools/list", next.as_ref()).await, (String::new(), None));
}
