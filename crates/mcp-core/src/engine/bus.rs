//! Exchanges change notices with the other processes that serve the same clients.
//!
//! Why here: the hub marks without waiting; somebody has to wait for a bus, and the server's owner decides who.
//! Invariants: what waits for the bus is a bounded set; a bus that fails delays notices and nothing else; what may have been
//! missed meanwhile is told as if everything had changed.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};

use super::hub::{Change, Hub};
use crate::resource::Address;
use crate::store::{ChangeRecord, Changes, NoticeBus, NoticeBusError};

/// How long the bus may take to be told.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a bus that failed is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// The way to the other processes.
pub(crate) struct Abroad {
    bus: Arc<dyn NoticeBus>,
    /// This server's name on the bus.
    process: String,
    waiting: Mutex<Changes>,
    told: Notify,
    /// Whoever runs the exchange; a second one waits for the end of the first.
    running: Semaphore,
}

impl Abroad {
    pub(crate) fn new(bus: Arc<dyn NoticeBus>, process: String) -> Self {
        Self { bus, process, waiting: Mutex::default(), told: Notify::new(), running: Semaphore::new(1) }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Changes> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the others know, as soon as somebody runs the exchange.
    pub(crate) fn tell(&self, change: Change<'_>) {
        let change = match change {
            Change::Everything => ChangeRecord::Everything,
            Change::Tools => ChangeRecord::Tools,
            Change::Prompts => ChangeRecord::Prompts,
            Change::Resources => ChangeRecord::Resources,
            Change::Resource(uri) => ChangeRecord::Resource(uri.0.clone()),
            Change::Extension(kind) => ChangeRecord::Extension(kind.to_owned()),
            // Of one session, which is here; of a thing with a name only this process knows what there is to tell.
            Change::Visit(_) | Change::Named(..) => return,
        };
        self.waiting().add(change);
        self.told.notify_one();
    }

    /// Tells and listens until the returned future is dropped.
    pub(crate) async fn run(&self, hub: &Hub) {
        let Ok(_running) = self.running.acquire().await else { return };
        let mut missed = false;
        loop {
            let Err(error) = self.exchange(hub, missed).await;
            tracing::warn!(error = &error as &dyn std::error::Error, "change notices of other processes are delayed");
            missed = true;
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(crate) async fn leave(&self) {
        // A bus that does not hear it forgets whoever fetches nothing.
        let _ = tokio::time::timeout(PATIENCE, self.bus.leave(&self.process)).await;
    }

    async fn exchange(&self, hub: &Hub, missed: bool) -> Result<Infallible, NoticeBusError> {
        self.bus.join(&self.process).await?;
        if missed {
            hub.mark_all(Change::Everything);
        }
        let (mut telling, mut listening) = (pin!(self.telling()), pin!(self.listening(hub)));
        std::future::poll_fn(|context| match telling.as_mut().poll(context) {
            Poll::Pending => listening.as_mut().poll(context),
            failed @ Poll::Ready(_) => failed,
        })
        .await
    }

    async fn telling(&self) -> Result<Infallible, NoticeBusError> {
        loop {
            let changes = self.waiting().take();
            if changes.is_empty() {
                self.told.notified().await;
                continue;
            }
            let told = tokio::time::timeout(PATIENCE, self.bus.publish(&self.process, &changes)).await;
            let told = told.unwrap_or_else(|elapsed| Err(NoticeBusError::Unavailable(elapsed.into())));
            if let Err(error) = told {
                let mut waiting = self.waiting();
                changes.into_iter().for_each(|change| waiting.add(change));
                return Err(error);
            }
        }
    }

    async fn listening(&self, hub: &Hub) -> Result<Infallible, NoticeBusError> {
        loop {
            for notice in self.bus.receive(&self.process).await? {
                if notice.from == self.process {
                    continue;
                }
                let address;
                hub.mark_all(match &notice.change {
                    ChangeRecord::Everything => Change::Everything,
                    ChangeRecord::Tools => Change::Tools,
                    ChangeRecord::Prompts => Change::Prompts,
                    ChangeRecord::Resources => Change::Resources,
                    ChangeRecord::Resource(uri) => {
                        address = Address(uri.clone());
                        Change::Resource(&address)
                    }
                    ChangeRecord::Extension(kind) => Change::Extension(kind),
                });
            }
        }
    }
}
