//! Does what other processes ask of this one, and looks after what is shared.
//!
//! Why here: an answer that came elsewhere waits for nobody's request.
//! Invariants: one task per endpoint with shared stores; it ends with the endpoint or the server; an errand for a session
//! that is not here, or that the sender thinks is somebody else's, is dropped.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use mcp_core::store::{AnswerRoute, AnswerRouteError, Errand, ErrandKind};

use super::several::Several;
use crate::server::service::Shared;

/// How often what is shared is looked after, at the least.
const LOOK: Duration = Duration::from_secs(60);

/// How long a route that failed is left alone, and how long it may take to be left.
const PAUSE: Duration = Duration::from_secs(1);

/// Begins to fetch what is for this endpoint.
pub(super) fn start(shared: &Shared, several: &Several, process: &Arc<str>) {
    let (weak, gone) = (shared.this.clone(), shared.gone.clone());
    let (route, process) = (Arc::clone(&several.stores.route), Arc::clone(process));
    #[expect(clippy::disallowed_methods, reason = "ends with the endpoint or the server, whichever is first")]
    tokio::spawn(async move {
        {
            let (mut fetching, mut looking) = (pin!(fetch(&weak, &*route, &process)), pin!(look_after(&weak)));
            let both = std::future::poll_fn(|context| match fetching.as_mut().poll(context) {
                Poll::Pending => looking.as_mut().poll(context),
                over @ Poll::Ready(()) => over,
            });
            gone.run_until_cancelled(both).await;
        }
        // A route that does not hear it forgets whoever fetches nothing.
        let _ = tokio::time::timeout(PAUSE, route.leave(&process)).await;
    });
}

/// Fetches errands until the endpoint is gone.
async fn fetch(endpoint: &Weak<Shared>, route: &dyn AnswerRoute, process: &str) {
    loop {
        let error = match route.receive(process).await {
            Ok(errands) => {
                for errand in errands {
                    let Some(shared) = endpoint.upgrade() else { return };
                    run(&shared, process, errand).await;
                }
                continue;
            }
            Err(AnswerRouteError::NoProcess) => route.join(process).await.err(),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            tracing::warn!(%error, "errands of other processes are delayed");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn run(shared: &Shared, process: &str, errand: Errand) {
    let Errand { from, session: id, owner, kind, .. } = errand;
    if from == process {
        return;
    }
    let Some((session, streams)) = shared.sessions.held(&id, owner) else { return };
    match &kind {
        ErrandKind::Ended => shared.sessions.forget(&id),
        ErrandKind::Changed => {
            if let Some(several) = &shared.several {
                several.reread(shared, &session).await;
            }
        }
        ErrandKind::Listening => streams.stop_listening(),
        ErrandKind::Resumed { stream } => streams.read_elsewhere(stream),
        _ => session.run_errand(owner, &kind),
    }
}

/// Renews the sessions in which something is under way, and ends here what has ended elsewhere.
async fn look_after(endpoint: &Weak<Shared>) {
    let Some(idle) = endpoint.upgrade().map(|shared| shared.server.limits().session_idle) else { return };
    loop {
        tokio::time::sleep(LOOK.min(idle / 4).max(PAUSE)).await;
        let Some(shared) = endpoint.upgrade() else { return };
        let Some(several) = &shared.several else { return };
        shared.sessions.sweep();
        for session in shared.sessions.busy() {
            match several.renew(&shared, session.id()).await {
                Ok(true) => {}
                Ok(false) => shared.sessions.forget(session.id()),
                // Not for each of many sessions in turn.
                Err(_) => break,
            }
        }
        let now = shared.server.now_ms();
        // What fails is told by whoever waits for it, and tried again the next time.
        let _ = several.within("removing sessions", several.stores.sessions.remove_expired(now)).await;
        let _ = several.within("removing events", several.stores.events.remove_expired(now)).await;
    }
}
