//! Signals: those that end the program, and the one that has it read its files again.
//!
//! Why here: what an operating system calls them is nobody else's business.

#[cfg(not(unix))]
pub(crate) use self::other::{Hangups, Signals};
#[cfg(unix)]
pub(crate) use self::unix::{Hangups, Signals};

#[cfg(unix)]
mod unix {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// SIGTERM and Ctrl-C, one after the other.
    pub(crate) struct Signals {
        terminate: Signal,
        interrupt: Signal,
    }

    impl Signals {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
        }

        pub(crate) async fn next(&mut self) {
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
            }
        }
    }

    /// SIGHUP, one after the other.
    pub(crate) struct Hangups(Signal);

    impl Hangups {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(signal(SignalKind::hangup())?))
        }

        pub(crate) async fn next(&mut self) {
            self.0.recv().await;
        }
    }
}

#[cfg(not(unix))]
mod other {
    use std::io;

    use tokio::signal::windows::{CtrlC, ctrl_c};

    /// Ctrl-C, one after the other.
    pub(crate) struct Signals(CtrlC);

    impl Signals {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(ctrl_c()?))
        }

        pub(crate) async fn next(&mut self) {
            self.0.recv().await;
        }
    }

    /// There is no such signal.
    pub(crate) struct Hangups;

    impl Hangups {
        #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        #[expect(clippy::needless_pass_by_ref_mut, reason = "elsewhere it changes")]
        pub(crate) async fn next(&mut self) {
            std::future::pending().await
        }
    }
}
