//! Tasks that live in a job system outside: the trait that brings them here.
//!
//! Why here: a queue or a workflow engine keeps its own state; copying it would make two truths.
//! Invariants: what a job came to is told to the owners of its tasks and to nobody else.

use async_trait::async_trait;
use mcp_core::ToolReply;
use mcp_wire::{RawJson, RpcError};

use crate::record::OpenQuestion;

/// A system that runs jobs, each of which is a task to clients.
///
/// A tool hands its call over with [`HandlerError::elsewhere`](mcp_core::HandlerError::elsewhere), naming the provider and
/// the job. From then on the job is asked for whenever the owner asks for the task. Whoever learns that a job has changed
/// says so with [`Tasks::job_changed`](crate::Tasks::job_changed), and the task's listeners are told.
#[async_trait]
pub trait TaskProvider: Send + Sync + 'static {
    /// Where a job stands. What ended must be told as long as the task is kept.
    ///
    /// # Errors
    /// [`ProviderError`]: the client gets -32603 and may ask again; the task stays as it is.
    async fn state(&self, job: &str) -> Result<JobState, ProviderError>;

    /// Asks for a job to be ended. It need not have ended when this returns; its task has.
    ///
    /// # Errors
    /// [`ProviderError`]: the client gets -32603, and the task goes on.
    async fn cancel(&self, job: &str) -> Result<(), ProviderError>;

    /// Hands answers to a job, each under the key of its question, which it fits. Keys that the job does not wait for are to
    /// be ignored.
    ///
    /// # Errors
    /// [`ProviderError`]: the client gets -32603 and may answer again.
    async fn update(&self, job: &str, answers: Vec<(String, RawJson)>) -> Result<(), ProviderError>;
}

/// Where a job stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum JobState {
    /// It runs, or waits to run.
    Working,
    /// It needs answers to these questions, whose keys must each mean one question for the whole life of the job.
    InputRequired(Vec<OpenQuestion>),
    /// It ended with this result.
    Completed(ToolReply),
    /// It ended with this error.
    Failed(RpcError),
    /// It was cancelled, or nobody knows it any more.
    Cancelled,
}

/// The job system does not answer.
#[derive(Debug, thiserror::Error)]
#[error("the job system is unavailable")]
pub struct ProviderError(#[source] Box<dyn std::error::Error + Send + Sync>);

impl ProviderError {
    /// With its cause, which is told to the operator alone.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}
