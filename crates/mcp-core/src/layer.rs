//! Code around the calls of tools: audits, timings, refusals, changed arguments.
//!
//! Why here: what concerns many tools is written once, and the engine's own checks and bounds stay outside of it.
//! Invariants: the layers run inside the tool's timeout and slot, once for each attempt; without layers a handler is called
//! as if there were none; a question that a layer swallows fails the call.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use mcp_wire::RawJson;

use crate::engine::worker::BoxFuture;
use crate::handler::ToolHandler;
use crate::tool::{ToolEntry, ToolReply};
use crate::{HandlerError, RequestContext};

/// Code around the calls of one tool ([`Tool::layer`](crate::Tool::layer)) or of all tools of a server
/// ([`ServerBuilder::layer`](crate::ServerBuilder::layer)).
///
/// ```
/// use async_trait::async_trait;
/// use mcp_core::{CallLayer, HandlerError, LayeredCall, Next, ToolReply};
///
/// /// Keeps writing tools from whoever was not granted to write.
/// struct ReadOnly;
///
/// #[async_trait]
/// impl CallLayer for ReadOnly {
///     async fn call(&self, call: LayeredCall, next: Next<'_>) -> Result<ToolReply, HandlerError> {
///         if call.tool().starts_with("write") {
///             return Err(HandlerError::tell("this server is read-only today"));
///         }
///         next.run(call).await
///     }
/// }
/// ```
#[async_trait]
pub trait CallLayer: Send + Sync + 'static {
    /// Runs one attempt of a call: usually by `next.run(call)`, with something before or after it.
    ///
    /// A handler that asks the client something ends its attempt with an error, of which
    /// [`is_unanswered`](HandlerError::is_unanswered) is true, and runs again with the answer; so do the layers around it.
    /// A layer must pass on every error that it did not make: a call whose open question was swallowed fails with -32603.
    /// A panic is the error of this call alone, and the tool's timeout counts the time of its layers.
    ///
    /// # Errors
    /// Those of `next`, and the layer's own: see [`HandlerError`].
    async fn call(&self, call: LayeredCall, next: Next<'_>) -> Result<ToolReply, HandlerError>;
}

/// A call on its way to its tool. The arguments match the tool's input schema, as the client sent them; what a layer makes
/// of them is not checked again.
#[derive(Clone)]
#[non_exhaustive]
pub struct LayeredCall {
    /// The arguments, an object; the next layer and the handler see what is here.
    pub arguments: RawJson,
    tool: Arc<ToolEntry>,
    context: RequestContext,
}

impl LayeredCall {
    /// The name of the tool, as clients know it.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool.definition.name
    }

    /// The request: who sent it, and what its handler could do with it.
    #[must_use]
    pub fn context(&self) -> &RequestContext {
        &self.context
    }
}

impl fmt::Debug for LayeredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments may hold secrets.
        f.debug_struct("LayeredCall").field("tool", &self.tool()).finish_non_exhaustive()
    }
}

/// What comes after a layer: the next one, or the tool itself.
pub struct Next<'a> {
    layers: &'a [Arc<dyn CallLayer>],
    handler: &'a Arc<dyn ToolHandler>,
}

impl Next<'_> {
    /// Goes on with the call.
    ///
    /// # Errors
    /// Those of the layers that follow and of the tool, for the layer to pass on.
    pub async fn run(self, call: LayeredCall) -> Result<ToolReply, HandlerError> {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.call(call, Self { layers, ..self }).await,
            None => Arc::clone(self.handler).call(call.arguments, call.context).await,
        }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("layers", &self.layers.len()).finish_non_exhaustive()
    }
}

/// One attempt of a tool, through its layers if it has any.
pub(crate) fn attempt(
    tool: &Arc<ToolEntry>,
    arguments: RawJson,
    context: RequestContext,
) -> BoxFuture<Result<ToolReply, HandlerError>> {
    if tool.layers.is_empty() {
        return Arc::clone(&tool.handler).call(arguments, context);
    }
    let tool = Arc::clone(tool);
    Box::pin(async move {
        let call = LayeredCall { arguments, tool: Arc::clone(&tool), context };
        Next { layers: &tool.layers, handler: &tool.handler }.run(call).await
    })
}
