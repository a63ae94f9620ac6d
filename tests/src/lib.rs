//! The harness of the behaviour tests: one client that speaks every era over every carrier.
//!
//! A behaviour is written once, as `async fn name(lane: Lane)`, and mounted once per *lane*: a carrier (memory, http,
//! stdio) and an era (legacy, modern). What differs between lanes (handshake, session header, `_meta`, mirrored headers, the way a
//! question travels) is in this library and nowhere else.
//!
//! Why a lane is left out of a behaviour stands beside the behaviour, in its file's [`lanes!`] block; the test
//! `lanes_left_out_say_why` prints all of them as one table.
//!
//! Time is tokio's paused clock. It moves only when nothing else can happen, which makes [`idle`] a barrier and not a
//! guess.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a harness ends the test it serves as soon as something is not as it must be"
)]
#![expect(clippy::needless_pass_by_value, reason = "tests write JSON where they need it")]
#![expect(clippy::exhaustive_structs, clippy::exhaustive_enums, reason = "used by the tests of this package alone")]

mod call;
mod client;
mod http;
mod interview;
mod lane;
mod memory;
mod stdio;
mod wire;

pub use call::{Call, Item, Reply};
pub use client::{Client, Watch};
pub use http::{Event, Events, HttpAnswer, http_config};
pub use interview::{Interview, Question};
pub use lane::{Host, Lane, Profile};

use std::future::Future;
use std::time::Duration;

/// Waits until nothing in the runtime can go on without the clock: the paused clock moves only then.
pub async fn idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// What the future comes to, unless nothing happens for a day of the paused clock: then the test fails instead of hanging.
///
/// # Panics
/// When nothing happens.
pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(Duration::from_secs(24 * 60 * 60), future).await {
        Ok(output) => output,
        Err(_) => panic!("nothing happens any more, waiting for {what}"),
    }
}

/// Mounts behaviours (`async fn name(lane: Lane)`) once per lane, as `memory_legacy::name` and so on.
///
/// `everywhere { .. }` comes first; then groups that are mounted in some lanes only, each with the reason why the others
/// are left out: an era (`legacy`, `modern`), a carrier (`memory`, `http`, `stdio`), both carriers of connections
/// (`connection`), or one of these in an era (`memory_legacy`, `connection_modern` and so on). A behaviour that is in no group, or in one with a wrong name, is dead code and fails the build.
#[macro_export]
macro_rules! lanes {
    (
        everywhere { $($common:ident),* $(,)? }
        $($which:ident $why:literal { $($name:ident),+ $(,)? })*
    ) => {
        mod memory_legacy {
            $($crate::mount!(memory_legacy, everywhere, $common);)*
            $($($crate::mount!(memory_legacy, $which, $name);)+)*
        }
        mod memory_modern {
            $($crate::mount!(memory_modern, everywhere, $common);)*
            $($($crate::mount!(memory_modern, $which, $name);)+)*
        }
        mod http_legacy {
            $($crate::mount!(http_legacy, everywhere, $common);)*
            $($($crate::mount!(http_legacy, $which, $name);)+)*
        }
        mod http_modern {
            $($crate::mount!(http_modern, everywhere, $common);)*
            $($($crate::mount!(http_modern, $which, $name);)+)*
        }
        mod stdio_legacy {
            $($crate::mount!(stdio_legacy, everywhere, $common);)*
            $($($crate::mount!(stdio_legacy, $which, $name);)+)*
        }
        mod stdio_modern {
            $($crate::mount!(stdio_modern, everywhere, $common);)*
            $($($crate::mount!(stdio_modern, $which, $name);)+)*
        }

        /// What is not mounted in every lane: the behaviour, where it is mounted, and why not elsewhere.
        pub(crate) const LEFT_OUT: &[(&str, &str, &str)] = &[
            $($((concat!(module_path!(), "::", stringify!($name)), stringify!($which), $why),)+)*
        ];
    };
}

/// One behaviour in one lane, if it is to be mounted there: see [`lanes!`].
#[doc(hidden)]
#[macro_export]
macro_rules! mount {
    (memory_legacy, everywhere, $name:ident) => { $crate::mount!(@ $name, MEMORY_LEGACY); };
    (memory_legacy, legacy, $name:ident) => { $crate::mount!(@ $name, MEMORY_LEGACY); };
    (memory_legacy, memory, $name:ident) => { $crate::mount!(@ $name, MEMORY_LEGACY); };
    (memory_legacy, memory_legacy, $name:ident) => { $crate::mount!(@ $name, MEMORY_LEGACY); };
    (memory_legacy, connection, $name:ident) => { $crate::mount!(@ $name, MEMORY_LEGACY); };
    (memory_legacy, connection_legacy, $name:ident) => { $crate::mount!(@ $name, MEMORY_LEGACY); };
    (memory_modern, everywhere, $name:ident) => { $crate::mount!(@ $name, MEMORY_MODERN); };
    (memory_modern, modern, $name:ident) => { $crate::mount!(@ $name, MEMORY_MODERN); };
    (memory_modern, memory, $name:ident) => { $crate::mount!(@ $name, MEMORY_MODERN); };
    (memory_modern, memory_modern, $name:ident) => { $crate::mount!(@ $name, MEMORY_MODERN); };
    (memory_modern, connection, $name:ident) => { $crate::mount!(@ $name, MEMORY_MODERN); };
    (memory_modern, connection_modern, $name:ident) => { $crate::mount!(@ $name, MEMORY_MODERN); };
    (http_legacy, everywhere, $name:ident) => { $crate::mount!(@ $name, HTTP_LEGACY); };
    (http_legacy, legacy, $name:ident) => { $crate::mount!(@ $name, HTTP_LEGACY); };
    (http_legacy, http, $name:ident) => { $crate::mount!(@ $name, HTTP_LEGACY); };
    (http_legacy, http_legacy, $name:ident) => { $crate::mount!(@ $name, HTTP_LEGACY); };
    (http_modern, everywhere, $name:ident) => { $crate::mount!(@ $name, HTTP_MODERN); };
    (http_modern, modern, $name:ident) => { $crate::mount!(@ $name, HTTP_MODERN); };
    (http_modern, http, $name:ident) => { $crate::mount!(@ $name, HTTP_MODERN); };
    (http_modern, http_modern, $name:ident) => { $crate::mount!(@ $name, HTTP_MODERN); };
    (stdio_legacy, everywhere, $name:ident) => { $crate::mount!(@ $name, STDIO_LEGACY); };
    (stdio_legacy, legacy, $name:ident) => { $crate::mount!(@ $name, STDIO_LEGACY); };
    (stdio_legacy, stdio, $name:ident) => { $crate::mount!(@ $name, STDIO_LEGACY); };
    (stdio_legacy, stdio_legacy, $name:ident) => { $crate::mount!(@ $name, STDIO_LEGACY); };
    (stdio_legacy, connection, $name:ident) => { $crate::mount!(@ $name, STDIO_LEGACY); };
    (stdio_legacy, connection_legacy, $name:ident) => { $crate::mount!(@ $name, STDIO_LEGACY); };
    (stdio_modern, everywhere, $name:ident) => { $crate::mount!(@ $name, STDIO_MODERN); };
    (stdio_modern, modern, $name:ident) => { $crate::mount!(@ $name, STDIO_MODERN); };
    (stdio_modern, stdio, $name:ident) => { $crate::mount!(@ $name, STDIO_MODERN); };
    (stdio_modern, stdio_modern, $name:ident) => { $crate::mount!(@ $name, STDIO_MODERN); };
    (stdio_modern, connection, $name:ident) => { $crate::mount!(@ $name, STDIO_MODERN); };
    (stdio_modern, connection_modern, $name:ident) => { $crate::mount!(@ $name, STDIO_MODERN); };
    (@ $name:ident, $lane:ident) => {
        #[::tokio::test(start_paused = true)]
        async fn $name() {
            super::$name($crate::Lane::$lane).await;
        }
    };
    ($lane:ident, $which:ident, $name:ident) => {};
}
