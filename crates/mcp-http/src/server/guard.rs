//! What is checked before anything of a request is understood: path, host, origin, kinds of content, size.
//!
//! Why here: the checks are the same for both eras, and they are on by default.
//! Invariants: a body is never read beyond its limit or its time; a refusal says what is right.
//! Spec: 2026-07-28 basic/transports/streamable-http, "Security Warning"

use std::future::poll_fn;
use std::pin::pin;

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, CACHE_CONTROL,
    HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, VARY,
};
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};
use http_body::Body;
use mcp_auth::ProtectedResource;
use mcp_wire::{ErrorCode, RpcError, encode_error};

use super::body::HttpBody;
use super::config::HttpConfig;
use crate::codec::origin::sole_host;

/// Names of the protocol's own headers.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How the names of headers begin that repeat a parameter.
pub(super) const MIRRORED: &str = "mcp-param-";

/// What a request asks for, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    Endpoint,
    /// The stream of the pair, and where its messages are posted.
    PairStream(&'a str),
    PairMessages,
}

/// Where a request goes; `None` if nothing is there.
pub(super) fn place<'a>(config: &'a HttpConfig, request: &Parts) -> Option<Place<'a>> {
    if let Some(pair) = config.pair.as_ref().filter(|_| config.sessions) {
        let path = request.uri.path();
        if is_path(path, &pair.messages) {
            return Some(Place::PairMessages);
        }
        let shared = || request.method == Method::GET && !request.headers.contains_key(SESSION_ID);
        if is_path(path, &pair.stream) && (!is_endpoint(config, &request.uri) || shared()) {
            return Some(Place::PairStream(&pair.messages));
        }
    }
    is_endpoint(config, &request.uri).then_some(Place::Endpoint)
}

/// Whether the endpoint is at this address.
fn is_endpoint(config: &HttpConfig, uri: &Uri) -> bool {
    config.path.as_ref().is_none_or(|path| is_path(uri.path(), path))
}

/// Whether this is the path that is asked for. The slash at the end is no other place: redirecting would lose the body.
fn is_path(asked: &str, path: &str) -> bool {
    asked == path || asked.strip_suffix('/') == Some(path)
}

/// The request's origin, if it has an allowed one.
///
/// # Errors
/// The response to a request from the wrong place.
#[expect(clippy::result_large_err, reason = "the refusal is the answer: boxing it would only move it")]
pub(super) fn check_source<'a>(
    config: &HttpConfig,
    uri: &Uri,
    headers: &'a HeaderMap,
) -> Result<Option<&'a HeaderValue>, Response<HttpBody>> {
    let refuse = |what: &str, why: &dyn std::fmt::Display| {
        refusal(StatusCode::FORBIDDEN, ErrorCode::INVALID_REQUEST, format!("the request's {what} is refused: {why}"))
    };
    let named = match uri.authority() {
        // HTTP/2, and HTTP/1 requests with an absolute target.
        Some(authority) => Some(authority.as_str()),
        None => sole_host(headers).map_err(|error| refuse("Host", &error))?,
    };
    if let Some(host) = named {
        config.hosts.check(host).map_err(|error| refuse("Host", &error))?;
    }
    config.origins.check(headers).map_err(|error| refuse("Origin", &error))
}

/// The methods that are served at a place.
pub(super) fn methods(config: &HttpConfig, place: Place<'_>) -> HeaderValue {
    HeaderValue::from_static(match place {
        Place::Endpoint if config.sessions => "POST, GET, DELETE, OPTIONS",
        Place::Endpoint | Place::PairMessages => "POST, OPTIONS",
        Place::PairStream(_) => "GET, OPTIONS",
    })
}

/// The answer to a browser that asks before it sends: what is served here, and no more.
pub(super) fn preflight(config: &HttpConfig, place: Place<'_>, request: &HeaderMap) -> Response<HttpBody> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods(config, place));
    let mut allowed = String::from("content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name");
    if config.sessions {
        allowed.push_str(", mcp-session-id, last-event-id");
    }
    // Which parameters are mirrored is the tools' to say; those that are asked for are allowed by their common beginning.
    let asked = request.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|asked| asked.to_str().ok()).unwrap_or_default();
    let asked = asked.split(',').filter_map(|name| HeaderName::try_from(name.trim()).ok());
    let mirrored = asked.filter(|name| name.as_str().starts_with(MIRRORED));
    for header in config.auth.headers().iter().cloned().chain(mirrored) {
        allowed.push_str(", ");
        allowed.push_str(header.as_str());
    }
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// The answer to a request for the metadata document, `None` to any other. It is for any page of any origin: it holds no
/// secret, and who reads it is nobody yet.
pub(super) fn metadata(config: &HttpConfig, request: &Parts) -> Option<Response<HttpBody>> {
    let resource = config.resource.as_ref()?;
    let path = request.uri.path();
    if path != resource.path() && path != ProtectedResource::root_path() {
        return None;
    }
    let mut response = match request.method {
        // hyper leaves the body of an answer to HEAD out.
        Method::GET | Method::HEAD => {
            let mut response = json(StatusCode::OK, Bytes::copy_from_slice(resource.document().as_bytes()));
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
            response
        }
        Method::OPTIONS => {
            let mut response = empty(StatusCode::NO_CONTENT);
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, OPTIONS"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
            response
        }
        _ => {
            let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
            response
        }
    };
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    Some(response)
}

/// The answer to a probe of whoever runs the server, `None` to anything else. Probes call by addresses, so they come before
/// the check of the host; what they learn is no secret.
pub(super) fn health(config: &HttpConfig, request: &Parts, is_ready: bool) -> Option<Response<HttpBody>> {
    let status = match request.uri.path() {
        _ if !config.health => return None,
        "/readyz" if !is_ready => StatusCode::SERVICE_UNAVAILABLE,
        "/healthz" | "/readyz" => StatusCode::OK,
        _ => return None,
    };
    if matches!(request.method, Method::GET | Method::HEAD) {
        return Some(empty(status));
    }
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    Some(response)
}

/// The answer to a request for which there is no place.
pub(super) fn overloaded() -> Response<HttpBody> {
    let text = "too many requests are under way; try again";
    later(refusal(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::INTERNAL_ERROR, text))
}

/// The answer to a caller who has as many requests under way as one caller may.
pub(super) fn too_many() -> Response<HttpBody> {
    let text = "too many of your requests are under way; try again when one has ended";
    later(refusal(StatusCode::TOO_MANY_REQUESTS, ErrorCode::INTERNAL_ERROR, text))
}

fn later(mut response: Response<HttpBody>) -> Response<HttpBody> {
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Lets the page at an allowed origin read the response.
pub(super) fn share(response: &mut Response<HttpBody>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("origin"));
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("mcp-session-id, mcp-protocol-version, www-authenticate"),
    );
}

/// Reads a body within its limits.
///
/// # Errors
/// The response to a body that is too large, too slow or broken.
pub(super) async fn read_body<B>(config: &HttpConfig, body: B) -> Result<Bytes, Response<HttpBody>>
where
    B: Body<Data = Bytes>,
{
    let limit = config.max_body_bytes;
    let too_large = || {
        let text = format!("the body is larger than {limit} bytes");
        refusal(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::INVALID_REQUEST, text)
    };
    // A body that says how long it is may be refused before it is read.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(too_large());
    }
    let mut body = pin!(body);
    let mut first: Option<Bytes> = None;
    let mut more: Option<BytesMut> = None;
    let mut timer = None;
    loop {
        let frame = poll_fn(|context| {
            if let std::task::Poll::Ready(frame) = body.as_mut().poll_frame(context) {
                return std::task::Poll::Ready(Ok(frame));
            }
            // Most bodies are here already; only one that is not starts a clock.
            let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(config.body_timeout)));
            timer.as_mut().poll(context).map(Err)
        });
        let frame = match frame.await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => {
                let text = "the body ended before it was whole";
                return Err(refusal(StatusCode::BAD_REQUEST, ErrorCode::PARSE_ERROR, text));
            }
            Err(()) => {
                let text = "the body did not arrive in time";
                return Err(refusal(StatusCode::REQUEST_TIMEOUT, ErrorCode::INVALID_REQUEST, text));
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        let length = first.as_ref().map_or(0, Bytes::len) + more.as_ref().map_or(0, BytesMut::len) + data.len();
        if length > limit {
            return Err(too_large());
        }
        match (&mut first, &mut more) {
            (None, None) => {
                first = Some(data);
                if body.is_end_stream() {
                    break;
                }
            }
            (_, Some(joined)) => joined.extend_from_slice(&data),
            (Some(_), None) => {
                let mut joined = BytesMut::with_capacity(announced.max(length));
                joined.extend_from_slice(&first.take().unwrap_or_default());
                joined.extend_from_slice(&data);
                more = Some(joined);
            }
        }
    }
    Ok(more.map(BytesMut::freeze).or(first).unwrap_or_default())
}

/// A response with an error that belongs to no request that could be read.
pub(super) fn refusal(
    status: StatusCode,
    code: ErrorCode,
    message: impl Into<std::borrow::Cow<'static, str>>,
) -> Response<HttpBody> {
    json(status, encode_error(None, &RpcError::new(code, message), false))
}

/// A response with one JSON document.
pub(super) fn json(status: StatusCode, document: Bytes) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::whole(document));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use mcp_auth::Anonymous;

    use super::*;

    #[test]
    fn the_endpoint_has_two_spellings_and_no_more() {
        let config = HttpConfig::new(Anonymous);
        for (path, served) in [
            ("/mcp", true),
            ("/mcp/", true),
            ("/mcp?x=1", true),
            ("/mcpx", false),
            ("/mcp//", false),
            ("/MCP", false),
            ("/", false),
            ("/x/mcp", false),
        ] {
            assert_eq!(is_endpoint(&config, &path.parse().unwrap()), served, "{path}");
        }
        assert!(is_endpoint(&HttpConfig::new(Anonymous).any_path(), &"/anything".parse().unwrap()));
        assert!(is_endpoint(&HttpConfig::new(Anonymous).path("/a/b/"), &"/a/b".parse().unwrap()));
        assert!(is_endpoint(&HttpConfig::new(Anonymous).path("/"), &"/".parse().unwrap()));
    }

    #[test]
    fn a_browser_is_told_what_is_served() {
        let told = |config: HttpConfig, place, asked: &'static str| {
            let asked = [(ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_static(asked))].into_iter().collect();
            let response = preflight(&config, place, &asked);
            let said = |name| response.headers()[name].to_str().unwrap().to_owned();
            (said(ACCESS_CONTROL_ALLOW_METHODS), said(ACCESS_CONTROL_ALLOW_HEADERS))
        };
        let config = || HttpConfig::new(Anonymous);
        let (methods, headers) = told(config(), Place::Endpoint, "x-other, MCP-Param-Region, mcp-param-(, ");
        assert_eq!(methods, "POST, GET, DELETE, OPTIONS");
        assert!(headers.contains("mcp-session-id") && headers.ends_with(", mcp-param-region"), "{headers}");
        assert!(!headers.contains("x-other"), "{headers}");
        let (methods, headers) = told(config().without_sessions(), Place::Endpoint, "");
        assert_eq!(methods, "POST, OPTIONS");
        assert!(headers.contains("mcp-method") && !headers.contains("mcp-session-id"), "{headers}");
        assert_eq!(told(config(), Place::PairStream("/messages"), "").0, "GET, OPTIONS");
    }

    /// A body of which nothing ever comes.
    struct Late;

    impl Body for Late {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            std::task::Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_waited_for_no_longer_than_its_time() {
        let begun = tokio::time::Instant::now();
        let refused = read_body(&HttpConfig::new(Anonymous), Late).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(begun.elapsed().as_secs(), 60);
    }
}
