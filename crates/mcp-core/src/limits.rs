//! Every bound that a server sets on what a peer can make it do.
//!
//! Why here: one struct with one default each, so that no bound hides in the code that enforces it.

use std::time::Duration;

use mcp_wire::DecodeLimits;

/// Bounds with their defaults; change single fields of [`Limits::default`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Deepest nesting of a received message. Default 64. Beyond: -32600.
    pub json_depth: usize,
    /// Most messages of a batch. Default 100. Beyond: -32600.
    pub batch: usize,
    /// Entries on a page of a list. Default 50.
    pub page: usize,
    /// Requests that one session or connection may have under way. Default 128. Beyond: -32603; on a pipe, where the
    /// client cannot know, they wait first.
    pub in_flight_per_peer: usize,
    /// Requests of one pipe that wait until fewer than `in_flight_per_peer` of it run. Default 1,024. Beyond: -32603.
    pub waiting_per_peer: usize,
    /// Bytes of the requests of one pipe that run or wait; a single larger one is taken alone. Default 256 MiB, at most
    /// 4 GiB. Beyond: -32603.
    pub received_bytes_per_peer: usize,
    /// Log and progress messages that wait to be written for one request. Default 256. Beyond: progress is merged
    /// (the newest always arrives), log messages are dropped and the number is traced.
    pub notices: usize,
    /// How often one call may come back for answers. Default 10. Beyond: -32603.
    pub rounds: u32,
    /// Questions that one call may have open at a time. Default 50. Beyond: -32603.
    pub questions: usize,
    /// Bytes of a sealed `requestState`. Default 64 KiB. Beyond: -32603 when sealing, -32602 when received.
    pub state_bytes: usize,
    /// How long a sealed `requestState` is good. Default 5 minutes. Beyond: -32602.
    pub state_lifetime: Duration,
    /// How long a legacy call waits for the client's answers of one round. Default 5 minutes. Beyond: -32603.
    pub answer_wait: Duration,
    /// Requests to the client that one session may have open. Default 64. Beyond: -32603.
    pub pending_requests: usize,
    /// Named visits that one owner may have open at a time; strangers count by session. Default 20. Beyond: -32603.
    pub visits: usize,
    /// How long a named visit can be completed. Default 15 minutes.
    pub visit_lifetime: Duration,
    /// How long one attempt of a handler may run, unless the tool sets its own. Default 60 seconds. Beyond: -32603.
    pub call_timeout: Option<Duration>,
    /// How long a cancelled handler may take to notice, before it is dropped. Default 2 seconds.
    pub cancel_grace: Duration,
    /// Legacy sessions. Default 10,000. Beyond: the handshake is refused with -32603. What is not used of this serves
    /// for `subscriptions`, and the other way round: their sum is the bound for both together.
    pub sessions: usize,
    /// How long a legacy session lives without a message. Default 30 minutes.
    pub session_idle: Duration,
    /// Bytes of the parameters of a handshake, which its session keeps. Default 16 KiB. Beyond: -32602.
    pub handshake_bytes: usize,
    /// Resource URIs that one session or subscription may name. Default 1,000. Beyond: -32602.
    pub subscribed_uris: usize,
    /// Bytes of one such URI. Default 8 KiB. Beyond: -32602.
    pub uri_bytes: usize,
    /// Bytes of all such URIs together. Default 256 KiB. Beyond: -32602.
    pub subscribed_bytes: usize,
    /// Open `subscriptions/listen` streams, in one sum with `sessions`. Default 10,000. Beyond: -32603.
    pub subscriptions: usize,
    /// Blocking handlers that run at a time. Default 64. Beyond: they wait.
    pub blocking: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let decode = DecodeLimits::default();
        Self {
            json_depth: decode.depth,
            batch: decode.batch,
            page: 50,
            in_flight_per_peer: 128,
            waiting_per_peer: 1024,
            received_bytes_per_peer: 256 * 1024 * 1024,
            notices: 256,
            rounds: 10,
            questions: 50,
            state_bytes: 64 * 1024,
            state_lifetime: Duration::from_secs(300),
            answer_wait: Duration::from_secs(300),
            pending_requests: 64,
            visits: 20,
            visit_lifetime: Duration::from_secs(15 * 60),
            call_timeout: Some(Duration::from_secs(60)),
            cancel_grace: Duration::from_secs(2),
            sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            handshake_bytes: 16 * 1024,
            subscribed_uris: 1_000,
            uri_bytes: 8 * 1024,
            subscribed_bytes: 256 * 1024,
            subscriptions: 10_000,
            blocking: 64,
        }
    }
}

impl Limits {
    /// The bounds for decoding frames.
    #[must_use]
    pub fn decode(&self) -> DecodeLimits {
        let mut limits = DecodeLimits::default();
        limits.depth = self.json_depth;
        limits.batch = self.batch;
        limits
    }

    /// Whether one session or subscription may name all this.
    ///
    /// # Errors
    /// Which bound it is beyond.
    pub(crate) fn named<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
        let (mut number, mut bytes) = (0_usize, 0_usize);
        for name in names {
            if name.len() > self.uri_bytes {
                return Err(format!("none may have more than {} bytes", self.uri_bytes));
            }
            number += 1;
            bytes = bytes.saturating_add(name.len());
        }
        if number > self.subscribed_uris {
            return Err(format!("there may be at most {}", self.subscribed_uris));
        }
        if bytes > self.subscribed_bytes {
            return Err(format!("all together may have at most {} bytes", self.subscribed_bytes));
        }
        Ok(())
    }
}
