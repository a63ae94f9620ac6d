//! Resources: how an address finds what it names, and what is said when it names nothing.
//!
//! Spec: 2026-07-28 server/resources, "Reading Resources" and "Error Handling"; 2025-11-25 server/resources

use mcp_core::{HandlerError, ReadRequest, Resource, ResourceReply, ResourceTemplate, Server, ServerBuilder};
use mcp_tests::{Lane, lanes};
use mcp_wire::types::{Icon, ResourceContents};
use serde_json::{Value, json};

lanes! {
    everywhere {
        a_resource_is_read,
        a_missing_resource_is_an_error_with_its_address,
        an_address_that_is_none_is_invalid_params_with_it,
        the_scheme_compares_without_case_and_the_rest_exactly,
        a_template_serves_what_it_matches,
        of_several_templates_the_most_specific_serves,
        a_crafted_address_is_answered_at_once,
        a_long_value_reaches_its_handler,
        changes_are_told_whatever_the_case_of_the_scheme,
        what_a_handler_fails_with_tells_nothing_of_itself,
        a_reading_that_takes_too_long_is_ended,
    }
    legacy "only older revisions lack anything" {
        resources_come_down_to_each_revision,
    }
}

/// A template that tells the variables it found.
fn telling(template: &str) -> ResourceTemplate {
    ResourceTemplate::new(template, template, |request: ReadRequest, _context| async move {
        let mut found: Vec<String> = Vec::new();
        for name in ["dir", "name", "path", "page", "q", "id"] {
            if let Some(value) = request.variables.text(name) {
                found.push(format!("{name}={value}"));
            }
        }
        Ok(request.text(found.join(" ")))
    })
}

fn server() -> ServerBuilder {
    Server::builder("s", "1")
        .resource(Resource::text("test://text", "text", "hello"))
        .resource(Resource::blob("test://blob", "blob", vec![0, 1, 255]))
        .resource(Resource::new("test://gone", "gone", |_, _| async { Err(HandlerError::not_found()) }))
        .resource(Resource::new("test://empty", "empty", |_, _| async { Ok(ResourceReply::new(vec![])) }))
        .resource(Resource::text("file:///A/b", "file", "upper"))
}

async fn a_resource_is_read(lane: Lane) {
    let two = Resource::new("test://two", "two", |_, _| async {
        Ok(ResourceReply::new(vec![
            ResourceContents::text("test://two/1", "1"),
            ResourceContents::text("test://two/2", "2"),
        ]))
    });
    let client = lane.connect(server().resource(two)).await;
    for (uri, contents) in [
        ("test://text", json!([{ "uri": "test://text", "mimeType": "text/plain", "text": "hello" }])),
        ("test://blob", json!([{ "uri": "test://blob", "mimeType": "application/octet-stream", "blob": "AAH/" }])),
        ("test://two", json!([{ "uri": "test://two/1", "text": "1" }, { "uri": "test://two/2", "text": "2" }])),
    ] {
        let reply = client.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(reply.result()["contents"], contents);
    }
}

/// Checklist 20: a missing resource is -32602 in R5 and -32002 in R4, both with `data.uri`.
async fn a_missing_resource_is_an_error_with_its_address(lane: Lane) {
    let server = server().build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        // Unknown, gone when its handler looked, and without contents: the same to a client.
        for uri in ["test://nothing", "test://text/", "test://gone", "test://empty", "other:x"] {
            let reply = client.request("resources/read", json!({ "uri": uri })).await;
            let code = lane.pick(-32002, -32602);
            let expected = json!({ "code": code, "message": "there is no such resource", "data": { "uri": uri } });
            assert_eq!(reply.error(), &expected, "{lane:?}");
            assert!(reply.has_status(200), "{lane:?}");
        }
    }
}

/// Field case 39: the malformed address is an invalid-params error carrying it.
async fn an_address_that_is_none_is_invalid_params_with_it(lane: Lane) {
    let client = lane.connect(server()).await;
    for uri in ["not a uri", "", "/path", "1a:b", "a:", "a b:c", "a:b\nc", ":x"] {
        let reply = client.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!((reply.code(), &reply.error()["data"]), (-32602, &json!({ "uri": uri })), "{uri:?}");
    }
    for params in [json!({}), json!({ "uri": 7 }), json!({ "uri": null })] {
        assert_eq!(client.request("resources/read", params).await.code(), -32602);
    }
}

/// Field case 39: the scheme compares without case and the rest exactly.
async fn the_scheme_compares_without_case_and_the_rest_exactly(lane: Lane) {
    let client = lane.connect(server().resource_template(telling("test://t/{id}"))).await;
    let read = async |uri: &str| client.request("resources/read", json!({ "uri": uri })).await;
    for uri in ["file:///A/b", "FILE:///A/b", "File:///A/b"] {
        let reply = read(uri).await;
        assert_eq!(reply.result()["contents"][0]["text"], "upper");
        assert_eq!(reply.result()["contents"][0]["uri"], uri, "the address as it was asked for");
    }
    for uri in ["file:///a/b", "file:///A/b/", "file:///A/%62", "file:///A/b?x"] {
        assert_eq!(read(uri).await.code(), lane.pick(-32002, -32602), "{uri}");
    }
    assert_eq!(read("TEST://t/X").await.result()["contents"][0]["text"], "id=X");
}

/// Field case 39: values are decoded once per variable, a simple variable never spans `/`; bad escapes do not match;
/// absent query members are absent, order does not matter.
async fn a_template_serves_what_it_matches(lane: Lane) {
    let server = server()
        .resource_template(telling("file:///{dir}/{name}"))
        .resource_template(telling("deep:///{+path}"))
        .resource_template(telling("find://x{?q,page}"))
        .resource_template(telling("short://{id:1}"));
    let client = lane.connect(server).await;
    for (uri, found) in [
        ("file:///a%2Fb/c%20d.txt", Some("dir=a/b name=c d.txt")),
        ("file:///a%252Fb/c", Some("dir=a%2Fb name=c")),
        ("file:///a/b/c", None),
        ("file:///a/%", None),
        ("file:///a/%4", None),
        ("file:///a/%zz", None),
        ("file:///a/%C3%28", None),
        ("deep:///x/y", Some("path=x/y")),
        ("find://x?page=2&q=a%26b", Some("page=2 q=a&b")),
        ("find://x?q=1&page=2", Some("page=2 q=1")),
        ("find://x", Some("")),
        ("find://x?q=1", Some("q=1")),
        ("find://x?q=", Some("q=")),
        ("find://x?q=1&q=2", None),
        ("find://x?other=1", None),
        ("FILE:///a/b", Some("dir=a name=b")),
        ("file:///a/b/", None),
        ("file:///a/b?c", None),
        ("file://HOST/a/b", None),
        ("short://%61", Some("id=a")),
        ("short://%61%62", None),
        ("short://%C3%A9", Some("id=é")),
    ] {
        let reply = client.request("resources/read", json!({ "uri": uri })).await;
        match found {
            Some(text) => assert_eq!(reply.result()["contents"][0]["text"], text, "{uri}"),
            None => assert_eq!(reply.code(), lane.pick(-32002, -32602), "{uri}"),
        }
    }
}

/// Field case 39: the more specific template wins by a documented rule, and an address of its own wins over all.
async fn of_several_templates_the_most_specific_serves(lane: Lane) {
    let naming =
        |template: &'static str| {
            ResourceTemplate::new(template, template, move |request: ReadRequest, _| async move {
                Ok(request.text(template))
            })
        };
    let server = Server::builder("s", "1")
        .resource_template(naming("test://{+path}"))
        .resource_template(naming("test://{a}/{b}"))
        .resource_template(naming("test://users/{id}"))
        .resource_template(naming("test://users/{other}"))
        .resource(Resource::text("test://users/root", "root", "itself"));
    let client = lane.connect(server).await;
    for (uri, serves) in [
        ("test://users/7", "test://users/{id}"),
        ("test://groups/7", "test://{a}/{b}"),
        ("test://a/b/c", "test://{+path}"),
        ("test://users/root", "itself"),
    ] {
        let reply = client.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(reply.result()["contents"][0]["text"], serves, "{uri}");
    }
}

/// Field case 39: an address of a hundred kilobytes is as good as any.
async fn a_long_value_reaches_its_handler(lane: Lane) {
    let client = lane.connect(server().resource_template(telling("test://t/{id}"))).await;
    for value in ["x".repeat(100_000), "%20".repeat(33_000)] {
        let reply = client.request("resources/read", json!({ "uri": format!("test://t/{value}") })).await;
        let expected = format!("id={}", value.replace("%20", " "));
        assert!(reply.result()["contents"][0]["text"] == expected, "the value of {} bytes is another", value.len());
    }
    let beyond = format!("test://t/{}", "x".repeat(200_000));
    let reply = client.request("resources/read", json!({ "uri": beyond })).await;
    assert_eq!(reply.code(), lane.pick(-32002, -32602), "and one that is longer than templates read matches none");
}

/// Field case 39: the scheme compares without case, for those who want to know of changes as well.
async fn changes_are_told_whatever_the_case_of_the_scheme(lane: Lane) {
    let client = lane.connect(server()).await;
    for (watched, changed, other) in [
        ("TEST://text", "test://text", "test://TEXT"),
        ("test://blob", "Test://blob", "Test://Blob"),
        ("FILE:///A/b", "fiLe:///A/b", "FILE:///a/b"),
    ] {
        let mut watch = client.watch(json!({ "resourceSubscriptions": [watched] })).await;
        client.server().resource_updated(other);
        watch.is_quiet().await;
        client.server().resource_updated(changed);
        let told = watch.next().await;
        assert_eq!(told, ("notifications/resources/updated".to_owned(), json!({ "uri": watched })), "as it was watched");
        if !lane.is_modern() {
            client.request("resources/unsubscribe", json!({ "uri": changed })).await;
            client.server().resource_updated(changed);
            watch.is_quiet().await;
        }
    }
}

/// Field case 39: matching is linear, whatever a client crafts.
async fn a_crafted_address_is_answered_at_once(lane: Lane) {
    let client = lane.connect(server().resource_template(telling("test://{dir}-{name}-{+path}-{id}"))).await;
    for length in [100, 100_000] {
        let uri = format!("test://{}", "a-".repeat(length / 2));
        let reply = client.request("resources/read", json!({ "uri": uri })).await;
        assert!(reply.response.get("result").is_some() || reply.code() == lane.pick(-32002, -32602));
    }
}

async fn what_a_handler_fails_with_tells_nothing_of_itself(lane: Lane) {
    let failing = Resource::new("test://fails", "fails", |_, _| async {
        let number: u8 = "secret".parse()?;
        Ok(ResourceReply::new(vec![ResourceContents::text("test://x", number.to_string())]))
    });
    let panicking = Resource::new("test://panics", "panics", |_, _| async { panic!("the secret of the handler") });
    let client = lane.connect(server().resource(failing).resource(panicking)).await;
    for uri in ["test://fails", "test://panics"] {
        let reply = client.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(*reply.error(), json!({ "code": -32603, "message": "internal error" }), "{uri}");
    }
}

async fn a_reading_that_takes_too_long_is_ended(lane: Lane) {
    let endless = Resource::new("test://endless", "endless", |_, _| std::future::pending());
    let client = lane.connect(server().resource(endless)).await;
    let reply = client.request("resources/read", json!({ "uri": "test://endless" })).await;
    assert_eq!(reply.code(), -32603);
}

/// Checklist 38: an R3 session never receives `icons`, `execution`, titled enums, priming events or `resultType`. (Here:
/// of resources.)
async fn resources_come_down_to_each_revision(lane: Lane) {
    let icons = || vec![Icon::new("https://example.com/i.png")];
    let meta = || serde_json::Map::from_iter([("own".to_owned(), json!(1))]);
    let server = Server::builder("s", "1")
        .resource(Resource::text("test://a", "a", "x").title("A").icons(icons()).meta(meta()))
        .resource_template(telling("test://t/{id}").title("T").icons(icons()).meta(meta()))
        .build()
        .unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        let rules = lane.revision().rules();
        for (method, member) in [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")] {
            let reply = client.request(method, json!({})).await;
            let listed: &Value = &reply.result()[member][0];
            for (member, has) in
                [("name", true), ("title", rules.structured), ("_meta", rules.structured), ("icons", rules.icons)]
            {
                assert_eq!(listed.get(member).is_some(), has, "{member} of {method} in {lane:?}");
            }
        }
    }
}
