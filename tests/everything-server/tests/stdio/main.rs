//! Servers as child processes, on real pipes and in real time: how they answer, and that they end.

// Signals and what a runtime does with blocked pipes differ elsewhere.
#![cfg(unix)]

#[cfg(test)]
mod child;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write as _;
    use std::time::Duration;

    use serde_json::json;

    use crate::child::{Child, call, initialize};

    const EVERYTHING: &str = env!("CARGO_BIN_EXE_everything-server");
    const STUBBORN: &str = env!("CARGO_BIN_EXE_stubborn_server");

    /// Five seconds, and what a busy machine adds.
    const LAST: Duration = Duration::from_secs(8);

    #[test]
    fn without_input_it_ends_at_once() {
        let mut child = Child::start(EVERYTHING, &["--stdio"]);
        child.end_input();
        assert_eq!(child.hear_all(), [json!(null); 0]);
        child.ends_within(LAST, true);
    }

    #[test]
    fn what_was_asked_before_the_end_of_input_is_answered() {
        let mut child = Child::start(EVERYTHING, &["--stdio"]);
        child.say(&initialize());
        child.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        child.say(&call(1, "test_tool_with_progress", &json!({})));
        child.say(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
        child.end_input();
        let ids: Vec<_> = child.hear_all().iter().map(|answer| answer["id"].clone()).collect();
        assert_eq!(ids, [json!("hello"), json!(2), json!(1)]);
        child.ends_within(LAST, true);
    }

    #[test]
    fn a_handler_that_sleeps_does_not_keep_the_process() {
        let mut child = Child::connected(STUBBORN);
        child.say(&call(1, "sleep", &json!({})));
        child.end_input();
        assert_eq!(child.hear_all(), [json!(null); 0]);
        child.ends_within(LAST, true);
    }

    #[test]
    fn a_handler_that_blocks_a_thread_does_not_keep_the_process() {
        let mut child = Child::connected(STUBBORN);
        child.say(&call(1, "block", &json!({})));
        child.end_input();
        child.ends_within(LAST, true);
    }

    #[test]
    fn handlers_that_block_the_whole_runtime_do_not_keep_the_process() {
        let mut child = Child::connected(STUBBORN);
        for id in 0..64 {
            child.say(&call(id, "hang", &json!({})));
        }
        child.end_input();
        child.ends_within(LAST, false);
        assert!(child.log().contains("Blocked"), "{}", child.log());
    }

    #[test]
    fn a_signal_ends_it_although_the_input_is_open() {
        for signal in ["TERM", "INT"] {
            let mut child = Child::connected(STUBBORN);
            child.signal(signal);
            child.ends_within(LAST, true);
        }
        let mut child = Child::connected(STUBBORN);
        child.say(&call(1, "sleep", &json!({})));
        child.say(&call(2, "text", &json!({"bytes": 3})));
        assert_eq!(child.hear()["id"], 2);
        child.signal("TERM");
        child.ends_within(LAST, true);
    }

    #[test]
    fn a_client_that_stops_reading_ends_it_without_a_panic() {
        let mut child = Child::connected(STUBBORN);
        child.stop_reading();
        child.say(&call(1, "text", &json!({"bytes": 1_000_000})));
        child.ends_within(LAST, false);
        assert!(child.log().contains("Closed") && !child.log().contains("panicked"), "{}", child.log());
    }

    #[test]
    fn five_hundred_calls_in_one_burst_are_each_answered_once() {
        const CALLS: u64 = 500;
        const LENGTH: usize = 256 * 1024;
        let mut child = Child::connected(STUBBORN);
        let mut input = child.take_input();
        let talking = std::thread::Builder::new().spawn(move || {
            for id in 0..CALLS {
                let line = format!("{}\n", call(id, "text", &json!({"bytes": LENGTH})));
                for chunk in line.as_bytes().chunks(7) {
                    input.write_all(chunk).unwrap();
                }
            }
            input
        });
        let mut answered = BTreeSet::new();
        while answered.len() < CALLS as usize {
            let line = child.hear_line();
            let start: String = line.chars().take(60).collect();
            assert!(line.len() > LENGTH && line.ends_with('}'), "{start}");
            let id = start.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).and_then(|rest| rest.split(',').next()).unwrap();
            assert!(answered.insert(id.parse::<u64>().unwrap()), "{id} twice");
        }
        assert_eq!(answered, (0..CALLS).collect());
        drop(talking.unwrap().join().unwrap());
        child.ends_within(LAST, true);
    }
}
