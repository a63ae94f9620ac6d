//! What is traced of a connection.

use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

use super::*;

/// Keeps the paths of spans, from the root, and the fields of connections.
#[derive(Clone, Default)]
struct Paths(Arc<Mutex<Vec<String>>>);

impl Layer<Registry> for Paths {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, Registry>) {
        // The library for HTTP/2 has spans of its own.
        if !attributes.metadata().name().starts_with("mcp.") {
            return;
        }
        let names = context.span_scope(id).unwrap().from_root().map(|span| span.name());
        let mut path = names.collect::<Vec<_>>().join("/");
        if attributes.metadata().name() == "mcp.connection" {
            attributes.record(&mut Fields(&mut path));
        }
        self.0.lock().unwrap().push(path);
    }
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Ports are the operating system's to choose.
        if field.name() != "network.peer.port" {
            self.0.push_str(&format!(" {field}={value:?}"));
        }
    }
}

#[tokio::test]
async fn requests_of_either_protocol_are_traced_within_their_connection() {
    let paths = Paths::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(paths.clone()));
    let listener = bind(server(&Arc::default())).await;
    let (address, tasks) = (listener.local_addr().unwrap(), TaskTracker::new());
    let clients = async {
        let old = client(address, &tasks).await.send_request(call("greet")).await.unwrap();
        assert!(text(old).await.contains("hello"));
        #[cfg(feature = "http2")]
        {
            let stream = TcpStream::connect(address).await.unwrap();
            let new = http2::client(stream, &tasks).await.send_request(call("greet")).await.unwrap();
            assert!(text(new).await.contains("hello"));
        }
    };
    listener.run(clients).await;
    let found = paths.0.lock().unwrap().clone();
    let of_one = [
        "mcp.connection network.transport=\"tcp\" network.peer.address=127.0.0.1 tls=false",
        "mcp.connection/mcp.request",
        "mcp.connection/mcp.request/mcp.call",
    ];
    let protocols = if cfg!(feature = "http2") { 2 } else { 1 };
    assert_eq!(found, of_one.repeat(protocols));
}
