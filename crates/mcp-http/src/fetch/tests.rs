//! Fetches from a server on this machine that does what it is told to, in the clear and over TLS.
//!
//! Time is tokio's and stands still but where it is moved, while what travels does so in real time.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;

/// A certificate for `localhost` and 127.0.0.1 that vouches for itself.
struct Made {
    pem: String,
    acceptor: TlsAcceptor,
}

fn made() -> Made {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    Made { pem: made.cert.pem(), acceptor: Arc::new(config).into() }
}

/// Trusts nobody that there is, and may talk to this machine.
fn local() -> HttpFetch {
    HttpFetch::trusting(made().pem.as_bytes()).unwrap().allow_loopback()
}

/// A name that leads to these addresses, whatever it is.
struct Leading(Vec<SocketAddr>);

#[async_trait]
impl Names for Leading {
    async fn resolve(&self, _name: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(self.0.clone())
    }
}

fn leading(mut fetch: HttpFetch, addresses: &[SocketAddr]) -> HttpFetch {
    fetch.names = Arc::new(Leading(addresses.to_vec()));
    fetch
}

async fn bound() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Reads a request up to its end: the head, and the body that the head announces.
async fn request_of(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = String::new();
    loop {
        let byte = stream.read_u8().await.unwrap();
        text.push(char::from(byte));
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
    }
}

/// What comes of a request that is answered with these bytes; they are the last.
async fn answered_with(
    request: impl FnOnce(SocketAddr) -> FetchRequest,
    answer: &[u8],
) -> Result<FetchResponse, FetchError> {
    let (listener, address) = bound().await;
    let fetch = local();
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        request_of(&mut stream).await;
        // The client may have gone after what it did not like.
        let _gone = stream.write_all(answer).await;
    };
    tokio::join!(fetch.fetch(request(address)), serve).0
}

fn plain(address: SocketAddr) -> FetchRequest {
    FetchRequest::new(&format!("http://{address}/keys"))
}

fn body_of(outcome: Result<FetchResponse, FetchError>) -> (u16, String) {
    let response = outcome.unwrap();
    (response.status().as_u16(), String::from_utf8(response.body().to_vec()).unwrap())
}

fn rule_of(outcome: Result<FetchResponse, FetchError>) -> &'static str {
    match outcome {
        Err(FetchError::Forbidden { rule }) => rule,
        other => panic!("{other:?}"),
    }
}

/// While it is there, time moves only where a test moves it: tokio's clock does not run ahead of blocking work.
fn still() -> mpsc::Sender<()> {
    let (sender, receiver) = mpsc::channel();
    #[expect(clippy::disallowed_methods, reason = "ends with the sender")]
    tokio::task::spawn_blocking(move || receiver.recv());
    sender
}

#[tokio::test]
async fn a_get_says_where_it_goes_and_what_it_takes_and_a_post_has_its_form() {
    let (listener, address) = bound().await;
    let fetch = local();
    for (form, expected) in [(None, "GET /keys?a=b HTTP/1.1"), (Some("token=t%26"), "POST /keys?a=b HTTP/1.1")] {
        let mut request = FetchRequest::new(&format!("http://{address}/keys?a=b"));
        if let Some(form) = form {
            request = request.with_form(form).with_authorization(HeaderValue::from_static("Basic YTpi"));
        }
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let text = request_of(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            text
        };
        let (outcome, text) = tokio::join!(fetch.fetch(request), serve);
        assert_eq!(body_of(outcome), (200, "{}".to_owned()));
        assert!(text.starts_with(expected), "{text}");
        assert!(
            text.contains(&format!("\r\nhost: {address}\r\n")) && text.contains("\r\naccept: application/json\r\n")
        );
        assert_eq!(text.contains("\r\nauthorization: Basic YTpi\r\n"), form.is_some());
        assert_eq!(text.split_once("\r\n\r\n").unwrap().1, form.unwrap_or_default());
    }
}

#[tokio::test]
async fn an_answer_is_read_in_every_form_that_it_may_have() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\n\r\nhello",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello and more",
    ] {
        assert_eq!(body_of(answered_with(plain, answer.as_bytes()).await), (200, "hello".to_owned()), "{answer}");
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    // Nobody else is asked: there is no second connection that could be accepted.
    let answer = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(body_of(answered_with(plain, answer).await), (302, String::new()));
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_request_says_and_no_larger() {
    let bounded = |address| plain(address).with_bounds(5, Duration::from_secs(60));
    let answer = |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}", "x".repeat(length));
    assert!(answered_with(bounded, answer(5).as_bytes()).await.is_ok());
    for answer in [
        answer(6),
        // Announced and never sent: it is not waited for.
        "HTTP/1.1 200 OK\r\ncontent-length: 9007199254740991\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\n\r\nabcdef".to_owned(),
    ] {
        assert_eq!(answered_with(bounded, answer.as_bytes()).await.unwrap_err(), FetchError::TooLarge, "{answer}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none_or_ends_too_soon_is_a_broken_connection() {
    let head = "x".repeat(2 * LARGEST_HEAD);
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "220 mail.example ESMTP\r\n",
        &format!("HTTP/1.1 200 OK\r\nx: {head}\r\n\r\n"),
    ] {
        let outcome = answered_with(plain, answer.as_bytes()).await;
        assert!(matches!(outcome, Err(FetchError::Connection { .. })), "{answer:.60}: {outcome:?}");
    }
}

#[tokio::test]
async fn an_answer_of_success_is_of_the_kind_that_was_asked_for() {
    let asking = |address| plain(address).with_content_type("application/json");
    for (line, status, is_taken) in [
        ("content-type: application/json\r\n", 200, true),
        ("content-type: Application/JSON; charset=utf-8\r\n", 200, true),
        ("content-type: text/html\r\n", 200, false),
        ("content-type: application/jsonp\r\n", 200, false),
        ("", 200, false),
        ("content-type: text/html\r\n", 404, true),
    ] {
        let answer = format!("HTTP/1.1 {status} So\r\n{line}content-length: 2\r\n\r\n{{}}");
        let outcome = answered_with(asking, answer.as_bytes()).await;
        assert_eq!(outcome.as_ref().err(), (!is_taken).then_some(&FetchError::ContentType), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_or_stops_within_its_answer_is_left_at_the_time_limit() {
    let still = still();
    for answer in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel"] {
        let (listener, address) = bound().await;
        let fetch = local();
        let request = plain(address).with_bounds(100, Duration::from_secs(3));
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            request_of(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            tokio::time::advance(Duration::from_secs(3)).await;
            // The client is gone, and its end of the connection closed.
            stream.read(&mut [0; 1]).await.unwrap_or(0)
        };
        let (outcome, read) = tokio::join!(fetch.fetch(request), serve);
        assert_eq!(read, 0);
        assert_eq!(outcome.unwrap_err(), FetchError::TimedOut, "{answer}");
    }
    drop(still);
}

#[tokio::test]
async fn a_fetch_that_is_dropped_ends_its_connection() {
    let (listener, address) = bound().await;
    let fetch = local();
    let (send, receive) = oneshot::channel();
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        request_of(&mut stream).await;
        send.send(()).unwrap();
        stream.read(&mut [0; 1]).await.unwrap_or(0)
    };
    let client = async {
        let mut fetching = fetch.fetch(plain(address).with_bounds(100, Duration::from_secs(600)));
        tokio::select! {
            _ = &mut fetching => panic!("nobody answered"),
            told = receive => told.unwrap(),
        }
        drop(fetching);
    };
    assert_eq!(tokio::join!(serve, client).0, 0);
}

#[tokio::test]
async fn nobody_who_listens_is_a_failed_connection() {
    let (listener, address) = bound().await;
    drop(listener);
    let outcome = local().fetch(plain(address)).await;
    assert!(
        matches!(&outcome, Err(FetchError::Connection { reason }) if reason.starts_with("no connection: ")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn certificates_are_verified_for_the_host_that_was_asked_for() {
    let (trusted, other) = (made(), made());
    let (listener, address) = bound().await;
    let port = address.port();
    let fetch = leading(HttpFetch::trusting(trusted.pem.as_bytes()).unwrap().allow_loopback(), &[address]);
    for (host, shown, expected) in [
        ("localhost", &trusted, None),
        ("127.0.0.1", &trusted, None),
        ("login.example", &trusted, Some("not valid for name")),
        ("localhost", &other, Some("invalid peer certificate")),
    ] {
        let serve = async {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = shown.acceptor.accept(stream).await else { return };
            request_of(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let request = FetchRequest::new(&format!("https://{host}:{port}/keys"));
        let (outcome, ()) = tokio::join!(fetch.fetch(request), serve);
        match (outcome, expected) {
            (Ok(response), None) => assert_eq!(response.body(), b"{}"),
            (Err(FetchError::Connection { reason }), Some(expected)) => assert!(reason.contains(expected), "{reason}"),
            (other, _) => panic!("{host}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn https_is_not_spoken_in_the_clear() {
    let (listener, address) = bound().await;
    let fetch = local();
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 3];
        stream.read_exact(&mut hello).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        hello
    };
    let request = FetchRequest::new(&format!("https://{address}/keys"));
    let (outcome, hello) = tokio::join!(fetch.fetch(request), serve);
    assert!(matches!(outcome, Err(FetchError::Connection { .. })), "{outcome:?}");
    assert_eq!(hello[..2], [0x16, 0x03], "a TLS handshake");
}

#[tokio::test]
async fn addresses_that_are_not_allowed_are_not_connected_to_and_the_rule_is_told() {
    let (listener, address) = bound().await;
    let port = address.port();
    let strict = HttpFetch::trusting(made().pem.as_bytes()).unwrap();
    for (url, expected) in [
        (format!("http://127.0.0.1:{port}/"), "only https is allowed"),
        (format!("https://127.0.0.1:{port}/"), "it is on this machine, which is not allowed here"),
        (format!("https://localhost:{port}/"), "it is on this machine, which is not allowed here"),
        (format!("https://[::ffff:127.0.0.1]:{port}/"), "it is on this machine, which is not allowed here"),
        ("https://10.0.0.1/".to_owned(), "it is in a private network, which is not allowed here"),
        ("https://169.254.169.254/".to_owned(), "it is link-local"),
        ("https://[fe80::1]/".to_owned(), "it is link-local"),
        ("https://0.0.0.0/".to_owned(), "it is reserved and no host's"),
        ("https://ann:secret@login.example/".to_owned(), "it holds a name and a password"),
        ("ftp://login.example/".to_owned(), "only https is allowed"),
        ("/keys".to_owned(), "it names no host"),
        ("https://login example/".to_owned(), "it is no address"),
        ("https://login.example/#keys".to_owned(), "it has a fragment"),
    ] {
        assert_eq!(rule_of(strict.fetch(FetchRequest::new(&url)).await), expected, "{url}");
    }
    let local = strict.clone().allow_loopback().allow_private();
    for (url, expected) in [
        ("http://login.example/", "plain http is for this machine alone"),
        ("http://10.0.0.1/", "plain http is for this machine alone"),
        ("https://169.254.169.254/", "it is link-local"),
    ] {
        assert_eq!(rule_of(local.fetch(FetchRequest::new(url)).await), expected, "{url}");
    }
    let nobody = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(nobody.is_err(), "somebody connected");
}

#[tokio::test]
async fn a_name_is_judged_by_where_it_leads() {
    let (listener, address) = bound().await;
    let port = address.port();
    let strict = HttpFetch::trusting(made().pem.as_bytes()).unwrap();
    let link_local = SocketAddr::from(([169, 254, 169, 254], port));
    let request = || FetchRequest::new(&format!("https://login.example:{port}/"));
    let fetch = leading(strict.clone(), &[address]);
    assert_eq!(rule_of(fetch.fetch(request()).await), "it is on this machine, which is not allowed here");
    let fetch = leading(strict.clone().allow_loopback().allow_private(), &[link_local]);
    assert_eq!(rule_of(fetch.fetch(request()).await), "it is link-local");
    // The name of this machine, led elsewhere, gets no request in the clear.
    let fetch = leading(strict.clone().allow_loopback(), &[SocketAddr::from(([1, 1, 1, 1], port))]);
    let unsecured = FetchRequest::new(&format!("http://localhost:{port}/"));
    assert_eq!(rule_of(fetch.fetch(unsecured).await), "plain http is for this machine alone");
    assert!(tokio::time::timeout(Duration::ZERO, listener.accept()).await.is_err(), "somebody connected");
    let fetch = leading(strict, &[]);
    assert!(matches!(fetch.fetch(request()).await, Err(FetchError::Connection { .. })));
}

#[tokio::test]
async fn addresses_that_are_not_allowed_or_do_not_answer_are_passed_over() {
    let (listener, address) = bound().await;
    let (closed, dead) = bound().await;
    drop(closed);
    let link_local = SocketAddr::from(([169, 254, 169, 254], address.port()));
    let fetch = leading(local(), &[link_local, dead, address]);
    let serve = async {
        let (mut stream, _): (TcpStream, _) = listener.accept().await.unwrap();
        request_of(&mut stream).await;
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    };
    let request = FetchRequest::new(&format!("http://localhost:{}/", address.port()));
    let (outcome, ()) = tokio::join!(fetch.fetch(request), serve);
    assert_eq!(body_of(outcome), (204, String::new()));
}

#[test]
fn authorities_that_are_none_are_refused_at_start() {
    for text in ["", "no pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        assert!(HttpFetch::trusting(text.as_bytes()).is_err(), "{text}");
    }
    assert!(matches!(HttpFetch::trusting(b""), Err(TrustError::NoAuthorities(_))));
    let printed = format!("{:?}", local());
    assert_eq!(printed, "HttpFetch { policy: Policy { loopback: true, private: false }, .. }");
}
