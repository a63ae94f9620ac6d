//! Servers as child processes, on real pipes and in real time: how they answer, and that they end.

// Signals and what a runtime does with blocked pipes differ elsewhere.
#![cfg(unix)]

#[cfg(test)]
mod child;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write as _;
    use std::process::Stdio;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use serde_json::{Value, json};

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

    /// Field case 21: an input that never was a pipe.
    #[test]
    fn with_nothing_as_its_input_it_ends_at_once() {
        for (program, arguments) in [(EVERYTHING, &["--stdio"][..]), (STUBBORN, &[])] {
            let mut child = Child::start_with(program, arguments, Stdio::null());
            assert_eq!(child.hear_all(), [json!(null); 0]);
            child.ends_within(LAST, true);
            assert!(!child.log().contains("panicked"), "{}", child.log());
        }
    }

    /// Field case 21: whoever started it is killed, and nobody tells it.
    #[test]
    fn a_parent_that_is_killed_takes_it_along() {
        for arguments in [json!({}), json!(null)] {
            let folder = tempfile::tempdir().unwrap();
            let pipe = folder.path().join("pipe").display().to_string();
            // The shell becomes the parent that holds the other end of the input.
            let script = r#"mkfifo "$1" && { "$0" <"$1" & } && exec cat >"$1""#;
            let mut parent = Child::start("sh", &["-c", script, STUBBORN, &pipe]);
            parent.shake_hands();
            if arguments.is_object() {
                parent.say(&call(1, "sleep", &arguments));
                parent.say(&call(2, "block", &arguments));
            }
            parent.say(&json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
            assert_eq!(parent.hear()["id"], 3);
            parent.signal("KILL");
            parent.ends_within(LAST, false);
            assert!(!parent.log().contains("panicked"), "{}", parent.log());
        }
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

    /// Field case 21: it writes to nobody, on its own account or to answer, little or much.
    #[test]
    fn writing_to_nobody_ends_it_without_a_panic() {
        for (tool, arguments) in [("text", json!({"bytes": 1})), ("tell", json!({"bytes": 70_000})), ("ask", json!({}))]
        {
            let mut child = Child::connected(STUBBORN);
            child.say(&call(1, "sleep", &json!({})));
            child.stop_reading();
            let mut asked = call(2, tool, &arguments);
            asked["params"]["_meta"] = json!({"progressToken": 2});
            child.say(&asked);
            child.ends_within(LAST, false);
            assert!(child.log().contains("Closed") && !child.log().contains("panicked"), "{tool}: {}", child.log());
        }
    }

    /// Field case 19: nothing is lost or mixed while both sides talk at once, in pieces, with pauses.
    #[test]
    fn five_hundred_calls_in_one_burst_are_each_answered_once() {
        const CALLS: u64 = 500;
        const NOTICES: u64 = 50;
        const QUESTIONS: u64 = 20;
        const LENGTH: usize = 256 * 1024;
        let mut child = Child::connected(STUBBORN);
        let input = Arc::new(Mutex::new(child.take_input()));
        let talk = |lines: Vec<Value>| {
            let input = Arc::clone(&input);
            let talking = std::thread::Builder::new().spawn(move || {
                for line in lines {
                    // A line is one of the client's units, whoever writes it.
                    let mut input = input.lock().unwrap();
                    for (number, chunk) in format!("{line}\n").as_bytes().chunks(7).enumerate() {
                        input.write_all(chunk).unwrap();
                        if number % 8 == 3 {
                            std::thread::park_timeout(Duration::from_micros(50));
                        }
                    }
                }
            });
            talking.unwrap()
        };
        let texts = (0..CALLS).map(|id| call(id, "text", &json!({"bytes": LENGTH}))).collect();
        let notices = (0..NOTICES).map(|_| json!({"jsonrpc": "2.0", "method": "notifications/nonsense"})).collect();
        let questions = (0..QUESTIONS).map(|id| call(CALLS + id, "ask", &json!({}))).collect();
        let told = (0..NOTICES).map(|id| {
            let mut told = call(CALLS + QUESTIONS + id, "tell", &json!({"bytes": 70_000}));
            told["params"]["_meta"] = json!({"progressToken": id});
            told
        });
        let mut talking = vec![talk(texts), talk(notices), talk(questions), talk(told.collect())];
        let (mut answered, mut progress, mut asked) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        while answered.len() < (CALLS + QUESTIONS + NOTICES) as usize {
            let line = child.hear_line();
            let start: String = line.chars().take(60).collect();
            let message: Message<'_> = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{start}"));
            match (message.method, message.id) {
                (None, Some(id)) => {
                    assert!(message.result.is_some_and(|result| id >= CALLS || result.get().len() > LENGTH), "{start}");
                    assert!(answered.insert(id), "{id} twice");
                }
                (Some("roots/list"), Some(id)) => {
                    assert!(asked.insert(id), "{id} is asked twice");
                    talking.push(talk(vec![json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}})]));
                }
                (Some("notifications/progress"), None) => assert!(progress.insert(line), "{start} twice"),
                _ => panic!("{start}"),
            }
        }
        assert_eq!(answered, (0..CALLS + QUESTIONS + NOTICES).collect());
        assert_eq!((progress.len(), asked.len()), (NOTICES as usize, QUESTIONS as usize));
        talking.into_iter().for_each(|talking| talking.join().unwrap());
        drop(input);
        assert_eq!(child.hear_all(), [json!(null); 0]);
        child.ends_within(LAST, true);
    }

    /// What is compared of a message.
    #[derive(serde::Deserialize)]
    struct Message<'a> {
        id: Option<u64>,
        method: Option<&'a str>,
        #[serde(borrow)]
        result: Option<&'a serde_json::value::RawValue>,
    }
}
