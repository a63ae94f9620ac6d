//! `cargo xtask bench --auth`: what each provider adds to a request, as instructions and as a ratio to `Anonymous`.
//!
//! Why here: who pays for being asked who they are should know how much.
//! Invariants: the same request and the same server but for the provider; each answer is right, so each caller was let in.

use super::{Bench, OURS, Probe, Row, say, thousands};

/// A provider by its name in the server's `AUTH`, and the header of the one caller it knows there.
struct Provider {
    name: &'static str,
    load: &'static [&'static str],
}

static PROVIDERS: [Provider; 8] = [
    Provider { name: "anonymous", load: &[] },
    Provider { name: "bearer", load: &["--header", "authorization: Bearer 2f0a9c51d3e84b7f"] },
    Provider { name: "api-key", load: &["--header", "x-api-key: kJ3vQ0rUuY7nM2xW"] },
    Provider { name: "basic", load: &["--header", "authorization: Basic YmVuY2g6c2VjcmV0"] },
    Provider { name: "jwt", load: &["--header", JWT] },
    Provider { name: "jwks", load: &["--header", JWT] },
    Provider { name: "introspection", load: &["--header", OPAQUE] },
    Provider { name: "remembered", load: &["--header", OPAQUE] },
];

/// ES256, until the year 2100, by a key that nobody has any more.
const JWT: &str = concat!(
    "authorization: Bearer ",
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImJlbmNoIiwidHlwIjoiYXQrand0In0",
    ".eyJpc3MiOiJodHRwczovL2xvZ2luLmV4YW1wbGUiLCJhdWQiOiJodHRwczovL2JlbmNoLmV4YW1wbGUvbWNwIiwic3ViIjoiYmVuY2giLCJleHAiOjQxMDI0NDQ4MDB9",
    ".IOa2bn2Ya9rYHUL14OpZMd-bLqXfZ2MagFWH-XVGtVDjiMqcBBvUOcWXR7bLsPpf4QPekPzy6MOS9bCIYD2nqA",
);

/// About which the server asks a function of its own.
const OPAQUE: &str = "authorization: Bearer 2f0a9c51d3e84b7f";

/// Prints a line for each provider.
///
/// # Errors
///
/// If a caller is not let in, or an instrument fails.
pub(super) fn run(bench: &Bench, row: &Row) -> anyhow::Result<()> {
    say("provider      instructions allocations x anonymous")?;
    let mut anonymous = None;
    for provider in &PROVIDERS {
        let environment = [("AUTH", provider.name)];
        let name = format!("auth-{}", provider.name);
        let server = &bench.binaries.join(OURS.package);
        let probe =
            Probe { server, name: &name, load_arguments: provider.load, is_piped: false, environment: &environment };
        let figures = bench.measure_server(row, &probe)?.figures;
        let least = *anonymous.get_or_insert(figures.instructions);
        let (instructions, ratio) = (thousands(figures.instructions), figures.instructions / least);
        say(&format!("{:<13} {instructions:>12} {:>11.1} {ratio:>11.2}", provider.name, figures.allocations))?;
    }
    Ok(())
}
