//! TLS with rustls as the client, and certificates of the moment.

use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;

/// A certificate for `localhost` that vouches for itself, and its key.
struct Made {
    certificate: CertificateDer<'static>,
    pem: (String, String),
}

fn made() -> Made {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    Made { certificate: made.cert.der().clone(), pem: (made.cert.pem(), made.signing_key.serialize_pem()) }
}

impl Made {
    fn tls(&self) -> Tls {
        Tls::from_pem(self.pem.0.as_bytes(), self.pem.1.as_bytes()).unwrap()
    }
}

/// Connects as one who believes these certificates and offers this protocol.
async fn secured(address: SocketAddr, believed: &[&Made], offered: &str) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for made in believed {
        roots.add(made.certificate.clone()).unwrap();
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![offered.into()];
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

async fn client(stream: TlsStream<TcpStream>, tasks: &TaskTracker) -> SendRequest<Full<Bytes>> {
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(connection);
    sender
}

#[tokio::test]
async fn calls_are_answered_over_tls_in_the_protocol_that_was_agreed() {
    let made = made();
    let listener = bind(server(&Arc::default())).await.tls(made.tls());
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let stream = secured(address, &[&made], "http/1.1").await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        let mut old = client(stream, &tasks).await;
        assert!(text(old.send_request(call("greet")).await.unwrap()).await.contains("hello"));
        let stream = secured(address, &[&made], "h2").await;
        #[cfg(feature = "http2")]
        {
            let mut new = http2::client(stream.unwrap(), &tasks).await;
            let response = new.send_request(call("greet")).await.unwrap();
            assert_eq!(response.version(), http::Version::HTTP_2);
            assert!(text(response).await.contains("hello"));
        }
        #[cfg(not(feature = "http2"))]
        assert!(stream.is_err(), "nothing else is spoken");
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_ended_and_one_in_the_clear_is_refused() {
    let listener = bind(server(&Arc::default())).await.tls(made().tls()).handshake_timeout(Duration::from_millis(20));
    // Nothing else ends a connection here.
    let listener = listener.header_timeout(Duration::MAX);
    let address = listener.local_addr().unwrap();
    let clients = async {
        for begun in ["", "\u{16}\u{3}\u{1}", "POST /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
            let mut said = Vec::new();
            let _ = connect(address, begun).await.read_to_end(&mut said).await;
            assert!(!said.starts_with(b"HTTP"), "{begun:?}");
        }
    };
    listener.run(clients).await;
}

#[tokio::test]
async fn a_handshake_under_way_does_not_hold_up_the_end() {
    let made = made();
    let listener = bind(server(&Arc::default())).await.tls(made.tls());
    let listener = listener.grace(Duration::MAX).handshake_timeout(Duration::MAX);
    let address = listener.local_addr().unwrap();
    let clients = async {
        let idle = connect(address, "").await;
        // Accepted later, so that the first has been accepted.
        drop(secured(address, &[&made], "http/1.1").await.unwrap());
        idle
    };
    let (idle, over) = (tokio::sync::OnceCell::new(), Notify::new());
    let connecting = async {
        let _ = idle.set(clients.await);
        over.notify_one();
    };
    tokio::join!(listener.run(over.notified()), connecting);
}

#[tokio::test]
async fn a_certificate_is_replaced_under_load_and_no_connection_is_lost() {
    let (old, new) = (made(), made());
    let tls = old.tls();
    let listener = bind(server(&Arc::default())).await.tls(tls.clone());
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let (replaced, load) = (Arc::new(AtomicUsize::new(0)), TaskTracker::new());
        for _ in 0..4 {
            let stream = secured(address, &[&old], "http/1.1").await.unwrap();
            assert_eq!(shown(&stream), old.certificate);
            let (mut client, replaced) = (client(stream, &tasks).await, Arc::clone(&replaced));
            load.spawn(async move {
                // Before, during and after.
                let mut after = 0;
                while after < 10 {
                    after += replaced.load(Ordering::SeqCst);
                    let response = client.send_request(call("greet")).await.expect("the connection goes on");
                    assert!(text(response).await.contains("hello"));
                }
            });
        }
        tls.replace_pem(new.pem.0.as_bytes(), new.pem.1.as_bytes()).unwrap();
        let stream = secured(address, &[&old, &new], "http/1.1").await.unwrap();
        assert_eq!(shown(&stream), new.certificate);
        assert!(secured(address, &[&old], "http/1.1").await.is_err());
        replaced.store(1, Ordering::SeqCst);
        load.close();
        load.wait().await;
    };
    listener.run(clients).await;
}
