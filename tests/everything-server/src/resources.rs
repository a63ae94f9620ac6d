//! Resources: fixed ones, one to subscribe to, and a template.
//!
//! Why here: the other modules show the same picture and sound.
//! Spec: 2026-07-28 server/resources

use mcp_core::{HandlerError, ReadRequest, RequestContext, Resource, ResourceReply, ResourceTemplate, completer_of};
use serde_json::json;

/// One red pixel as PNG.
pub(crate) const RED_PIXEL: &[u8] = include_bytes!("../assets/red-pixel.png");
/// A hundredth of a second of sound as WAV.
pub(crate) const TONE: &[u8] = include_bytes!("../assets/tone.wav");

/// The resource to subscribe to.
pub(crate) const WATCHED: &str = "test://watched-resource";

/// The resources with an address of their own, in the order in which they are listed.
pub(crate) fn direct() -> Vec<Resource> {
    vec![
        Resource::text("test://static-text", "static-text", "This is the text of a resource that does not change.")
            .description("A text that does not change."),
        Resource::blob("test://static-binary", "static-binary", RED_PIXEL)
            .mime_type("image/png")
            .description("A picture that does not change."),
        Resource::text(WATCHED, "watched-resource", "Subscribe to hear when this changes.")
            .description("A resource to subscribe to."),
    ]
}

/// A family of resources.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("test://template/{id}/data", "template-data", read_member)
        .mime_type("application/json")
        .description("One record for each id.")
        .complete("id", completer_of(["1", "12", "123"]))
}

async fn read_member(request: ReadRequest, _context: RequestContext) -> Result<ResourceReply, HandlerError> {
    let id = request.variables.text("id").ok_or_else(HandlerError::not_found)?;
    let record = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    Ok(request.text(record.to_string()))
}
