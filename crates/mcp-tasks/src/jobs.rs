//! Tasks whose jobs run in a system outside: where a job stands, and who hears of it.
//!
//! Why here: every look at a job, whoever wants it, must come to the same end of its task.
//! Invariants: a job is asked when somebody wants to know, and nothing of what it says is kept but its end.

use mcp_core::Server;
use mcp_wire::{RawJson, RpcError};

use crate::provider::{JobState, ProviderError, TaskProvider};
use crate::record::{OpenQuestion, TaskEvent, TaskRecord};
use crate::store::StoreError;
use crate::tasks::{ChangeError, Tasks};

/// Why nobody could be told of a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// No provider was added under this name.
    #[error("there is no provider \"{0}\"")]
    NoProvider(String),
    /// The provider could not say where the job stands.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The tasks of the job could not be read or changed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Tasks {
    /// Says that a job has changed: its provider is asked where it stands, its tasks end if it has ended, and whoever listens
    /// for one of them or waits for its result is told. For the place where the job system's own notices arrive, such as a
    /// webhook or a consumer of a queue, of any process that shares the store; listeners are told in the process that calls
    /// this. A job that no task stands in is nothing to anybody.
    ///
    /// # Errors
    /// [`JobError`]. Nobody was told then, or not everybody: say it again later.
    pub async fn job_changed(&self, provider: &str, job: &str, server: &Server) -> Result<(), JobError> {
        let records = self.store().of_job(provider, job).await?;
        if records.is_empty() {
            return Ok(());
        }
        let state = self.job_state(provider, job).await?;
        for record in records {
            let (record, open) = match self.stands(record, state.clone(), server).await {
                Ok(seen) => seen,
                // It was forgotten meanwhile.
                Err(ChangeError::Unknown | ChangeError::Ended(_)) => continue,
                Err(ChangeError::Store(error)) => return Err(error.into()),
            };
            // An end is told where it is stored.
            if !record.is_ended() {
                self.told(&record, open.as_deref(), server);
            }
        }
        Ok(())
    }

    pub(crate) async fn job_state(&self, provider: &str, job: &str) -> Result<JobState, JobError> {
        Ok(self.job_system(provider)?.state(job).await?)
    }

    pub(crate) fn job_system(&self, provider: &str) -> Result<&dyn TaskProvider, JobError> {
        self.provider(provider).map(|found| &**found).ok_or_else(|| JobError::NoProvider(provider.to_owned()))
    }

    /// The task as it is when its job stands so, with what the job wants to know.
    pub(crate) async fn stands(
        &self,
        record: TaskRecord,
        state: JobState,
        server: &Server,
    ) -> Result<(TaskRecord, Option<Vec<OpenQuestion>>), ChangeError> {
        let event = match state {
            JobState::Working => return Ok((record, None)),
            JobState::InputRequired(open) => return Ok((record, Some(open))),
            JobState::Completed(reply) => {
                let is_error = reply.is_error;
                match RawJson::from_serialize(&reply.into_result()) {
                    Ok(result) => TaskEvent::Finished { result, is_error },
                    Err(error) => {
                        tracing::error!(%error, "the result of a job could not be encoded");
                        TaskEvent::Failed(RpcError::internal())
                    }
                }
            }
            JobState::Failed(error) => TaskEvent::Failed(error),
            JobState::Cancelled => TaskEvent::Cancelled,
        };
        match self.change(record.owner, record.id.as_str(), &event, server).await {
            Ok(record) => Ok((record, None)),
            Err(ChangeError::Ended(record)) => Ok((*record, None)),
            Err(error) => Err(error),
        }
    }
}
