//! Skills as a client sees them, through the engine and nothing else.

use mcp_core::wire::types::{CacheHints, CacheScope};
use mcp_core::wire::{DecodeLimits, Frame};
use mcp_core::{Outbound, Principal, Scope, Server};
use serde_json::{Value, json};
use skills_extension::{EXTENSION, Skill, Skills};

fn manual(name: &str) -> String {
    format!("---\nname: {name}\ndescription: about {name}\nmetadata:\n  level: 3\n---\n# {name}\n")
}

fn skills() -> Skills {
    let refunds = [("SKILL.md", manual("refunds").into_bytes()), ("seals/blank.bin", vec![0, 0xff])];
    let skills = [
        Skill::new("acme/refunds", refunds),
        Skill::new("brew", [("SKILL.md", manual("brew"))]),
        Skill::new("clean", [("SKILL.md", manual("clean"))]),
    ];
    Skills::new(skills.map(Result::unwrap)).unwrap().cache(CacheHints::new(7, CacheScope::Public)).page(2)
}

fn server() -> Server {
    skills().install(Server::builder("s", "1").without_server_info()).build().unwrap()
}

/// The result or the error of a modern request.
async fn asked(server: &Server, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let frame = serde_json::to_vec(&request).unwrap().into();
    let Frame::One(message) = Frame::decode(&frame, DecodeLimits::default()) else { panic!("no message") };
    let peer = server.peer(Principal::anonymous(), Scope::Single);
    let mut exchange = peer.receive(server.classify(message, None));
    let Some(Outbound::Response(frame, _)) = exchange.next().await else { panic!("no response") };
    let mut response: Value = serde_json::from_slice(&frame).unwrap();
    match response.get("error") {
        Some(error) => error["code"].clone(),
        None => response["result"].take(),
    }
}

#[tokio::test]
async fn the_extension_is_advertised_with_the_reading_of_folders_and_with_resources() {
    let result = asked(&server(), "server/discover", json!({})).await;
    assert_eq!(result["capabilities"]["extensions"], json!({ EXTENSION: { "directoryRead": true } }));
    assert!(result["capabilities"]["resources"].is_object());
}

#[tokio::test]
async fn skills_are_listed_in_order_and_by_pages() {
    let server = server();
    let first = asked(&server, "skills/list", json!({})).await;
    let uris =
        |page: &Value| page["skills"].as_array().unwrap().iter().map(|each| each["uri"].clone()).collect::<Vec<_>>();
    assert_eq!(uris(&first), ["skill://acme/refunds/SKILL.md", "skill://brew/SKILL.md"]);
    assert_eq!((&first["ttlMs"], &first["cacheScope"]), (&json!(7), &json!("public")));
    let rest = asked(&server, "skills/list", json!({ "cursor": first["nextCursor"] })).await;
    assert_eq!(uris(&rest), ["skill://clean/SKILL.md"]);
    assert_eq!(rest["nextCursor"], Value::Null);
    assert_eq!(asked(&server, "skills/list", json!({ "cursor": "skill://none" })).await, -32602);
}

#[tokio::test]
async fn one_skill_is_told_of_as_the_list_tells_of_it() {
    let server = server();
    let listed = asked(&server, "skills/list", json!({})).await["skills"][0].clone();
    let uri = "skill://acme/refunds/SKILL.md";
    let result = asked(&server, "skills/get", json!({ "uri": uri })).await;
    assert_eq!(result, json!({ "resultType": "complete", "ttlMs": 7, "cacheScope": "public", "skill": listed }));
    let header = json!({ "name": "refunds", "description": "about refunds", "metadata": { "level": 3 } });
    assert_eq!(listed["frontmatter"], header);
    for unknown in ["skill://acme/refunds", "skill://acme/refunds/seals/blank.bin", "skill://none/SKILL.md"] {
        assert_eq!(asked(&server, "skills/get", json!({ "uri": unknown })).await, -32602, "{unknown}");
    }
    assert_eq!(asked(&server, "skills/get", json!({})).await, -32602);
}

#[tokio::test]
async fn every_file_that_is_listed_can_be_read_and_is_as_long_as_was_said() {
    let server = server();
    let listed = asked(&server, "skills/list", json!({})).await;
    let resources = listed["skills"][0]["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 2);
    let read = asked(&server, "resources/read", json!({ "uri": resources[0]["uri"] })).await;
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(7), &json!("public")));
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert_eq!((text, json!(text.len())), (manual("refunds").as_str(), resources[0]["size"].clone()));
    let read = asked(&server, "resources/read", json!({ "uri": resources[1]["uri"] })).await;
    assert_eq!(read["contents"][0]["blob"], "AP8=");
    assert_eq!(read["contents"][0]["mimeType"], "application/octet-stream");
    for unknown in ["skill://acme/refunds/none.md", "skill://acme/refunds", "skill://acme/refunds/../refunds/SKILL.md"]
    {
        assert_eq!(asked(&server, "resources/read", json!({ "uri": unknown })).await, -32602, "{unknown}");
    }
}

#[tokio::test]
async fn a_skill_is_listed_among_the_resources_by_its_name() {
    let result = asked(&server(), "resources/list", json!({})).await;
    let first = json!({ "uri": "skill://acme/refunds/SKILL.md", "name": "refunds", "description": "about refunds",
        "mimeType": "text/markdown" });
    assert_eq!((&result["resources"][0], result["resources"].as_array().unwrap().len()), (&first, 3));
}

#[tokio::test]
async fn a_folder_is_read_by_pages_and_a_file_is_no_folder() {
    let server = skills().page(1).install(Server::builder("s", "1").without_server_info()).build().unwrap();
    let folder = json!({ "uri": "skill://acme/refunds" });
    let first = asked(&server, "resources/directory/read", folder.clone()).await;
    assert_eq!(
        first["resources"],
        json!([{ "uri": "skill://acme/refunds/SKILL.md", "name": "refunds", "description": "about refunds",
            "mimeType": "text/markdown", "size": manual("refunds").len() }])
    );
    let more = json!({ "uri": folder["uri"], "cursor": first["nextCursor"] });
    assert_eq!(
        asked(&server, "resources/directory/read", more).await,
        json!({ "resultType": "complete",
            "resources": [{ "uri": "skill://acme/refunds/seals", "name": "seals", "mimeType": "inode/directory" }] })
    );
    let elsewhere = json!({ "uri": "skill://acme", "cursor": first["nextCursor"] });
    assert_eq!(asked(&server, "resources/directory/read", elsewhere).await, -32602);
    for none in ["skill://acme/refunds/SKILL.md", "skill://acme/refunds/", "skill://none"] {
        assert_eq!(asked(&server, "resources/directory/read", json!({ "uri": none })).await, -32602, "{none}");
    }
}

#[tokio::test]
async fn a_server_with_skills_and_without_any_answers() {
    let server = Skills::new([]).unwrap().install(Server::builder("s", "1")).build().unwrap();
    assert_eq!(asked(&server, "skills/list", json!({})).await["skills"], json!([]));
    let without = Server::builder("s", "1").build().unwrap();
    assert_eq!(asked(&without, "skills/list", json!({})).await, -32601);
}
