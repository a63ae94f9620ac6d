//! Named smoke tests on real sockets and real time: what has to be true of them does not depend on how long they take.

mod drain;
#[cfg(feature = "http2")]
mod http2;
mod spans;
#[cfg(feature = "tls")]
mod tls;

use std::future::ready;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use mcp_core::{Limits, NoArguments, RequestContext, Server, Tool};
use mcp_wire::RawJson;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::connection::MAX_HEAD;
use super::*;
use crate::server::{AllowedHosts, AllowedOrigins, HttpConfig};

/// What the tools of a test have done, and may do.
#[derive(Default)]
struct Seen {
    begun: AtomicUsize,
    beginning: Notify,
    cancelled: Notify,
    go_on: Notify,
}

/// `greet` answers at once; `wait` until it may go on or is cancelled; `stuck` never, whatever happens.
fn server(seen: &Arc<Seen>) -> Server {
    let mut limits = Limits::default();
    limits.cancel_grace = Duration::from_millis(20);
    let schema = || RawJson::from(serde_json::json!({ "type": "object" }));
    let begin = |seen: &Seen| {
        seen.begun.fetch_add(1, Ordering::SeqCst);
        seen.beginning.notify_one();
    };
    let (waiting, stuck) = (Arc::clone(seen), Arc::clone(seen));
    Server::builder("s", "1")
        .limits(limits)
        .tool(Tool::plain("greet", |_: NoArguments| "hello"))
        .tool(Tool::raw("wait", schema(), move |_: RawJson, context: RequestContext| {
            let seen = Arc::clone(&waiting);
            begin(&seen);
            async move {
                match first_of(seen.go_on.notified(), context.cancelled()).await {
                    Either::First(()) => {}
                    Either::Second(()) => seen.cancelled.notify_one(),
                }
                Ok("went on".to_owned())
            }
        }))
        .tool(Tool::raw("stuck", schema(), move |_: RawJson, _: RequestContext| {
            begin(&stuck);
            pending::<Result<String, _>>()
        }))
        .build()
        .unwrap()
}

async fn bind(server: Server) -> Listener {
    over(server, HttpConfig::new(mcp_auth::Anonymous)).await
}

async fn over(server: Server, config: HttpConfig) -> Listener {
    Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), HttpService::new(server, config)).await.unwrap()
}

async fn connect(address: SocketAddr, request: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A modern request of a method, for a name where the method has one.
fn request(method: &str, name: Option<&str>, params: &str) -> Request<Full<Bytes>> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{META}}}}}"#);
    let mut request = Request::post("http://localhost/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    request.body(Full::from(body)).unwrap()
}

fn call(tool: &str) -> Request<Full<Bytes>> {
    request("tools/call", Some(tool), &format!(r#""name":"{tool}","#))
}

fn listen() -> Request<Full<Bytes>> {
    request("subscriptions/listen", None, r#""notifications":{"toolsListChanged":true},"#)
}

/// A client of HTTP/1.1, whose connection runs among the tasks.
async fn client(address: SocketAddr, tasks: &TaskTracker) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(connection);
    sender
}

async fn text(response: Response<Incoming>) -> String {
    let body = response.into_body().collect().await.expect("the body ends in order").to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_handler_that_never_ends_does_not_keep_the_listener() {
    let seen = Arc::new(Seen::default());
    let listener = bind(server(&seen)).await.grace(Duration::from_millis(20));
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let mut client = client(address, &tasks).await;
    let called = client.send_request(call("stuck"));
    listener.run(seen.beginning.notified()).await;
    assert!(called.await.is_err(), "nothing was promised");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_second_signal_ends_at_once_whatever_the_grace() {
    let seen = Arc::new(Seen::default());
    let listener = bind(server(&seen)).await.grace(Duration::MAX);
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let mut client = client(address, &tasks).await;
    let called = client.send_request(call("wait"));
    let second = Notify::new();
    let shutdown = async {
        seen.beginning.notified().await;
        second.notify_one();
    };
    listener.run_until(shutdown, second.notified()).await;
    assert!(called.await.is_err());
    seen.cancelled.notified().await;
}

#[tokio::test]
async fn a_head_beyond_its_limit_is_refused_and_an_idle_connection_is_closed() {
    let listener = bind(server(&Arc::default())).await.header_timeout(Duration::from_millis(20));
    let address = listener.local_addr().unwrap();
    let clients = async {
        let long = format!("GET /mcp HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(MAX_HEAD));
        let mut answer = Vec::new();
        // What is not read of the request may reset the connection behind the answer.
        let _ = connect(address, &long).await.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
        for begun in ["", "P", "PRI * HTTP/2.0\r\n", "POST /mcp HTTP/1.1\r\nho"] {
            if begun.starts_with("PRI ") && !cfg!(feature = "http2") {
                // A bad request there, which is answered.
                continue;
            }
            let mut nothing = Vec::new();
            let _ = connect(address, begun).await.read_to_end(&mut nothing).await;
            assert!(nothing.is_empty(), "{begun:?}");
        }
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn a_head_has_so_many_headers() {
    let listener = bind(server(&Arc::default())).await;
    let address = listener.local_addr().unwrap();
    let clients = async {
        let head = format!("GET /mcp HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(100));
        let mut answer = Vec::new();
        let _ = connect(address, &head).await.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
    };
    listener.run(clients).await;
}

/// On several workers and in real time: what blocks a thread cannot be told apart from what is slow by any other clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_delays_only_its_worker() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let (wait, begun) = (Arc::new(std::sync::Mutex::new(wait)), Arc::new(Notify::new()));
    let beginning = Arc::clone(&begun);
    let blocks = Tool::plain("blocks", move |_: NoArguments| {
        beginning.notify_one();
        let _released = wait.lock().unwrap().recv();
        "went on"
    });
    let greets = Tool::plain("greet", |_: NoArguments| "hello");
    let listener = bind(Server::builder("s", "1").tool(blocks).tool(greets).build().unwrap()).await;
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    // As a task, since this test's own thread is none of the workers.
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let running = tasks.spawn(listener.run(async {
        let _ = ended.await;
    }));
    let mut blocked = client(address, &tasks).await;
    let blocking = tasks.spawn(async move { text(blocked.send_request(call("blocks")).await.unwrap()).await });
    begun.notified().await;
    for _ in 0..20 {
        let answer = client(address, &tasks).await.send_request(call("greet")).await.unwrap();
        assert!(text(answer).await.contains("hello"));
    }
    release.send(()).unwrap();
    assert!(blocking.await.unwrap().contains("went on"));
    end.send(()).unwrap();
    running.await.unwrap();
}

#[tokio::test]
async fn idle_connections_make_room_where_all_places_are_taken() {
    let listener = bind(server(&Arc::default())).await.header_timeout(Duration::from_millis(20)).max_connections(1);
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let _idle = connect(address, "").await;
        let response = client(address, &tasks).await.send_request(call("greet")).await.unwrap();
        assert!(text(response).await.contains("hello"));
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn a_public_address_needs_names_for_callers() {
    let public = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let bind = |config| Listener::bind(public, HttpService::new(server(&Arc::default()), config));
    let config = || HttpConfig::new(mcp_auth::Anonymous);
    for unnamed in
        [config(), config().allowed_hosts(AllowedHosts::any()), config().allowed_origins(AllowedOrigins::none())]
    {
        let error = bind(unnamed).await.unwrap_err();
        assert!(matches!(error, ListenError::Public(refused) if refused == public));
        let text = error.to_string();
        assert!(text.contains("allowed_hosts") && text.contains("allowed_origins"), "{text}");
    }
    let named = config().allowed_hosts(AllowedHosts::loopback()).allowed_origins(AllowedOrigins::loopback());
    bind(named).await.unwrap().run(ready(())).await;
    let socket = TcpListener::bind(public).await.unwrap();
    let service = HttpService::new(server(&Arc::default()), config());
    assert!(matches!(Listener::over(socket, service), Err(ListenError::Public(_))));
}

#[cfg(unix)]
#[tokio::test]
async fn a_path_is_served_like_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp");
    let service = HttpService::new(server(&Arc::default()), HttpConfig::new(mcp_auth::Anonymous));
    let listener = Listener::unix(&path, service).unwrap();
    assert!(listener.local_addr().is_err());
    let tasks = TaskTracker::new();
    let clients = async {
        let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tasks.spawn(connection);
        assert!(text(sender.send_request(call("greet")).await.unwrap()).await.contains("hello"));
    };
    listener.run(clients).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn what_all_callers_have_under_way_is_bounded_and_listening_is_not_counted() {
    let seen = Arc::new(Seen::default());
    let listener = over(server(&seen), HttpConfig::new(mcp_auth::Anonymous).max_in_flight(1)).await;
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let mut listening = client(address, &tasks).await;
        let _listening = listening.send_request(listen()).await.unwrap();
        let mut one = client(address, &tasks).await;
        let waiting = one.send_request(call("wait"));
        seen.beginning.notified().await;
        // The body never comes, and is not waited for.
        let head =
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
        let mut refused = connect(address, head).await;
        let mut answer = vec![0; 1024];
        let length = refused.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).to_lowercase();
        assert!(answer.starts_with("http/1.1 503 ") && answer.contains("retry-after: 1\r\n"), "{answer}");
        seen.go_on.notify_one();
        assert!(text(waiting.await.unwrap()).await.contains("went on"));
        assert!(text(one.send_request(call("greet")).await.unwrap()).await.contains("hello"));
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn each_caller_has_a_bound_and_does_not_use_up_that_of_others() {
    let seen = Arc::new(Seen::default());
    let named = |name| mcp_core::Principal::new("test", "", name);
    let tokens = mcp_auth::StaticBearer::new("a-token-of-ann-alone", named("ann")).unwrap();
    let tokens = tokens.and("a-token-of-bob-alone", named("bob")).unwrap();
    let listener = over(server(&seen), HttpConfig::new(tokens).max_in_flight_per_caller(1)).await;
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let of = |name: &str, mut request: Request<Full<Bytes>>| {
        let token = format!("Bearer a-token-of-{name}-alone");
        request.headers_mut().insert("authorization", token.try_into().unwrap());
        request
    };
    let clients = async {
        let (mut one, mut two) = (client(address, &tasks).await, client(address, &tasks).await);
        let waiting = one.send_request(of("ann", call("wait")));
        seen.beginning.notified().await;
        // The body never comes, and is not waited for.
        let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\
            authorization: Bearer a-token-of-ann-alone\r\n\r\n";
        let mut refused = connect(address, head).await;
        let mut answer = vec![0; 1024];
        let length = refused.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).to_lowercase();
        assert!(answer.starts_with("http/1.1 429 ") && answer.contains("retry-after: 1\r\n"), "{answer}");
        assert!(text(two.send_request(of("bob", call("greet"))).await.unwrap()).await.contains("hello"));
        seen.go_on.notify_one();
        assert!(text(waiting.await.unwrap()).await.contains("went on"));
        assert!(text(two.send_request(of("ann", call("greet"))).await.unwrap()).await.contains("hello"));
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn anonymous_callers_are_bounded_by_their_address() {
    let seen = Arc::new(Seen::default());
    let config = HttpConfig::new(mcp_auth::Anonymous).max_in_flight_per_caller(1);
    let service = HttpService::new(server(&seen), config);
    let greet = async |peer: &str| {
        let status = service.respond_to(call("greet"), Some(peer.parse().unwrap())).await.status();
        status.as_u16()
    };
    let waiting = service.respond_to(call("wait"), Some("10.0.0.7:1".parse().unwrap()));
    let others = async {
        seen.beginning.notified().await;
        assert_eq!((greet("10.0.0.7:2").await, greet("10.0.0.8:2").await), (429, 200));
        seen.go_on.notify_one();
    };
    let (waited, ()) = tokio::join!(waiting, others);
    assert_eq!((waited.status().as_u16(), greet("10.0.0.7:2").await), (200, 429), "the answer was not taken yet");
    drop(waited);
    assert_eq!(greet("10.0.0.7:2").await, 200);
}

/// What a client leaves lying is more than the buffers of its socket take.
fn large() -> Server {
    Server::builder("s", "1")
        .tool(Tool::plain("large", |_: NoArguments| "x".repeat(16 * 1024 * 1024)))
        .tool(Tool::plain("greet", |_: NoArguments| "hello"))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_loses_its_connection_and_one_that_is_slow_does_not() {
    let listener = bind(large()).await.header_timeout(Duration::from_millis(200));
    let address = listener.local_addr().unwrap();
    let (head, body) = call("large").into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut request = format!("POST /mcp HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in &head.headers {
        request.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    let request = format!("{request}\r\n{}", String::from_utf8_lossy(&body));
    let clients = async {
        let (mut idle, mut slow) = (connect(address, &request).await, connect(address, &request).await);
        idle.readable().await.unwrap();
        slow.readable().await.unwrap();
        let begun = Instant::now();
        let mut taken = 0;
        let mut piece = vec![0; 256 * 1024];
        // Much slower than it could, and for longer than the other has.
        while begun.elapsed() < Duration::from_secs(1) {
            taken += slow.read(&mut piece).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while taken < 16 * 1024 * 1024 {
            let length = slow.read(&mut piece).await.unwrap();
            assert!(length > 0, "the slow reader was cut off after {taken} bytes");
            taken += length;
        }
        let mut came = Vec::new();
        let _ = idle.read_to_end(&mut came).await;
        assert!(came.len() < 16 * 1024 * 1024, "{} bytes were kept for nobody", came.len());
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn a_call_that_streams_keeps_its_place_until_its_stream_ends() {
    let seen = Arc::new(Seen::default());
    let config = HttpConfig::new(mcp_auth::Anonymous).max_in_flight(1).sse_after(Duration::ZERO);
    let listener = over(server(&seen), config).await;
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let (mut one, mut two) = (client(address, &tasks).await, client(address, &tasks).await);
        let streaming = one.send_request(call("wait")).await.unwrap();
        assert_eq!(streaming.headers()["content-type"], "text/event-stream");
        let refused = two.send_request(call("greet")).await.unwrap();
        assert_eq!(refused.status(), 503);
        text(refused).await;
        seen.go_on.notify_one();
        assert!(text(streaming).await.contains("went on"));
        let served = one.send_request(call("greet")).await.unwrap();
        assert_eq!(served.status(), 200);
    };
    listener.run(clients).await;
}
