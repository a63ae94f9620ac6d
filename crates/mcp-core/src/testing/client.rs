//! A client in memory that speaks one revision to the engine itself.
//!
//! Why here: what differs between the eras before a request leaves and while a question is answered is written once.
//! Invariants: a request runs inside the future that waits for it, so dropping that future is what a client does that
//! goes away; questions are answered in the way of the client's revision.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use mcp_wire::{Frame, Revision, params};
use serde_json::{Map, Value, json};

use super::{TestError, decoded};
use crate::{Classified, Exchange, Outbound, Peer, Principal, Scope, Server};

type Answers = Box<dyn FnMut(&Asked) -> Value + Send>;

/// Rounds of questions after which a request counts as asking for ever.
const MOST_ROUNDS: usize = 100;

/// A client, connected to a server.
pub struct TestClient {
    peer: Peer,
    server: Server,
    revision: Revision,
    capabilities: Value,
    next_id: AtomicI64,
    answers: Mutex<Option<Answers>>,
}

/// A question of the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Asked {
    /// The name that the handler gave it; `None` where the revision does not tell.
    pub key: Option<String>,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

/// A response, with everything that came before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// The response as a whole.
    pub response: Value,
    /// Notifications that belong to the request, in order.
    pub notifications: Vec<Value>,
    /// Questions that were answered, in order.
    pub questions: Vec<Asked>,
}

impl TestClient {
    /// An anonymous client of the newest revision that declares every capability.
    #[must_use]
    pub fn modern(server: &Server) -> Self {
        Self::unconnected(server, Revision::NEWEST, every_capability(), Principal::anonymous())
    }

    /// An anonymous client of an older revision that declares every capability and has shaken hands.
    ///
    /// # Errors
    /// When the server does not agree to the revision.
    pub async fn legacy(server: &Server, revision: Revision) -> Result<Self, TestError> {
        Self::connect(server, revision, every_capability(), Principal::anonymous()).await
    }

    /// One client for each revision that the server serves: what one test says holds for all of them. Each is anonymous and
    /// declares every capability.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn of_every_revision(server: &Server) -> Result<Vec<Self>, TestError> {
        let mut clients = Vec::new();
        for revision in server.revisions() {
            clients.push(Self::connect(server, *revision, every_capability(), Principal::anonymous()).await?);
        }
        Ok(clients)
    }

    /// A client of any revision with capabilities of one's own choice, given as on the wire; it shakes hands where its
    /// revision does.
    ///
    /// # Errors
    /// When the server does not agree to the revision.
    pub async fn connect(
        server: &Server,
        revision: Revision,
        capabilities: Value,
        principal: Principal,
    ) -> Result<Self, TestError> {
        let client = Self::unconnected(server, revision, capabilities, principal);
        if !client.is_stateless() {
            let hello = json!({
                "protocolVersion": revision.as_str(),
                "capabilities": client.capabilities,
                "clientInfo": client_info(),
            });
            let reply = client.request("initialize", hello).await?;
            let agreed = &reply.result()?["protocolVersion"];
            if *agreed != revision.as_str() {
                return Err(TestError::new(format!("the server offers {agreed} instead of {revision}")));
            }
            client.notify("notifications/initialized", json!({})).await?;
        }
        Ok(client)
    }

    /// Answers questions with the result that `answers` makes of each. Without this a question is an error.
    #[must_use]
    pub fn answering(self, answers: impl FnMut(&Asked) -> Value + Send + 'static) -> Self {
        Self { answers: Mutex::new(Some(Box::new(answers))), ..self }
    }

    /// The revision that the client speaks.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Calls a tool and answers whatever it asks.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<Reply, TestError> {
        self.request("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// Sends a request and answers whatever is asked until there is a result or an error.
    ///
    /// # Errors
    /// A question that nobody answers, questions without end, and what is no proper exchange. An error of the server is a
    /// [`Reply`] like any other.
    pub async fn request(&self, method: &str, params: Value) -> Result<Reply, TestError> {
        let mut whole = Reply { response: Value::Null, notifications: Vec::new(), questions: Vec::new() };
        let mut retry = params.clone();
        for _ in 0..MOST_ROUNDS {
            let round = self.round(method, retry).await?;
            whole.notifications.extend(round.notifications);
            whole.questions.extend(round.questions);
            let result = &round.response["result"];
            if result["resultType"] != "input_required" {
                return Ok(Reply { response: round.response, ..whole });
            }
            let mut given = Map::new();
            for question in questions_of(result) {
                given.insert(question.key.clone().unwrap_or_default(), self.answer(&question)?);
                whole.questions.push(question);
            }
            retry = retried(&params, result, given);
        }
        Err(TestError::new(format!("{method} still asks after {MOST_ROUNDS} rounds")))
    }

    /// Sends a request once; a modern server's questions are then left in the result, an older one's are answered.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub async fn round(&self, method: &str, params: Value) -> Result<Reply, TestError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": self.enveloped(params) });
        let mut exchange = self.receive(&message)?;
        let mut reply = Reply { response: Value::Null, notifications: Vec::new(), questions: Vec::new() };
        while let Some(item) = exchange.next().await {
            match item {
                Outbound::Notification(frame) => reply.notifications.push(decoded(&frame)?),
                Outbound::Request(frame) => {
                    let request = decoded(&frame)?;
                    let question = Asked::of(None, &request);
                    let result = self.answer(&question)?;
                    let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
                    self.silently(&answer).await?;
                    reply.questions.push(question);
                }
                Outbound::Release { .. } => {}
                Outbound::Response(frame, _) => reply.response = decoded(&frame)?,
            }
        }
        if reply.response["id"] != id {
            return Err(TestError::new(format!("no response to request {id} ({method}) but {}", reply.response)));
        }
        Ok(reply)
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// When something is said in reply.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), TestError> {
        self.silently(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
    }

    /// The notices that no request caused and that are at hand: lists and resources that changed. Clients with a session
    /// have them; others send `subscriptions/listen`.
    ///
    /// # Errors
    /// When a notice is no JSON.
    pub fn notices(&self) -> Result<Vec<Value>, TestError> {
        let Some(session) = self.peer.session() else { return Ok(Vec::new()) };
        let mut context = Context::from_waker(Waker::noop());
        let mut notices = Vec::new();
        while let Poll::Ready(Some(frame)) = session.poll_notice(&mut context) {
            notices.push(decoded(&frame)?);
        }
        Ok(notices)
    }

    fn unconnected(server: &Server, revision: Revision, capabilities: Value, principal: Principal) -> Self {
        Self {
            peer: server.peer(principal, Scope::Connection),
            server: server.clone(),
            revision,
            capabilities,
            next_id: AtomicI64::new(1),
            answers: Mutex::new(None),
        }
    }

    /// Whether each request carries everything: then a question is a result, too.
    fn is_stateless(&self) -> bool {
        self.revision.rules().result_type
    }

    fn enveloped(&self, mut params: Value) -> Value {
        if !self.is_stateless() {
            return params;
        }
        let Some(members) = params.as_object_mut() else { return params };
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        let Some(meta) = meta.as_object_mut() else { return params };
        meta.entry(params::PROTOCOL_VERSION).or_insert_with(|| self.revision.as_str().into());
        meta.entry(params::CLIENT_CAPABILITIES).or_insert_with(|| self.capabilities.clone());
        meta.entry(params::CLIENT_INFO).or_insert_with(client_info);
        params
    }

    fn answer(&self, question: &Asked) -> Result<Value, TestError> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *answers {
            Some(answers) => Ok(answers(question)),
            None => Err(TestError::new(format!("nobody answers this question: {question:?}"))),
        }
    }

    async fn silently(&self, message: &Value) -> Result<(), TestError> {
        match self.receive(message)?.next().await {
            None => Ok(()),
            Some(said) => Err(TestError::new(format!("{message} was answered with {said:?}"))),
        }
    }

    fn receive(&self, message: &Value) -> Result<Exchange, TestError> {
        match Frame::decode(&Bytes::from(message.to_string()), self.server.limits().decode()) {
            Frame::One(message) => Ok(self.peer.receive(self.server.classify(message, None))),
            Frame::Malformed(error) => Ok(self.peer.receive(Classified::malformed(&error))),
            Frame::Batch(_) => Err(TestError::new("a request is one message")),
        }
    }
}

impl fmt::Debug for TestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestClient").field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl Asked {
    fn of(key: Option<&str>, asked: &Value) -> Self {
        let method = asked["method"].as_str().unwrap_or_default().to_owned();
        Self { key: key.map(ToOwned::to_owned), method, params: asked["params"].clone() }
    }
}

impl Reply {
    /// The result.
    ///
    /// # Errors
    /// When there is an error instead.
    pub fn result(&self) -> Result<&Value, TestError> {
        self.response.get("result").ok_or_else(|| TestError::new(format!("no result: {}", self.response)))
    }

    /// The code of the error.
    ///
    /// # Errors
    /// When there is a result instead.
    pub fn error_code(&self) -> Result<i64, TestError> {
        let code = self.response["error"]["code"].as_i64();
        code.ok_or_else(|| TestError::new(format!("no error: {}", self.response)))
    }

    /// The text of a tool's first content block.
    ///
    /// # Errors
    /// When there is none.
    pub fn text(&self) -> Result<&str, TestError> {
        let text = self.result()?["content"][0]["text"].as_str();
        text.ok_or_else(|| TestError::new(format!("no text: {}", self.response)))
    }

    /// Whether a tool says that it failed.
    #[must_use]
    pub fn is_tool_error(&self) -> bool {
        self.response["result"]["isError"] == true
    }
}

/// The questions in a result that asks, in their order.
pub(super) fn questions_of(result: &Value) -> Vec<Asked> {
    let requests = result["inputRequests"].as_object().into_iter().flatten();
    requests.map(|(key, asked)| Asked::of(Some(key), asked)).collect()
}

/// The request again, with answers and the state that goes with them.
pub(super) fn retried(params: &Value, result: &Value, given: Map<String, Value>) -> Value {
    let mut retry = params.clone();
    retry["inputResponses"] = given.into();
    if let Some(state) = result.get("requestState") {
        retry["requestState"] = state.clone();
    }
    retry
}

fn client_info() -> Value {
    json!({ "name": "test", "version": "1" })
}

/// Older revisions overlook what they do not know.
fn every_capability() -> Value {
    json!({
        "elicitation": { "form": {}, "url": {} },
        "sampling": { "tools": {}, "context": {} },
        "roots": { "listChanged": true },
    })
}
