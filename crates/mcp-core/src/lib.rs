//! The server engine of the Model Context Protocol, without sockets.
//!
//! A [`Server`] is put together from [`Tool`]s, [`Resource`]s, [`ResourceTemplate`]s and [`Prompt`]s, each a value with a
//! handler. It serves every revision of the protocol; which one a message belongs to is decided message by message.
//! Transports are shells around it: they decode frames, ask [`Server::classify`] and [`Server::peer`], and bring the items
//! of an [`Exchange`] to the client.
//!
//! ```
//! use mcp_core::{Server, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet { name: String }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder("greeter", "1.0.0")
//!     .tool(Tool::typed("greet", |args: Greet, _context| async move {
//!         Ok(format!("Hello, {}!", args.name))
//!     }))
//!     .build()?;
//! # let _ = server;
//! # Ok(())
//! # }
//! ```

mod access;
mod clock;
mod completion;
mod context;
#[macro_use]
mod definition;
mod engine;
mod extension;
mod form;
mod handler;
mod layer;
mod limits;
#[cfg(feature = "log-forwarding")]
mod log_layer;
mod methods;
mod principal;
mod prompt;
mod protocol;
mod question;
mod random;
mod registry;
mod resource;
mod server;
pub mod store;
mod task;
mod telemetry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tool;
mod trace;
mod uri_template;

/// The protocol's messages and types, so that a server needs no second dependency for them.
pub use mcp_wire as wire;

pub use access::{AccessPolicy, Action, Denied, Item};
pub use completion::{CompletionRequest, Completions, FunctionCompleter, completer, completer_of};
pub use context::{ClientFacts, RequestContext, WeakRequestContext};
pub use engine::call::{
    Apart, Asked, AskedQuestion, BoxFuture, CallEvent, CallExecutor, CallOutcome, CallReply, PreparedCall, RunFuture,
    RunningCall, Settled, StoredCall, Taken,
};
pub use engine::elsewhere::Left;
pub use engine::exchange::{Exchange, Outbound};
pub use engine::peer::{Peer, Scope};
pub use engine::serve::{Connection, serve, serve_as};
pub use engine::sessions::{OpenStream, Session, Sessions, SessionsFull, WeakSession};
pub use engine::visits::NoSuchVisit;
pub use extension::{
    Extension, ExtensionError, ExtensionMethod, ExtensionReply, ExtensionRequest, ProtocolCapability, SubscriptionKind,
};
pub use form::*;
pub use handler::{Completer, HandlerError, PromptHandler, ResourceHandler, ResultExt, ToolHandler};
pub use layer::{CallLayer, LayeredCall, Next};
pub use limits::Limits;
#[cfg(feature = "log-forwarding")]
pub use log_layer::LogForwarding;
pub use principal::{NoOwnerKey, OwnerKey, Principal};
pub use prompt::{Prompt, PromptArguments, PromptReply};
pub use protocol::admit::{Carrier, Classified, Head, Legacy, Modern, Pipe, Split, Target};
pub use protocol::rejection::{Hint, Rejection};
pub use protocol::schema;
pub use protocol::seal::{KeyRing, StateKey};
pub use question::{Elicited, Form, ListRoots, QUESTION_METHODS, Question, Questions, Sample, Visit, check_answer};
pub use random::id as random_id;
pub use resource::{ReadRequest, Resource, ResourceReply, ResourceTemplate};
pub use server::{Handshake, Offer, RegistrationError, Server, ServerBuilder};
pub use task::{TaskOffer, TaskStart};
pub use telemetry::{Held, Meter, Open};
#[cfg(feature = "schemars")]
pub use tool::Structured;
pub use tool::{IntoToolReply, NoArguments, Tool, ToolReply};
pub use trace::TraceContext;
pub use uri_template::{
    MAX_TEMPLATE_BYTES, MAX_TEMPLATE_VARIABLES, MAX_URI_BYTES, Specificity, UriTemplate, UriTemplateError,
    VariableValue, Variables,
};

// The pages' code is compiled and run with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
