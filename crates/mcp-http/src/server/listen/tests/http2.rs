//! HTTP/2 with hyper's client, and byte by byte.

use http_body_util::BodyExt as _;
use hyper::client::conn::http2::SendRequest;

use super::super::connection::Tracked;
use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A frame of settings that says nothing.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

pub(super) async fn client<S>(stream: S, tasks: &TaskTracker) -> SendRequest<Full<Bytes>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let executor = Tracked::new(tasks);
    let (sender, connection) = hyper::client::conn::http2::handshake(executor, TokioIo::new(stream)).await.unwrap();
    tasks.spawn(connection);
    sender
}

async fn connected(address: SocketAddr, tasks: &TaskTracker) -> SendRequest<Full<Bytes>> {
    client(TcpStream::connect(address).await.unwrap(), tasks).await
}

#[tokio::test]
async fn one_port_speaks_both_protocols() {
    let listener = bind(server(&Arc::default())).await;
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let new = connected(address, &tasks).await.send_request(call("greet")).await.unwrap();
        assert_eq!((new.status().as_u16(), new.version()), (200, http::Version::HTTP_2));
        assert!(text(new).await.contains("hello"));
        let old = super::client(address, &tasks).await.send_request(call("greet")).await.unwrap();
        assert_eq!((old.status().as_u16(), old.version()), (200, http::Version::HTTP_11));
        assert!(text(old).await.contains("hello"));
        let mut foreign = call("greet");
        *foreign.uri_mut() = "http://evil.example.com/mcp".parse().unwrap();
        foreign.headers_mut().remove("host");
        let refused = connected(address, &tasks).await.send_request(foreign).await.unwrap();
        assert_eq!(refused.status(), 403, "the authority is the host");
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn a_stream_that_is_reset_cancels_its_call_and_no_other() {
    let seen = Arc::new(Seen::default());
    let listener = bind(server(&seen)).await;
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let mut client = connected(address, &tasks).await;
        let mut other = client.clone();
        let kept = other.send_request(call("wait"));
        let mut kept = pin!(kept);
        first_of(kept.as_mut(), seen.beginning.notified()).await;
        let lost = client.send_request(call("wait"));
        first_of(lost, seen.beginning.notified()).await;
        // Dropping the future of the response has reset its stream.
        seen.cancelled.notified().await;
        seen.go_on.notify_one();
        assert!(text(kept.await.unwrap()).await.contains("went on"));
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn events_come_one_by_one_and_a_shutdown_ends_their_stream_in_order() {
    let server = server(&Arc::default());
    let listener = bind(server.clone()).await.grace(Duration::from_millis(50));
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let heard = Notify::new();
    let clients = async {
        let mut stream = connected(address, &tasks).await.send_request(listen()).await.unwrap().into_body();
        let mut next = async || stream.frame().await.map(|frame| frame.unwrap().into_data().unwrap());
        let said = next().await.unwrap();
        assert!(String::from_utf8_lossy(&said).contains("acknowledged"), "{said:?}");
        server.tools_changed();
        let said = next().await.unwrap();
        assert!(String::from_utf8_lossy(&said).contains("list_changed"), "{said:?}");
        heard.notify_one();
        let said = next().await.unwrap();
        assert!(String::from_utf8_lossy(&said).contains("\"result\""), "{said:?}");
        assert!(next().await.is_none(), "the stream ends in order");
    };
    tokio::join!(listener.run(heard.notified()), clients);
}

/// Field case 5: a proxy holds the head of a stream until there is something to send with it.
#[tokio::test]
async fn a_standalone_stream_shows_itself_before_anything_happens() {
    let listener = bind(server(&Arc::default())).await;
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let mut client = connected(address, &tasks).await;
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
            "capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        let at = |method: &str| Request::builder().method(method).uri("http://localhost/mcp");
        let hello = at("POST").header("content-type", "application/json").body(Full::from(hello)).unwrap();
        let session = client.send_request(hello).await.unwrap().headers()["mcp-session-id"].clone();
        let listen = at("GET").header("accept", "text/event-stream").header("mcp-session-id", session);
        let mut stream = client.send_request(listen.body(Full::default()).unwrap()).await.unwrap();
        assert_eq!(stream.status(), 200);
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        let first = stream.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(first.starts_with(b":") && first.ends_with(b"\n\n"), "{first:?}");
    };
    let begun = Instant::now();
    listener.run(clients).await;
    // Signs of life come every fifteen seconds: this is none of them.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_stuck_call_does_not_keep_the_listener() {
    let seen = Arc::new(Seen::default());
    let listener = bind(server(&seen)).await.grace(Duration::MAX);
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let mut client = connected(address, &tasks).await;
    let called = client.send_request(call("stuck"));
    let ((), called) = tokio::join!(listener.run_until(pending(), seen.beginning.notified()), called);
    assert!(called.is_err());
}

#[tokio::test]
async fn the_bounds_are_announced_and_hold() {
    let listener = bind(server(&Arc::default())).await;
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let mut raw = TcpStream::connect(address).await.unwrap();
        raw.write_all(&[PREFACE, SETTINGS].concat()).await.unwrap();
        let mut head = [0; 9];
        raw.read_exact(&mut head).await.unwrap();
        assert_eq!(head[3], 4, "settings come first");
        let mut said = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        raw.read_exact(&mut said).await.unwrap();
        let setting = |wanted: u16| {
            let mut all = said.chunks_exact(6).map(|entry| {
                let number = u16::from_be_bytes([entry[0], entry[1]]);
                (number, u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]))
            });
            all.find(|(number, _)| *number == wanted).unwrap().1
        };
        let (streams, window, header_list) = (setting(3), setting(4), setting(6));
        assert_eq!((streams, window, header_list), (100, 256 * 1024, 64 * 1024));

        let mut large = call("greet");
        for number in 0..80 {
            let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
            large.headers_mut().insert(name, "y".repeat(1024).try_into().unwrap());
        }
        let refused = connected(address, &tasks).await.send_request(large).await.unwrap();
        assert_eq!(refused.status(), 431);
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn a_client_that_gives_no_window_loses_its_connection_and_its_place() {
    let config = HttpConfig::new(mcp_auth::Anonymous).max_in_flight(1);
    let listener = over(large(), config).await.header_timeout(Duration::from_millis(100));
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let mut unwilling = hyper::client::conn::http2::Builder::new(Tracked::new(&tasks));
        let (mut sender, connection) =
            unwilling.initial_stream_window_size(0).handshake::<_, Full<Bytes>>(stream).await.unwrap();
        tasks.spawn(connection);
        let untaken = sender.send_request(call("greet")).await.unwrap();
        assert_eq!(untaken.status(), 200);
        let mut other = super::client(address, &tasks).await;
        let refused = other.send_request(call("greet")).await.unwrap();
        assert_eq!(refused.status(), 503, "an answer that is not taken has its place");
        text(refused).await;
        assert!(untaken.into_body().collect().await.is_err(), "its connection is cut");
        let served = client(TcpStream::connect(address).await.unwrap(), &tasks).await.send_request(call("greet")).await;
        assert!(text(served.unwrap()).await.contains("hello"));
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn requests_that_are_taken_back_at_once_end_the_connection() {
    // HEADERS for `GET / HTTP` from the static table, and RST_STREAM behind it.
    fn taken_back(stream: u32) -> Vec<u8> {
        let id = stream.to_be_bytes();
        let headers = [&[0, 0, 3, 1, 5][..], &id, &[0x82, 0x86, 0x84]].concat();
        [headers, [&[0, 0, 4, 3, 0][..], &id, &[0, 0, 0, 8]].concat()].concat()
    }
    let listener = bind(server(&Arc::default())).await;
    let address = listener.local_addr().unwrap();
    let clients = async {
        let mut raw = TcpStream::connect(address).await.unwrap();
        let flood = (0..500).flat_map(|number| taken_back(2 * number + 1));
        let bytes: Vec<u8> = [PREFACE, SETTINGS].concat().into_iter().chain(flood).collect();
        raw.write_all(&bytes).await.unwrap();
        let mut said = Vec::new();
        // Ends, instead of waiting for more.
        let _ = raw.read_to_end(&mut said).await;
        let why = String::from_utf8_lossy(&said);
        assert!(why.ends_with("too_many_resets"), "{why:?}");
    };
    listener.run(clients).await;
}
