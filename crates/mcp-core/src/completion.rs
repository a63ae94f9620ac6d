//! Suggestions for arguments of prompts and variables of templates.
//!
//! Why here: the smallest of the handler kinds; it cannot ask the client anything, so it gets no context that could.
//! Spec: 2026-07-28 server/utilities/completion

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

use crate::handler::Completer;
use crate::{HandlerError, Principal};

/// What was typed so far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The argument or variable.
    pub name: String,
    /// Its value so far.
    pub value: String,
    /// Arguments that are already known, where the client tells.
    pub known: BTreeMap<String, String>,
    /// Who types.
    pub principal: Principal,
}

impl CompletionRequest {
    pub(crate) fn new(name: String, value: String, known: BTreeMap<String, String>, principal: Principal) -> Self {
        Self { name, value, known, principal }
    }
}

/// Suggested values, best first. At most 100 reach the client; it is told when there are more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completions {
    /// The values.
    pub values: Vec<String>,
    /// How many there are in all, where that is known and more than are listed.
    pub total: Option<u64>,
}

impl Completions {
    /// These values and no more.
    pub fn new<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Self {
        Self { values: values.into_iter().map(Into::into).collect(), total: None }
    }
}

/// A completer made of a function: see [`completer`].
#[derive(Debug)]
pub struct FunctionCompleter<F>(F);

/// Makes a completer of a function.
pub fn completer<F, W>(function: F) -> FunctionCompleter<F>
where
    F: Fn(CompletionRequest) -> W + Send + Sync + 'static,
    W: Future<Output = Result<Completions, HandlerError>> + Send + 'static,
{
    FunctionCompleter(function)
}

/// A completer with a fixed list, of which it suggests what begins like the value so far.
pub fn completer_of<S: Into<String>>(values: impl IntoIterator<Item = S>) -> impl Completer {
    let values: Vec<String> = values.into_iter().map(Into::into).collect();
    completer(move |request: CompletionRequest| {
        let fitting = values.iter().filter(|value| value.starts_with(&request.value)).cloned();
        std::future::ready(Ok(Completions::new(fitting)))
    })
}

#[async_trait]
impl<F, W> Completer for FunctionCompleter<F>
where
    F: Fn(CompletionRequest) -> W + Send + Sync + 'static,
    W: Future<Output = Result<Completions, HandlerError>> + Send + 'static,
{
    async fn complete(self: Arc<Self>, request: CompletionRequest) -> Result<Completions, HandlerError> {
        (self.0)(request).await
    }
}
