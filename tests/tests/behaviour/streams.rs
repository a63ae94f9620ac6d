//! The streams of HTTP: signs of life, what is kept of them, and how a client comes back.
//!
//! Spec: 2025-11-25 basic/transports, "Resumability and Redelivery" and "Listening for Messages from the Server"

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method};
use mcp_core::{HandlerError, NoArguments, RequestContext, Server, ServerBuilder, Tool};
use mcp_tests::{Client, Event, Events, Lane, idle, lanes};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

lanes! {
    everywhere {}
    http "there are no streams in memory" {
        a_silent_call_becomes_a_stream_that_shows_life,
    }
    http_legacy "a lost modern stream is a lost request" {
        a_lost_stream_goes_on_where_it_was_lost,
        a_stream_cut_at_any_byte_goes_on_without_loss_or_repetition,
        a_finished_stream_is_kept_for_a_while,
        replay_is_of_one_stream_alone,
        a_place_that_nobody_knows_opens_the_standalone_stream,
        a_client_is_told_once_that_something_it_missed_is_gone,
        streams_open_with_a_place_where_the_revision_knows_it,
        the_handler_may_let_the_client_go,
        the_standalone_stream_shows_itself_at_once,
        a_resumed_stream_shows_itself_at_once,
        a_second_standalone_stream_takes_over,
        no_stream_comes_back_of_another_session,
    }
    http_modern "legacy streams have places to come back to" {
        modern_events_have_no_place_to_come_back_to,
    }
}

/// A tool that takes one step of progress for each permit, three of them.
fn stepping() -> (Tool, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let open = Arc::clone(&gate);
    let tool = Tool::typed("steps", move |_: NoArguments, context: RequestContext| {
        let open = Arc::clone(&open);
        async move {
            for step in 1..=3 {
                open.acquire().await?.forget();
                context.progress(f64::from(step), None, None);
            }
            Ok::<_, HandlerError>("done")
        }
    });
    (tool.timeout(None), gate)
}

fn server() -> (ServerBuilder, Arc<Semaphore>) {
    let (tool, gate) = stepping();
    (Server::builder("s", "1").tool(tool), gate)
}

fn body(client: &Client, id: i64) -> String {
    let params = client.enveloped(json!({ "name": "steps", "_meta": { "progressToken": id } }));
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

async fn post(client: &Client, id: i64) -> Events {
    client.stream(Method::POST, body(client, id), |_| {}).await
}

async fn resume(client: &Client, last: &str) -> Events {
    let last = HeaderValue::from_str(last).unwrap();
    client.stream(Method::GET, "", |headers: &mut HeaderMap| drop(headers.insert("last-event-id", last))).await
}

async fn next(events: &mut Events) -> Event {
    mcp_tests::within("an event", events.next()).await.expect("the stream goes on")
}

/// The next event that carries a message: its place, and how far it says the call is or `done`.
async fn message(events: &mut Events) -> (String, String) {
    loop {
        let event = next(events).await;
        if event.data.is_empty() {
            continue;
        }
        let message: Value = serde_json::from_str(&event.data).unwrap();
        let said = match message["params"]["progress"].as_f64() {
            Some(progress) => format!("{} of {}", progress, message["params"]["progressToken"]),
            None => message["result"]["content"][0]["text"].as_str().unwrap().to_owned(),
        };
        return (event.id.unwrap_or_default(), said);
    }
}

async fn a_silent_call_becomes_a_stream_that_shows_life(lane: Lane) {
    let (server, gate) = server();
    let client = lane.connect(server).await;
    let mut events = post(&client, 1).await;
    let waiting = tokio::time::timeout(Duration::from_secs(100), async {
        loop {
            let event = events.next().await.expect("the stream goes on");
            assert!(event.data.is_empty(), "{event:?}");
        }
    });
    let _: Result<(), _> = waiting.await;
    assert!(events.comments() >= 5, "{} signs of life", events.comments());
    gate.add_permits(3);
    for said in ["1 of 1", "2 of 1", "3 of 1", "done"] {
        assert_eq!(message(&mut events).await.1, said);
    }
    assert_eq!(events.next().await, None, "the response is the end");
}

/// Checklist 35: dropping a legacy POST stream does not cancel the call and the result can be fetched by resumption.
async fn a_lost_stream_goes_on_where_it_was_lost(lane: Lane) {
    let (server, gate) = server();
    let client = lane.connect(server).await;
    let mut events = post(&client, 1).await;
    gate.add_permits(1);
    let (place, said) = message(&mut events).await;
    assert_eq!(said, "1 of 1");
    drop(events);
    idle().await;
    gate.add_permits(1);
    idle().await;
    let mut again = resume(&client, &place).await;
    let (place, said) = message(&mut again).await;
    assert_eq!(said, "2 of 1", "what was missed comes first");
    gate.add_permits(1);
    assert_eq!(message(&mut again).await.1, "3 of 1", "and then what is new");
    assert_eq!(message(&mut again).await.1, "done");
    assert_eq!(again.next().await, None);
    // Having been read is no reason to be gone.
    let mut third = resume(&client, &place).await;
    assert_eq!(message(&mut third).await.1, "3 of 1");
}

/// What a client has of a stream that was cut: the messages of whole events, and the last place it was told.
fn whole_events(read: &[u8]) -> (Vec<Value>, Option<String>) {
    let text = String::from_utf8_lossy(read);
    let Some(end) = text.rfind("\n\n") else { return (Vec::new(), None) };
    let (mut messages, mut place) = (Vec::new(), None);
    for line in text[..end].lines() {
        if let Some(id) = line.strip_prefix("id: ") {
            place = Some(id.to_owned());
        } else if let Some(data) = line.strip_prefix("data: ").filter(|data| !data.is_empty()) {
            messages.push(serde_json::from_str(data).expect("an event is one message"));
        }
    }
    (messages, place)
}

async fn a_stream_cut_at_any_byte_goes_on_without_loss_or_repetition(lane: Lane) {
    let (server, gate) = server();
    let server = server.build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        gate.add_permits(3);
        let whole = post(&client, 1).await.cut_after(usize::MAX).await;
        let (expected, _) = whole_events(&whole);
        assert_eq!(expected.len(), 4, "three steps and the response");
        let text = String::from_utf8(whole.clone()).unwrap();
        let second = text.find("\"progress\":2").expect("the second step");
        let said_by_then = second + text[second..].find("\n\n").unwrap() + 2;
        let mut resumed = 0;
        // Either everything is said before the client comes back, or the last step and the response after that.
        for (late, said) in [(0, whole.len()), (1, said_by_then)] {
            for cut in 0..=said {
                let stream = post(&client, 1).await;
                gate.add_permits(3 - late);
                let (mut messages, place) = whole_events(&stream.cut_after(cut).await);
                idle().await;
                let again = match &place {
                    Some(place) => Some(resume(&client, place).await),
                    None => None,
                };
                gate.add_permits(late);
                idle().await;
                // Who was told no place has none to come back to.
                let Some(mut again) = again else { continue };
                resumed += 1;
                while let Some(event) = again.next().await {
                    if !event.data.is_empty() {
                        messages.push(serde_json::from_str(&event.data).unwrap());
                    }
                }
                assert_eq!(messages, expected, "{lane:?} cut after {cut} bytes, {late} steps late");
            }
        }
        assert!(resumed > whole.len() / 2, "{resumed} cuts left a place to come back to");
    }
}

async fn a_finished_stream_is_kept_for_a_while(lane: Lane) {
    let (server, gate) = server();
    let client = lane.connect(server).await;
    let mut events = post(&client, 1).await;
    gate.add_permits(1);
    let (place, _) = message(&mut events).await;
    drop(events);
    gate.add_permits(2);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut again = resume(&client, &place).await;
    for said in ["2 of 1", "3 of 1", "done"] {
        assert_eq!(message(&mut again).await.1, said);
    }
    assert_eq!(again.next().await, None);
}

/// Checklist 34: replay after `Last-Event-ID` contains only events of that stream, in order, without duplicates.
async fn replay_is_of_one_stream_alone(lane: Lane) {
    let (server, gate) = server();
    let client = lane.connect(server).await;
    let (mut one, mut two) = (post(&client, 1).await, post(&client, 2).await);
    gate.add_permits(2);
    let (place_one, said_one) = message(&mut one).await;
    let (place_two, said_two) = message(&mut two).await;
    assert_eq!((said_one.as_str(), said_two.as_str()), ("1 of 1", "1 of 2"));
    assert_ne!(place_one, place_two, "a place is of one stream");
    drop((one, two));
    gate.add_permits(4);
    idle().await;
    client.server().tools_changed();
    for (token, place) in [(1, place_one), (2, place_two)] {
        let mut again = resume(&client, &place).await;
        let mut places = vec![place];
        for said in [format!("2 of {token}"), format!("3 of {token}"), "done".to_owned()] {
            let (place, found) = message(&mut again).await;
            assert_eq!(found, said);
            assert!(!places.contains(&place), "{place} twice");
            places.push(place);
        }
        assert_eq!(again.next().await, None);
    }
}

async fn a_place_that_nobody_knows_opens_the_standalone_stream(lane: Lane) {
    let (server, _gate) = server();
    let client = lane.connect(server).await;
    for last in ["999-1", "nonsense", "", " ", "1-1"] {
        let mut events = resume(&client, last).await;
        if !last.trim().is_empty() {
            let told: Value = serde_json::from_str(&next(&mut events).await.data).unwrap();
            assert_eq!(told["method"], "notifications/replay_truncated", "{last:?}: what was missed is gone");
        }
        client.server().tools_changed();
        let notice: Value = serde_json::from_str(&next(&mut events).await.data).unwrap();
        assert_eq!(notice["method"], "notifications/tools/list_changed", "{last:?}");
    }
}

async fn a_client_is_told_once_that_something_it_missed_is_gone(lane: Lane) {
    let gate = Arc::new(Semaphore::new(0));
    let open = Arc::clone(&gate);
    let tool = Tool::typed("steps", move |_: NoArguments, context: RequestContext| {
        let open = Arc::clone(&open);
        async move {
            context.progress(0.5, None, None);
            open.acquire().await?.forget();
            // More than are kept, each taken before the next one comes.
            for step in 1..=400 {
                context.progress(f64::from(step), None, None);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok::<_, HandlerError>("done")
        }
    });
    let client = lane.connect(Server::builder("s", "1").tool(tool)).await;
    let mut events = post(&client, 1).await;
    let (place, _) = message(&mut events).await;
    drop(events);
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mut again = resume(&client, &place).await;
    let mut told = 0;
    let mut steps = Vec::new();
    while let Some(event) = again.next().await {
        let Ok(said) = serde_json::from_str::<Value>(&event.data) else { continue };
        match said["method"].as_str() {
            Some("notifications/replay_truncated") => {
                assert!(steps.is_empty() && event.id.is_none(), "before what is left, and with no place of its own");
                told += 1;
            }
            Some(_) => steps.push(said["params"]["progress"].as_f64().unwrap()),
            None => assert_eq!(said["result"]["content"][0]["text"], "done"),
        }
    }
    assert_eq!((told, steps.len(), steps.last()), (1, 255, Some(&400.0)), "with the response, as many as are kept");
    assert!(steps.is_sorted());
    // Who has seen the beginning of what is kept has missed nothing.
    let mut whole = resume(&client, "1-147").await;
    while let Some(event) = whole.next().await {
        assert!(!event.data.contains("replay_truncated"));
    }
}

/// Checklist 38: an R3 session never receives `icons`, `execution`, titled enums, priming events or `resultType`. (Here:
/// priming events.)
async fn streams_open_with_a_place_where_the_revision_knows_it(lane: Lane) {
    let (server, gate) = server();
    let server = server.build().unwrap();
    for lane in lane.each_revision() {
        let client = lane.host(&server).connect().await;
        let mut events = post(&client, 1).await;
        gate.add_permits(3);
        let first = next(&mut events).await;
        if lane.revision().rules().polling {
            assert!(first.data.is_empty() && first.id.is_some() && first.retry.is_some(), "{first:?}");
            let mut again = resume(&client, &first.id.unwrap()).await;
            assert_eq!(message(&mut again).await.1, "1 of 1", "nothing was missed before the first message");
        } else {
            assert!(!first.data.is_empty() && first.retry.is_none(), "{lane:?}: {first:?}");
            while events.next().await.is_some() {}
        }
    }
}

async fn the_handler_may_let_the_client_go(lane: Lane) {
    let tool = Tool::typed("releases", |_: NoArguments, context: RequestContext| async move {
        context.release_stream(Duration::from_millis(2500));
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok::<_, HandlerError>("done")
    });
    let client = lane.connect(server().0.tool(tool)).await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "releases" } });
    let mut events = client.stream(Method::POST, body.to_string(), |_| {}).await;
    let mut last = next(&mut events).await;
    while let Some(event) = events.next().await {
        last = event;
    }
    assert_eq!((last.retry, last.data.as_str()), (Some(2500), ""));
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let mut again = resume(&client, &last.id.unwrap()).await;
    assert_eq!(message(&mut again).await.1, "done");
}

/// Field case 5: status, headers and at least one body byte arrive at once.
async fn the_standalone_stream_shows_itself_at_once(lane: Lane) {
    let client = lane.connect(server().0).await;
    let started = tokio::time::Instant::now();
    let mut events = client.stream(Method::GET, "", |_| {}).await;
    let _: Result<_, _> = tokio::time::timeout(Duration::from_millis(10), events.next()).await;
    assert!(events.comments() == 1 && started.elapsed() < Duration::from_millis(20));
}

/// Field case 5, for a stream that is taken up again and has nothing to say yet.
async fn a_resumed_stream_shows_itself_at_once(lane: Lane) {
    let (server, gate) = server();
    let client = lane.connect(server).await;
    let mut events = post(&client, 1).await;
    gate.add_permits(1);
    let (place, _) = message(&mut events).await;
    drop(events);
    idle().await;
    let begun = tokio::time::Instant::now();
    let mut again = resume(&client, &place).await;
    assert!(!again.first_byte().await.is_empty());
    assert!(begun.elapsed() < Duration::from_millis(20), "{:?}", begun.elapsed());
    gate.add_permits(2);
    assert_eq!(message(&mut again).await.1, "2 of 1");
}

async fn a_second_standalone_stream_takes_over(lane: Lane) {
    let client = lane.connect(server().0).await;
    let mut first = client.stream(Method::GET, "", |_| {}).await;
    let mut second = client.stream(Method::GET, "", |_| {}).await;
    assert_eq!(mcp_tests::within("the end of the first", first.next()).await, None);
    client.server().tools_changed();
    assert!(next(&mut second).await.data.contains("list_changed"));
}

async fn no_stream_comes_back_of_another_session(lane: Lane) {
    let (server, gate) = server();
    let server = server.build().unwrap();
    let host = lane.host(&server);
    let (ann, bob) = (host.connect().await, host.connect_as(mcp_tests::Profile::named("bob")).await);
    let mut events = post(&ann, 1).await;
    gate.add_permits(1);
    let (place, _) = message(&mut events).await;
    gate.add_permits(2);
    idle().await;
    let mut of_bob = resume(&bob, &place).await;
    server.tools_changed();
    assert!(next(&mut of_bob).await.data.contains("replay_truncated"), "as for a place that nobody knows");
    assert!(next(&mut of_bob).await.data.contains("list_changed"), "a stream of bob's own");
}

async fn modern_events_have_no_place_to_come_back_to(lane: Lane) {
    let (server, gate) = server();
    let client = lane.connect(server).await;
    gate.add_permits(3);
    let mut events = post(&client, 1).await;
    let mut seen = 0;
    while let Some(event) = events.next().await {
        assert_eq!((event.id, event.retry), (None, None));
        seen += 1;
    }
    assert_eq!(seen, 4);
}
