//! The end under load: what was begun is answered, what was not is told so.

use super::*;

const CLIENTS: usize = 16;

/// Counts the calls that were begun and those that went through; each gives way a few times.
fn busy(begun: &Arc<AtomicUsize>, enough: &Arc<Notify>) -> Server {
    let schema = RawJson::from(serde_json::json!({ "type": "object" }));
    let (begun, enough) = (Arc::clone(begun), Arc::clone(enough));
    let work = Tool::raw("work", schema, move |_: RawJson, _: RequestContext| {
        if begun.fetch_add(1, Ordering::SeqCst) == 20 * CLIENTS {
            enough.notify_one();
        }
        async {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            Ok("done".to_owned())
        }
    });
    Server::builder("s", "1").tool(work).build().unwrap()
}

#[tokio::test]
async fn under_load_every_call_that_was_begun_is_answered() {
    let (begun, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let listener = bind(busy(&begun, &enough)).await.grace(Duration::from_secs(60));
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let answered = Arc::new(AtomicUsize::new(0));
    for _ in 0..CLIENTS {
        let mut client = client(address, &tasks).await;
        let answered = Arc::clone(&answered);
        tasks.spawn(async move {
            // Until the listener ends the connection.
            while let Ok(response) = client.send_request(call("work")).await {
                assert_eq!(response.status(), 200);
                assert!(text(response).await.contains("done"), "an answer is whole");
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    listener.run(enough.notified()).await;
    tasks.close();
    tasks.wait().await;
    let (begun, answered) = (begun.load(Ordering::SeqCst), answered.load(Ordering::SeqCst));
    assert!(begun > 20 * CLIENTS, "{begun}");
    assert_eq!(begun, answered);
}

#[tokio::test]
async fn streams_end_in_order_and_subscriptions_are_told() {
    let listener = bind(server(&Arc::default())).await.grace(Duration::from_millis(50));
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let opened = Notify::new();
    let clients = async {
        let mut one = client(address, &tasks).await;
        let subscription = one.send_request(listen()).await.unwrap();
        let mut two = client(address, &tasks).await;
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
            "capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        let legacy = |method| Request::builder().method(method).uri("/mcp").header("host", "localhost");
        let post = legacy("POST").header("content-type", "application/json").body(Full::from(initialize)).unwrap();
        let opening = two.send_request(post).await.unwrap();
        let session = opening.headers()["mcp-session-id"].clone();
        text(opening).await;
        let get = legacy("GET").header("accept", "text/event-stream").header("mcp-session-id", session);
        let notices = two.send_request(get.body(Full::default()).unwrap()).await.unwrap();
        assert_eq!(notices.status(), 200);
        opened.notify_one();
        let (told, _notices) = tokio::join!(text(subscription), text(notices));
        assert!(told.contains("\"result\""), "{told}");
    };
    tokio::join!(listener.run(opened.notified()), clients);
}

#[tokio::test]
async fn probes_are_answered_where_they_are_asked_for() {
    let seen = Arc::new(Seen::default());
    let probe =
        |path: &str, host: &str| Request::get(path).header("host", host).body(Full::<Bytes>::default()).unwrap();
    let without = HttpService::new(server(&seen), HttpConfig::new(mcp_auth::Anonymous));
    assert_eq!(without.respond(probe("/healthz", "localhost")).await.status(), 404);

    let service = HttpService::new(server(&seen), HttpConfig::new(mcp_auth::Anonymous).health());
    let status = async |path: &str| service.respond(probe(path, "10.0.0.7:3000")).await.status().as_u16();
    assert_eq!((status("/healthz").await, status("/readyz").await), (200, 200));
    assert_eq!(status("/mcp").await, 403, "only probes may call by address");
    let mut posted = probe("/readyz", "localhost");
    *posted.method_mut() = http::Method::POST;
    assert_eq!(service.respond(posted).await.status(), 405);
    service.server().shutdown(Duration::ZERO).await;
    assert_eq!((status("/healthz").await, status("/readyz").await), (200, 503));
}
