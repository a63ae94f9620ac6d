//! The traits that handlers implement, and the one error they return.
//!
//! Why here: a handler sees arguments and a context and returns; it never holds a channel to the client.
//! Invariants: nothing of an unexpected error reaches the client but a fixed text; protocol errors are only made on
//! purpose.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use mcp_wire::capability::ClientCapability;
use mcp_wire::types::ContentBlock;
use mcp_wire::{RawJson, RpcError};

use crate::RequestContext;
use crate::prompt::PromptReply;
use crate::resource::{ReadRequest, ResourceReply};
use crate::tool::ToolReply;

/// Runs a tool. Most tools are closures given to [`Tool::typed`](crate::Tool::typed).
#[async_trait]
pub trait ToolHandler: Send + Sync + 'static {
    /// Runs the tool once, with arguments that match its input schema unless
    /// [that check was left out](crate::Tool::without_argument_check).
    ///
    /// May run again for the same call when it asks the client something: see [`RequestContext::ask`]. Dropping the
    /// future is the last step of a cancellation; [`RequestContext::cancelled`] tells before.
    ///
    /// # Errors
    /// See [`HandlerError`].
    async fn call(self: Arc<Self>, arguments: RawJson, context: RequestContext) -> Result<ToolReply, HandlerError>;
}

/// Reads a resource, or the resources of a template.
#[async_trait]
pub trait ResourceHandler: Send + Sync + 'static {
    /// Reads the resource that `request` names.
    ///
    /// # Errors
    /// [`HandlerError::not_found`] when there is no such resource after all.
    async fn read(
        self: Arc<Self>,
        request: ReadRequest,
        context: RequestContext,
    ) -> Result<ResourceReply, HandlerError>;
}

/// Fills a prompt in.
#[async_trait]
pub trait PromptHandler: Send + Sync + 'static {
    /// Fills the prompt in with `arguments`, of which the required ones are present.
    ///
    /// # Errors
    /// See [`HandlerError`].
    async fn fill(
        self: Arc<Self>,
        arguments: crate::prompt::PromptArguments,
        context: RequestContext,
    ) -> Result<PromptReply, HandlerError>;
}

/// Suggests values for an argument of a prompt or a variable of a template.
#[async_trait]
pub trait Completer: Send + Sync + 'static {
    /// Suggests values that begin like what was typed so far.
    ///
    /// # Errors
    /// See [`HandlerError`].
    async fn complete(
        self: Arc<Self>,
        request: crate::completion::CompletionRequest,
    ) -> Result<crate::completion::Completions, HandlerError>;
}

/// Why a handler has no result.
///
/// Any [`Error`] becomes one by `?`: in a tool that is a failed result with a fixed text, elsewhere -32603; the cause
/// goes to `tracing`. Use [`ResultExt`] to say more. It is deliberately no [`Error`] itself.
pub struct HandlerError(Box<Fault>);

/// What went wrong, and whose fault it is.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The call lacks answers; the engine fetches them and runs the handler again.
    Unanswered,
    /// The tool failed and tells the model why.
    Told(Vec<ContentBlock>),
    /// Something failed; only a fixed text leaves the process.
    Failed(Box<dyn Error + Send + Sync>),
    /// A protocol error made on purpose.
    Rpc(RpcError),
    /// The resource does not exist.
    NotFound,
    /// The caller was not granted all of these scopes.
    Forbidden(Vec<String>),
    /// The client did not declare what this needs.
    Missing(Vec<ClientCapability>),
    /// The call was cancelled.
    Cancelled,
    /// Our own fault: -32603.
    Internal(Box<dyn Error + Send + Sync>),
    /// The call goes on somewhere outside.
    Elsewhere { provider: String, job: String },
}

impl HandlerError {
    pub(crate) fn new(fault: Fault) -> Self {
        Self(Box::new(fault))
    }

    pub(crate) fn into_fault(self) -> Fault {
        *self.0
    }

    /// The tool failed; the model reads `text`. In a resource or prompt this is -32603 with that text.
    pub fn tell(text: impl Into<String>) -> Self {
        Self::tell_with(vec![ContentBlock::text(text)])
    }

    /// The tool failed; the model reads this content.
    #[must_use]
    pub fn tell_with(content: Vec<ContentBlock>) -> Self {
        Self::new(Fault::Told(content))
    }

    /// A JSON-RPC error, sent as it is.
    #[must_use]
    pub fn rpc(error: RpcError) -> Self {
        Self::new(Fault::Rpc(error))
    }

    /// The resource that was to be read does not exist: -32002 or -32602, as the revision has it, with its `uri`.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(Fault::NotFound)
    }

    /// The client did not declare `capability`: -32021 where the revision has it; before, a tool's failure that the model
    /// reads, and -32602 from anything but a tool.
    #[must_use]
    pub fn missing_capability(capability: ClientCapability) -> Self {
        Self::new(Fault::Missing(vec![capability]))
    }

    /// The caller lacks a scope that only these arguments need: a challenge with 403 while the carrier's status is open,
    /// -32600 in any case. A scope that a tool always needs belongs to [`Tool::scopes`](crate::Tool::scopes).
    pub fn need_scope(scope: impl Into<String>) -> Self {
        Self::need_scopes([scope])
    }

    /// As [`Self::need_scope`]. Name all that the operation needs, those included that the caller has: clients ask for what
    /// they are told.
    pub fn need_scopes<S: Into<String>>(scopes: impl IntoIterator<Item = S>) -> Self {
        Self::new(Fault::Forbidden(scopes.into_iter().map(Into::into).collect()))
    }

    /// The handler noticed that the call was cancelled and stops.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(Fault::Cancelled)
    }

    /// Our own fault: -32603 with a fixed text; the cause goes to `tracing`.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Fault::Internal(cause.into()))
    }

    /// Not an error, but the end of the handler's part: the call goes on as `job` in a system outside, which `provider` names.
    /// Only an extension that runs calls as tasks knows what to do with it, and only where the call is or can become a task;
    /// elsewhere it is -32603, so the tool should [require](crate::TaskOffer::required) tasks.
    pub fn elsewhere(provider: impl Into<String>, job: impl Into<String>) -> Self {
        Self::new(Fault::Elsewhere { provider: provider.into(), job: job.into() })
    }

    /// Whether a question was refused before it was asked, or its answer was.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(*self.0, Fault::Missing(_) | Fault::Rpc(_))
    }

    /// Whether this is the error of an [`ask`](RequestContext::ask) without an answer, which the handler has to return.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        matches!(*self.0, Fault::Unanswered)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(cause: E) -> Self {
        Self::new(Fault::Failed(Box::new(cause)))
    }
}

/// Says what becomes of an error in a handler.
pub trait ResultExt<T> {
    /// The model is told the error's message.
    ///
    /// # Errors
    /// The error as [`HandlerError::tell`].
    fn or_tell(self) -> Result<T, HandlerError>;

    /// The model is told only that the tool failed; works for boxed errors and `anyhow` too.
    ///
    /// # Errors
    /// The error as a failed result with a fixed text.
    fn or_fail(self) -> Result<T, HandlerError>;

    /// -32603 without detail.
    ///
    /// # Errors
    /// The error as [`HandlerError::internal`].
    fn or_internal(self) -> Result<T, HandlerError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> ResultExt<T> for Result<T, E> {
    fn or_tell(self) -> Result<T, HandlerError> {
        self.map_err(|error| HandlerError::tell(error.into().to_string()))
    }

    fn or_fail(self) -> Result<T, HandlerError> {
        self.map_err(|error| HandlerError::new(Fault::Failed(error.into())))
    }

    fn or_internal(self) -> Result<T, HandlerError> {
        self.map_err(HandlerError::internal)
    }
}
