//! The endpoint and its neighbours, asked through the router.

use std::error::Error;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

type Outcome = Result<(), Box<dyn Error>>;

async fn answer(request: Request<Body>) -> Result<(StatusCode, String), Box<dyn Error>> {
    let response = http_axum::router(http_axum::server()?).oneshot(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8(body.to_vec())?))
}

fn call(host: &str) -> Result<Request<Body>, axum::http::Error> {
    call_at("/mcp", host)
}

fn call_at(path: &str, host: &str) -> Result<Request<Body>, axum::http::Error> {
    let message = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "greet",
            "arguments": { "name": "Ada" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    Request::post(path)
        .header("host", host)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "greet")
        .body(Body::from(message.to_string()))
}

#[tokio::test]
async fn a_tool_is_called_through_the_router() -> Outcome {
    let (status, body) = answer(call("localhost")?).await?;
    assert_eq!(status, StatusCode::OK, "{body}");
    let response: Value = serde_json::from_str(&body)?;
    assert_eq!(response["result"]["content"][0]["text"], "Hello, Ada!", "{response}");
    Ok(())
}

#[tokio::test]
async fn below_a_prefix_each_spelling_is_served_with_every_method_and_no_redirect() -> Outcome {
    let router = axum::Router::new().nest("/svc", http_axum::router(http_axum::server()?));
    let hello = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        },
    });
    let request = |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        request.header("content-type", "application/json").header("accept", "application/json, text/event-stream")
    };
    for path in ["/svc/mcp", "/svc/mcp/", "/svc/mcp?x=1"] {
        let called = router.clone().oneshot(call_at(path, "localhost")?).await?;
        assert_eq!(called.status(), StatusCode::OK, "{path}");
        let opened = router.clone().oneshot(request("POST", path).body(Body::from(hello.to_string()))?).await?;
        assert_eq!(opened.status(), StatusCode::OK, "{path}");
        let session = opened.headers().get("mcp-session-id").ok_or("a session")?;
        for (method, status) in [("GET", StatusCode::OK), ("DELETE", StatusCode::NO_CONTENT)] {
            let within = request(method, path).header("mcp-session-id", session);
            let answer = router.clone().oneshot(within.body(Body::empty())?).await?;
            assert_eq!(answer.status(), status, "{method} {path}");
        }
    }
    for path in ["/svc/mcpx", "/mcp", "/svc/mcp/x"] {
        let answer = router.clone().oneshot(call_at(path, "localhost")?).await?;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn the_endpoints_own_checks_hold_behind_a_router() -> Outcome {
    let (status, body) = answer(call("elsewhere.example")?).await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
    Ok(())
}

#[tokio::test]
async fn other_routes_are_the_applications_own() -> Outcome {
    let (status, body) = answer(Request::get("/health").body(Body::empty())?).await?;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "well"));
    let (status, _) = answer(Request::get("/elsewhere").body(Body::empty())?).await?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    Ok(())
}
