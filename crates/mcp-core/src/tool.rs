//! Tools: how they are written, registered and answered for.
//!
//! Why here: a tool is a value with a handler; no macro, no trait of one's own is needed for the ordinary one.
//! Invariants: arguments were checked against the advertised schema before a handler sees them, structured results are
//! checked against theirs before a client does.
//! Spec: 2026-07-28 server/tools

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_wire::capability::ClientCapability;
use mcp_wire::types::{self, CallToolResult, ContentBlock, Icon, MetaObject, ToolAnnotations};
use mcp_wire::{RawJson, Revision, RpcError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

#[cfg(feature = "schemars")]
use crate::engine::worker;
use crate::handler::ToolHandler;
use crate::layer::CallLayer;
use crate::protocol::admit::ToolRules;
use crate::protocol::schema::{CompiledSchema, SchemaRole, SchemaValidator, mirrored_parameters};
use crate::registry::{self, Entry, Rendered};
use crate::server::RegistrationError;
use crate::task::TaskOffer;
use crate::telemetry::ToolMeter;
use crate::{HandlerError, RequestContext};

/// A tool, ready to be registered.
#[must_use = "a tool is served once it is registered"]
pub struct Tool {
    definition: types::Tool,
    handler: Arc<dyn ToolHandler>,
    blocking: bool,
    timeout: Option<Option<Duration>>,
    max_in_flight: Option<usize>,
    needs: Vec<ClientCapability>,
    scopes: Vec<String>,
    layers: Vec<Arc<dyn CallLayer>>,
    check_arguments: bool,
    check_result: bool,
    task: Option<TaskOffer>,
}

/// What a tool answers.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolReply {
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// What a program reads.
    pub structured: Option<RawJson>,
    /// The tool failed, and the content says why.
    pub is_error: bool,
    /// `_meta` of the result.
    pub meta: Option<MetaObject>,
}

impl ToolReply {
    /// A reply with this content.
    #[must_use]
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self { content, ..Self::default() }
    }

    /// A reply with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }

    /// A failed reply; the model reads the text.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The reply as the newest revision says it.
    #[must_use]
    pub fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::new(self.content);
        result.structured_content = self.structured;
        result.is_error = self.is_error.then_some(true);
        result.meta = self.meta;
        result
    }

    /// The same reply with structured content, which has to match the output schema.
    #[must_use]
    pub fn with_structured(mut self, structured: impl Into<RawJson>) -> Self {
        self.structured = Some(structured.into());
        self
    }

    /// The same reply with `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: MetaObject) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// What a handler may return from [`Tool::typed`] and its neighbours.
pub trait IntoToolReply {
    /// Makes the reply.
    ///
    /// # Errors
    /// When a value cannot be encoded, or is an error itself.
    fn into_tool_reply(self) -> Result<ToolReply, HandlerError>;

    /// The schema of the structured content, where the type has one.
    #[must_use]
    fn output_schema() -> Option<RawJson>
    where
        Self: Sized,
    {
        None
    }
}

impl IntoToolReply for ToolReply {
    fn into_tool_reply(self) -> Result<ToolReply, HandlerError> {
        Ok(self)
    }
}

impl IntoToolReply for String {
    fn into_tool_reply(self) -> Result<ToolReply, HandlerError> {
        Ok(ToolReply::text(self))
    }
}

impl IntoToolReply for &str {
    fn into_tool_reply(self) -> Result<ToolReply, HandlerError> {
        Ok(ToolReply::text(self))
    }
}

impl IntoToolReply for ContentBlock {
    fn into_tool_reply(self) -> Result<ToolReply, HandlerError> {
        Ok(ToolReply::new(vec![self]))
    }
}

impl IntoToolReply for Vec<ContentBlock> {
    fn into_tool_reply(self) -> Result<ToolReply, HandlerError> {
        Ok(ToolReply::new(self))
    }
}

impl<T: IntoToolReply> IntoToolReply for Result<T, HandlerError> {
    fn into_tool_reply(self) -> Result<ToolReply, HandlerError> {
        self.and_then(T::into_tool_reply)
    }

    fn output_schema() -> Option<RawJson> {
        T::output_schema()
    }
}

/// A structured result: programs read it as JSON, models read the same JSON as text. Its schema is advertised.
#[cfg(feature = "schemars")]
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper is what it wraps")]
pub struct Structured<T>(pub T);

#[cfg(feature = "schemars")]
impl<T: Serialize + schemars::JsonSchema> IntoToolReply for Structured<T> {
    fn into_tool_reply(self) -> Result<ToolReply, HandlerError> {
        let structured = RawJson::from_serialize(&self.0).map_err(HandlerError::internal)?;
        Ok(ToolReply::text(structured.as_str()).with_structured(structured))
    }

    fn output_schema() -> Option<RawJson> {
        Some(schema_of::<T>(schemars::generate::Contract::Serialize))
    }
}

/// The arguments of a tool that takes none; anything given is refused by its schema.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "there are no arguments")]
pub struct NoArguments {}

// Not derived: a description would be the same for every such tool and cost tokens in every list.
#[cfg(feature = "schemars")]
impl schemars::JsonSchema for NoArguments {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NoArguments".into()
    }

    fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object", "properties": {}, "additionalProperties": false })
    }
}

#[cfg(feature = "schemars")]
pub(crate) fn schema_of<T: schemars::JsonSchema>(contract: schemars::generate::Contract) -> RawJson {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        // The dialect is the protocol's default; naming it in every list costs tokens.
        settings.meta_schema = None;
        settings.contract = contract;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // A Rust type's name tells a model nothing, and its documentation is for those who read the code.
    schema.remove("title");
    schema.remove("description");
    RawJson::from(schema.as_value())
}

impl Tool {
    /// A tool whose arguments decode into `A` and whose input schema is `A`'s.
    ///
    /// ```
    /// # use mcp_core::{Tool, HandlerError};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Add { a: i64, b: i64 }
    ///
    /// let tool = Tool::typed("add", |args: Add, _context| async move {
    ///     args.a.checked_add(args.b).map(|sum| sum.to_string()).ok_or_else(|| HandlerError::tell("too large"))
    /// });
    /// # drop(tool);
    /// ```
    #[cfg(feature = "schemars")]
    pub fn typed<A, R, F, W>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + schemars::JsonSchema + Send + 'static,
        R: IntoToolReply + 'static,
        F: Fn(A, RequestContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let schema = schema_of::<A>(schemars::generate::Contract::Deserialize);
        Self::of_function::<A, R, F, W>(name, schema, handler)
    }

    /// As [`Self::typed`], with state that every call gets a handle of.
    #[cfg(feature = "schemars")]
    pub fn typed_with<S, A, R, F, W>(name: impl Into<String>, state: Arc<S>, handler: F) -> Self
    where
        S: Send + Sync + 'static,
        A: DeserializeOwned + schemars::JsonSchema + Send + 'static,
        R: IntoToolReply + 'static,
        F: Fn(Arc<S>, A, RequestContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        Self::typed(name, move |arguments: A, context| handler(Arc::clone(&state), arguments, context))
    }

    /// A tool that answers at once, without waiting for anything.
    #[cfg(feature = "schemars")]
    pub fn plain<A, R, F>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + schemars::JsonSchema + Send + 'static,
        R: IntoToolReply + 'static,
        F: Fn(A) -> R + Send + Sync + 'static,
    {
        let schema = schema_of::<A>(schemars::generate::Contract::Deserialize);
        let mut tool = Self::from_handler(name, schema, Plain { handler, types: PhantomData::<fn(A) -> R> });
        tool.definition.output_schema = R::output_schema();
        tool
    }

    /// A tool that blocks its thread. It runs on tokio's blocking pool, and [`Limits::blocking`](crate::Limits::blocking)
    /// calls of such tools run at a time. It cannot be stopped: after a cancellation or a timeout it runs on, unheard,
    /// while its place is free for the next call.
    #[cfg(feature = "schemars")]
    pub fn blocking<A, R, F>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + schemars::JsonSchema + Send + 'static,
        R: IntoToolReply + 'static,
        F: Fn(A, RequestContext) -> R + Send + Sync + 'static,
    {
        let schema = schema_of::<A>(schemars::generate::Contract::Deserialize);
        let handler = Blocking { handler, types: PhantomData::<fn(A) -> R> };
        let mut tool = Self::from_handler(name, schema, handler);
        tool.definition.output_schema = R::output_schema();
        tool.blocking = true;
        tool
    }

    /// A tool with a JSON Schema of one's own; the handler gets the arguments untouched.
    pub fn raw<R, F, W>(name: impl Into<String>, input_schema: impl Into<RawJson>, handler: F) -> Self
    where
        R: IntoToolReply + 'static,
        F: Fn(RawJson, RequestContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        Self::of_function::<RawJson, R, F, W>(name, input_schema.into(), handler)
    }

    fn of_function<A, R, F, W>(name: impl Into<String>, schema: RawJson, handler: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        R: IntoToolReply + 'static,
        F: Fn(A, RequestContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let mut tool = Self::from_handler(name, schema, Function { handler, types: PhantomData::<fn(A) -> R> });
        tool.definition.output_schema = R::output_schema();
        tool
    }

    /// A tool with a handler of one's own type.
    pub fn from_handler(name: impl Into<String>, input_schema: impl Into<RawJson>, handler: impl ToolHandler) -> Self {
        Self {
            definition: types::Tool::new(name, input_schema),
            handler: Arc::new(handler),
            blocking: false,
            timeout: None,
            max_in_flight: None,
            needs: Vec::new(),
            scopes: Vec::new(),
            layers: Vec::new(),
            check_arguments: true,
            check_result: true,
            task: None,
        }
    }

    definition_setters! {
        /// What a person sees.
        title: String;
        /// What the model reads to choose and use the tool.
        description: String;
        /// Hints on what the tool does to the world.
        annotations: ToolAnnotations;
        /// Pictures for lists.
        icons: Vec<Icon>;
        /// `_meta` of the tool's definition.
        meta: MetaObject;
        /// Replaces the schema of the structured result.
        output_schema: RawJson;
    }

    /// How long one attempt of the handler may run; `None` for as long as it likes. Default:
    /// [`Limits::call_timeout`](crate::Limits::call_timeout).
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// How many calls of this tool run at a time, at least one; further ones wait, within their timeout. Default: no bound
    /// of its own. A [blocking](Self::blocking) tool then has this bound instead of the server's.
    pub fn max_in_flight(mut self, calls: usize) -> Self {
        self.max_in_flight = Some(calls.max(1));
        self
    }

    /// A client capability without which the tool is refused before it runs.
    pub fn needs(mut self, capability: ClientCapability) -> Self {
        self.needs.push(capability);
        self
    }

    /// Scopes that the caller must have been granted, all of them.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Puts a layer around every call of this tool: within the layers that are there already and those of the server.
    pub fn layer(mut self, layer: impl CallLayer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Says that calls may, or must, become tasks, on a server that has them. A task is not bounded by the default of
    /// [`Self::timeout`] but by its lifetime. Default: calls never become tasks.
    pub fn task(mut self, offer: TaskOffer) -> Self {
        self.task = Some(offer);
        self
    }

    /// Leaves the check of arguments against the input schema to the handler.
    pub fn without_argument_check(mut self) -> Self {
        self.check_arguments = false;
        self
    }

    /// Leaves the check of structured results against the output schema out.
    pub fn without_result_check(mut self) -> Self {
        self.check_result = false;
        self
    }

    /// The name that clients will know.
    pub(crate) fn name_mut(&mut self) -> &mut String {
        &mut self.definition.name
    }

    /// Puts layers around those that are there.
    pub(crate) fn enclose(&mut self, outer: &[Arc<dyn CallLayer>]) {
        self.layers.splice(0..0, outer.iter().cloned());
    }

    pub(crate) fn compile(mut self, surroundings: &Surroundings<'_>) -> Result<ToolEntry, RegistrationError> {
        let Surroundings { validator, default_timeout, blocking, has_tasks } = *surroundings;
        let name = self.definition.name.clone();
        check_name(&name)?;
        match &self.task {
            Some(offer) if has_tasks => self.definition.execution = Some(types::ToolExecution::new(offer.support())),
            Some(offer) if offer.support() == types::TaskSupport::Required => {
                return Err(RegistrationError::NeedsTasks(name));
            }
            _ => self.task = None,
        }
        let failed = |what: &'static str| {
            let name = name.clone();
            move |cause| RegistrationError::Schema { name, what, cause }
        };
        let parse = |schema: &RawJson| schema.parse::<serde_json::Value>().unwrap_or_default();
        let input = parse(&self.definition.input_schema);
        let arguments = validator.compile(&input, SchemaRole::Arguments).map_err(failed("input"))?;
        let mirrored = mirrored_parameters(&input).map_err(failed("input"))?;
        let result = match &self.definition.output_schema {
            Some(schema) => Some(validator.compile(&parse(schema), SchemaRole::Result).map_err(failed("output"))?),
            None => None,
        };
        let slots = match (self.max_in_flight, self.blocking) {
            (Some(calls), _) => Some(Arc::new(Semaphore::new(calls))),
            (None, true) => Some(Arc::clone(blocking)),
            (None, false) => None,
        };
        Ok(ToolEntry {
            rules: ToolRules { mirrored, needs: self.needs, scopes: self.scopes },
            handler: self.handler,
            layers: self.layers.into(),
            bounds_itself: self.timeout.is_some(),
            timeout: self.timeout.unwrap_or(default_timeout),
            slots,
            arguments: self.check_arguments.then_some(arguments),
            must_structure: self.definition.output_schema.is_some(),
            counted: ToolMeter::default(),
            result: result.filter(|_| self.check_result),
            task: self.task,
            definition: self.definition,
            rendered: Rendered::default(),
        })
    }
}

/// What a server has that its tools are compiled with.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) validator: &'a dyn SchemaValidator,
    pub(crate) default_timeout: Option<Duration>,
    pub(crate) blocking: &'a Arc<Semaphore>,
    /// Whether calls may become tasks at all.
    pub(crate) has_tasks: bool,
}

/// The names that the specification asks for, so that every client takes them.
pub(crate) fn check_name(name: &str) -> Result<(), RegistrationError> {
    let fits = (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if fits { Ok(()) } else { Err(RegistrationError::Name(name.chars().take(140).collect())) }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.definition.name).finish_non_exhaustive()
    }
}

/// A registered tool.
pub(crate) struct ToolEntry {
    pub(crate) definition: types::Tool,
    pub(crate) rules: ToolRules,
    pub(crate) handler: Arc<dyn ToolHandler>,
    /// Around the handler, the outermost first.
    pub(crate) layers: Box<[Arc<dyn CallLayer>]>,
    pub(crate) timeout: Option<Duration>,
    /// The timeout is the tool's own and not the server's default.
    pub(crate) bounds_itself: bool,
    pub(crate) slots: Option<Arc<Semaphore>>,
    pub(crate) arguments: Option<Arc<dyn CompiledSchema>>,
    pub(crate) result: Option<Arc<dyn CompiledSchema>>,
    /// An output schema is advertised, so a success has to carry structured content.
    pub(crate) must_structure: bool,
    pub(crate) task: Option<TaskOffer>,
    pub(crate) counted: ToolMeter,
    rendered: Rendered,
}

impl Entry for ToolEntry {
    fn key(&self) -> &str {
        &self.definition.name
    }

    fn render(&self, revision: Revision) -> Bytes {
        let mut definition = self.definition.clone();
        definition.for_rules(revision.rules());
        registry::encode(&definition)
    }

    fn rendered(&self) -> &Rendered {
        &self.rendered
    }
}

struct Function<F, T> {
    handler: F,
    types: PhantomData<T>,
}

#[async_trait]
impl<A, R, F, W> ToolHandler for Function<F, fn(A) -> R>
where
    A: DeserializeOwned + Send + 'static,
    R: IntoToolReply + 'static,
    F: Fn(A, RequestContext) -> W + Send + Sync + 'static,
    W: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    async fn call(self: Arc<Self>, arguments: RawJson, context: RequestContext) -> Result<ToolReply, HandlerError> {
        let arguments = decode(&arguments)?;
        (self.handler)(arguments, context).await.and_then(R::into_tool_reply)
    }
}

#[cfg(feature = "schemars")]
struct Plain<F, T> {
    handler: F,
    types: PhantomData<T>,
}

#[cfg(feature = "schemars")]
#[async_trait]
impl<A, R, F> ToolHandler for Plain<F, fn(A) -> R>
where
    A: DeserializeOwned + Send + 'static,
    R: IntoToolReply + 'static,
    F: Fn(A) -> R + Send + Sync + 'static,
{
    async fn call(self: Arc<Self>, arguments: RawJson, _context: RequestContext) -> Result<ToolReply, HandlerError> {
        (self.handler)(decode(&arguments)?).into_tool_reply()
    }
}

#[cfg(feature = "schemars")]
struct Blocking<F, T> {
    handler: F,
    types: PhantomData<T>,
}

#[cfg(feature = "schemars")]
#[async_trait]
impl<A, R, F> ToolHandler for Blocking<F, fn(A) -> R>
where
    A: DeserializeOwned + Send + 'static,
    R: IntoToolReply + 'static,
    F: Fn(A, RequestContext) -> R + Send + Sync + 'static,
{
    async fn call(self: Arc<Self>, arguments: RawJson, context: RequestContext) -> Result<ToolReply, HandlerError> {
        let arguments = decode(&arguments)?;
        // The slot goes along: code that runs on after a timeout still counts.
        let slot = context.0.attempt().slot.take();
        let work = move || {
            let _slot = slot;
            (self.handler)(arguments, context).into_tool_reply()
        };
        match worker::block(work).await {
            Ok(reply) => reply,
            // The same end as a panic of any other handler.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn decode<A: DeserializeOwned>(arguments: &RawJson) -> Result<A, HandlerError> {
    arguments.parse().map_err(|error: serde_json::Error| match error.is_syntax() {
        true => HandlerError::rpc(RpcError::undecodable("params.arguments", &error)),
        // The model can repair these.
        false => HandlerError::tell(format!("the arguments do not fit: {error}")),
    })
}
