//! What a server does, written once per behaviour and mounted once per lane.
//!
//! Why here: one binary, so that the library under test is linked once. See the library of this package for lanes.
#![expect(clippy::needless_pass_by_value, reason = "tests write JSON where they need it")]

macro_rules! behaviours {
    ($($name:ident),+ $(,)?) => {
        $(#[cfg(test)] mod $name;)+

        /// The one table of what is not mounted in every lane.
        #[cfg(test)]
        const LEFT_OUT: &[&[(&str, &str, &str)]] = &[$($name::LEFT_OUT),+];
    };
}

behaviours! {
    access,
    ask,
    authorization,
    batches,
    asking_in_place,
    cancel,
    completion,
    discover,
    envelope,
    exactly,
    headers,
    initialize,
    limits,
    order_of_checks,
    ownership,
    pagination,
    progress_and_logging,
    prompts,
    request_state,
    resources,
    several_processes,
    shared_tasks,
    shutdown,
    snapshots,
    sse_pair,
    streams,
    subscriptions,
    tasks,
    tasks_asking,
    tasks_hand_off,
    tasks_limits,
    tasks_notices,
    tasks_outside,
    tasks_owners,
    telemetry,
    tools,
    visits,
}

#[cfg(test)]
mod key_endpoint;
#[cfg(test)]
mod random_values;
#[cfg(test)]
mod schemas;

#[cfg(test)]
#[test]
#[expect(clippy::print_stdout, reason = "the table is for a reader of the test's output")]
fn lanes_left_out_say_why() {
    for (behaviour, mounted, why) in LEFT_OUT.iter().copied().flatten() {
        assert!(why.split(' ').count() >= 4, "{behaviour} is mounted in {mounted} only and does not say why");
        println!("{behaviour}: {mounted} only, for {why}");
    }
}
