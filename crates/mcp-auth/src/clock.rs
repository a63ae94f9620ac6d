//! The wall clock that expiry is judged by.
//!
//! Why here: tokens expire by the wall, also while the machine sleeps, which a clock that goes on with tokio would miss;
//! so it is read each time, and tests hand in one of their own.
//! Invariants: read by whoever awaits, and handed to what decides.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the one place of this crate that reads the wall clock")]
    pub(crate) fn system() -> Self {
        Self(Arc::new(SystemTime::now))
    }

    pub(crate) fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Seconds since the Unix epoch.
    pub(crate) fn now(&self) -> u64 {
        (self.0)().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}
