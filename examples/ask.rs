//! One handler that asks its user, for clients of every revision: `cargo run --package mcp-stdio --example ask`.
//!
//! An older client gets a request while the call waits; a client of 2026-07-28 gets the question as a result and repeats
//! the call with the answer. The handler knows nothing of either.

use std::error::Error;

use mcp_core::{Elicited, Form, HandlerError, RegistrationError, RequestContext, Server, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Delete {
    path: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sure {
    really: bool,
}

async fn delete(arguments: Delete, context: RequestContext) -> Result<String, HandlerError> {
    // Until there is an answer this line ends the call, and the handler runs again once there is: effects come below.
    let sure = context.ask("sure", Form::<Sure>::new(format!("Delete {}?", arguments.path)))?;
    match sure {
        Elicited::Accepted(Sure { really: true }) => Ok(format!("{} is deleted", arguments.path)),
        _ => Err(HandlerError::tell("the user did not agree")),
    }
}

fn server() -> Result<Server, RegistrationError> {
    Server::builder("files", "1.0.0").tool(Tool::typed("delete", delete)).build()
}

fn main() -> Result<(), Box<dyn Error>> {
    Ok(mcp_stdio::run(server()?)?)
}

#[cfg(test)]
mod tests {
    use mcp_core::testing::TestClient;
    use serde_json::json;

    #[tokio::test]
    async fn whoever_can_be_asked_is_asked_in_the_way_of_the_revision() {
        for client in TestClient::of_every_revision(&super::server().unwrap()).await.unwrap() {
            let can_be_asked = client.revision().rules().elicitation;
            let client = client.answering(|_| json!({ "action": "accept", "content": { "really": true } }));
            let reply = client.call_tool("delete", json!({ "path": "notes.txt" })).await.unwrap();
            assert_eq!(reply.questions.len(), usize::from(can_be_asked), "{client:?}");
            assert_eq!(reply.is_tool_error(), !can_be_asked, "{client:?}: {reply:?}");
        }
    }
}
