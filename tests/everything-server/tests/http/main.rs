//! The sample server as a program over HTTP: what it says when it is started wrongly, its signals, its log.

// Signals differ elsewhere.
#![cfg(unix)]

#[cfg(test)]
mod program;

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use serde_json::{Value, json};

    use crate::program::{Program, certificate, finished};

    /// What a busy machine adds to a moment.
    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn started_wrongly_it_says_what_is_right_and_exits_with_2() {
        for (arguments, right) in [
            (&["--http", "localhost"][..], "such as 127.0.0.1:3000"),
            (&["--http", "0.0.0.0:0"], "--allowed-host and --allowed-origin"),
            (&["--http", "0.0.0.0:0", "--allowed-host", "a.example"], "with --allowed-origin,"),
            (&["--tls-cert", "cert.pem"], "--tls-key <FILE>"),
            (&["--stdio", "--unix", "/tmp/x"], "cannot be used with"),
            (&["--log-format", "xml"], "[possible values: text, json]"),
            (&["--log-level", "mcp_core=loud"], "such as info,mcp_core=debug"),
            (&["--trusted-proxy", "10.0.0.0/99"], "such as 10.0.0.0/8"),
            (&["--allowed-origin", "app.example"], "--allowed-origin"),
            (&["--public-url", "example.com"], "such as https://example.com/tools"),
            (&["--page-size", "none"], "such as 10"),
            (&["--port", "1"], "--help"),
        ] {
            let (status, output, log) = finished(arguments, &[]);
            assert_eq!((status, output.as_str()), (Some(2), ""), "{arguments:?}: {log}");
            assert!(log.contains(right), "{arguments:?}: {log}");
        }
        let (status, _, log) = finished(&[], &[("EVERYTHING_HTTP", "nowhere")]);
        assert!(status == Some(2) && log.contains("such as 127.0.0.1:3000"), "{log}");
        let (status, output, log) = finished(&["--state-key-file", "/does/not/exist"], &[]);
        assert!(status == Some(1) && output.is_empty() && log.contains("/does/not/exist"), "{log}");
    }

    #[test]
    fn its_help_and_the_page_about_running_it_tell_of_every_flag() {
        let (status, help, log) = finished(&["--help"], &[]);
        assert_eq!((status, log.as_str()), (Some(0), ""));
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/running.md");
        let page = std::fs::read_to_string(page).unwrap();
        let flags: Vec<_> = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2).collect();
        let flags: Vec<_> =
            flags.iter().map(|flag| flag.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-')).collect();
        assert!(flags.len() > 15, "{help}");
        for flag in flags.iter().filter(|flag| !["--help", "--version"].contains(flag)) {
            assert!(page.contains(&format!("`{flag}")), "{flag} is not in docs/running.md");
        }
        for variable in help.split("[env: ").skip(1).filter_map(|rest| rest.split(']').next()) {
            assert!(page.contains(&format!("`{variable}`")), "{variable} is not in docs/running.md");
        }
    }

    #[test]
    fn an_environment_is_as_good_as_flags_and_flags_outrank_it() {
        let environment = [("EVERYTHING_HTTP", "127.0.0.1:1"), ("EVERYTHING_LOG_FORMAT", "json")];
        let mut program = Program::start(&["--http", "127.0.0.1:0"], &environment);
        assert_eq!(program.ask("GET", "/healthz", "").0, 200);
        program.signal("TERM");
        let log = program.ended_within(SOON, true);
        assert!(
            log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()) && log.contains("listening"),
            "{log}"
        );
    }

    #[test]
    fn its_log_in_json_is_one_object_a_line_and_stdout_is_left_alone() {
        let flags = ["--http", "127.0.0.1:0", "--log-format", "json", "--log-level", "info,mcp.audit=info"];
        let mut program = Program::start(&flags, &[]);
        let (status, answer) = program.call("test_simple_text", &json!({}));
        assert_eq!(status, 200, "{answer}");
        program.signal("TERM");
        let (output, log) = program.ended(SOON, true);
        assert_eq!(output, "", "nothing but the first line");
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let audited: Vec<_> = lines.iter().filter(|line| line["target"] == "mcp.audit").collect();
        assert_eq!(audited.len(), 1, "{log}");
        assert_eq!(audited[0]["mcp.target"], "test_simple_text");
        assert_eq!(audited[0]["span"]["name"], "mcp.request");
        assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["level"].is_string()));
    }

    #[test]
    fn sighup_swaps_the_certificate_and_the_filter_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (cert, key, filter) = (file("cert.pem"), file("key.pem"), file("filter"));
        let (first, second) = (certificate(), certificate());
        let write = |(certificate, secret): &(String, String)| {
            std::fs::write(&cert, certificate).unwrap();
            std::fs::write(&key, secret).unwrap();
        };
        write(&first);
        std::fs::write(&filter, "warn,everything_server=info").unwrap();
        let flags = ["--http", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &key, "--log-level-file", &filter];
        let mut program = Program::start(&flags, &[]);
        assert!(program.shows(&first.0) && !program.shows(&second.0));
        write(&second);
        std::fs::write(&filter, "warn,everything_server=info,mcp_http=debug").unwrap();
        program.signal("HUP");
        program.logs("reloaded what=\"the log's filter\"", SOON);
        program.logs("reloaded what=\"the certificate\"", SOON);
        assert!(program.shows(&second.0) && !program.shows(&first.0));
        std::fs::write(&key, "no key").unwrap();
        program.signal("HUP");
        program.logs("not reloaded: it stays as it was what=\"the certificate\"", SOON);
        assert!(program.shows(&second.0), "what cannot be read replaces nothing");
        program.signal("TERM");
        program.ended_within(SOON, true);
    }

    #[test]
    fn sigterm_lets_a_call_finish_and_a_second_one_does_not() {
        for (again, answered) in [(false, true), (true, false)] {
            let mut program = Program::start(&["--http", "127.0.0.1:0", "--grace", "60"], &[]);
            // It takes a moment, and says so first.
            let waiting = program.begin_call("test_tool_with_progress", &json!({}), "notifications/progress");
            program.signal("TERM");
            program.logs("ending: requests under way get their grace", SOON);
            if again {
                program.signal("TERM");
            }
            let rest = waiting.rest();
            assert!(!answered || rest.contains("\"result\""), "{rest}");
            program.ended_within(SOON, true);
        }
    }

    #[test]
    fn a_unix_socket_is_served_and_goes_with_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let mut program = Program::start(&["--unix", path.to_str().unwrap()], &[]);
        assert_eq!(program.place(), format!("unix:{}", path.display()));
        assert!(path.exists());
        program.signal("TERM");
        program.ended_within(SOON, true);
        assert!(!path.exists());
    }

    /// Field case 7: a session that its client ended leaves nothing behind.
    #[cfg(target_os = "linux")]
    #[test]
    fn ten_thousand_sessions_leave_no_memory_behind() {
        let mut program = Program::start(&["--http", "127.0.0.1:0"], &[]);
        let mut client = program.kept();
        let info = json!({ "name": "c", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let mut round = || {
            let (status, session) = client.ask("POST", None, &hello);
            assert_eq!(status, 200);
            assert_eq!(client.ask("POST", session.as_deref(), initialized).0, 202);
            assert_eq!(client.ask("DELETE", session.as_deref(), "").0, 204);
            session
        };
        for _ in 0..1_000 {
            round();
        }
        let before = program.resident();
        for _ in 1_000..9_999 {
            round();
        }
        let last = round();
        let grown = program.resident().saturating_sub(before);
        // A kilobyte a session would be nine megabytes.
        assert!(grown < 4 * 1024 * 1024, "{grown} bytes more");
        for method in ["POST", "DELETE"] {
            let body = if method == "POST" { r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"# } else { "" };
            assert_eq!(client.ask(method, last.as_deref(), body).0, 404, "{method}");
        }
        program.signal("TERM");
        program.ended_within(SOON, true);
    }

    #[test]
    fn a_probe_tells_a_server_that_lives_from_none() {
        let mut program = Program::start(&["--http", "127.0.0.1:0"], &[]);
        let address = program.address();
        assert_eq!(finished(&["--probe", &address], &[]).0, Some(0));
        program.signal("TERM");
        program.ended_within(SOON, true);
        assert_eq!(finished(&["--probe", &address], &[]).0, Some(1));
    }
}
