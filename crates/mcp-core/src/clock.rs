//! The wall clock, read in one place.
//!
//! Why here: expiry of sealed states and sessions is wall-clock time, yet tests run on tokio's paused clock; a clock that
//! starts at the wall and goes on with tokio serves both.
//! Invariants: never goes backwards within a process.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Wall-clock time that advances with tokio's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    wall: SystemTime,
    started: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub(crate) fn start() -> Self {
        Self { wall: SystemTime::now(), started: Instant::now() }
    }

    /// What time it is.
    pub(crate) fn now(self) -> SystemTime {
        self.wall.checked_add(self.started.elapsed()).unwrap_or(self.wall)
    }

    /// Milliseconds since the Unix epoch.
    pub(crate) fn now_ms(self) -> u64 {
        let wall = self.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = wall.saturating_add(self.started.elapsed());
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    }

    /// How long it is until `moment`; zero when it has passed.
    pub(crate) fn until(self, moment: SystemTime) -> Duration {
        let from_start = moment.duration_since(self.wall).unwrap_or_default();
        from_start.saturating_sub(self.started.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_left_until_a_moment_shrinks_to_nothing() {
        let clock = Clock::start();
        let moment = clock.wall + Duration::from_secs(60);
        assert_eq!(clock.until(moment), Duration::from_secs(60));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(clock.until(moment), Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!((clock.until(moment), clock.until(UNIX_EPOCH)), (Duration::ZERO, Duration::ZERO));
    }
}
