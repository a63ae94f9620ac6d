//! Resources and resource templates: how they are written, registered and answered for.
//!
//! Why here: a resource is a value with a handler, as a tool is.
//! Invariants: an address is compared without regard to the case of its scheme and exactly otherwise.
//! Spec: 2026-07-28 server/resources

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_wire::types::{self, Annotations, CacheHints, Icon, MetaObject, ResourceContents};
use mcp_wire::{RawJson, Revision};

use crate::handler::{Completer, ResourceHandler};
use crate::registry::{self, Entry, Rendered};
use crate::server::RegistrationError;
use crate::uri_template::{UriTemplate, Variables};
use crate::{HandlerError, RequestContext};

/// Which resource is to be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReadRequest {
    /// The address as the client wrote it.
    pub uri: String,
    /// The values of the template's variables, decoded; empty for a resource of its own.
    pub variables: Variables,
    /// The media type that was registered, for contents that name none.
    pub mime_type: Option<String>,
}

impl ReadRequest {
    pub(crate) fn new(uri: String, variables: Variables, mime_type: Option<String>) -> Self {
        Self { uri, variables, mime_type }
    }

    /// Text at the address that was asked for.
    pub fn text(&self, text: impl Into<String>) -> ResourceReply {
        ResourceReply::new(vec![self.typed(ResourceContents::text(&*self.uri, text))])
    }

    /// Bytes at the address that was asked for.
    #[must_use]
    pub fn blob(&self, bytes: &[u8]) -> ResourceReply {
        ResourceReply::new(vec![self.typed(ResourceContents::blob(&*self.uri, bytes))])
    }

    fn typed(&self, mut contents: ResourceContents) -> ResourceContents {
        contents.mime_type.clone_from(&self.mime_type);
        contents
    }
}

/// What a resource holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceReply {
    /// One or several contents; never none: a resource that is gone is [`HandlerError::not_found`].
    pub contents: Vec<ResourceContents>,
    /// `_meta` of the result.
    pub meta: Option<MetaObject>,
    /// How long clients may keep it, where that differs from what was registered.
    pub hints: Option<CacheHints>,
}

impl ResourceReply {
    /// A reply with these contents.
    #[must_use]
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self { contents, meta: None, hints: None }
    }
}

/// A resource with an address of its own, ready to be registered.
#[must_use = "a resource is served once it is registered"]
pub struct Resource {
    definition: types::Resource,
    handler: Arc<dyn ResourceHandler>,
    hints: Option<CacheHints>,
}

impl Resource {
    /// A resource that is read by a function.
    pub fn new<F, W>(uri: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(ReadRequest, RequestContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<ResourceReply, HandlerError>> + Send + 'static,
    {
        Self::from_handler(uri, name, Function(handler))
    }

    /// A text that does not change.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: Arc<str> = Arc::from(text.into());
        let size = u64::try_from(text.len()).ok();
        let mut resource =
            Self::new(uri, name, move |request: ReadRequest, _context| std::future::ready(Ok(request.text(&*text))));
        resource.definition.size = size;
        resource.mime_type("text/plain")
    }

    /// Bytes that do not change.
    pub fn blob(uri: impl Into<String>, name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let size = u64::try_from(bytes.len()).ok();
        let mut resource =
            Self::new(uri, name, move |request: ReadRequest, _context| std::future::ready(Ok(request.blob(&bytes))));
        resource.definition.size = size;
        resource.mime_type("application/octet-stream")
    }

    /// A resource with a handler of one's own type.
    pub fn from_handler(uri: impl Into<String>, name: impl Into<String>, handler: impl ResourceHandler) -> Self {
        Self { definition: types::Resource::new(uri, name), handler: Arc::new(handler), hints: None }
    }

    definition_setters! {
        /// What a person sees.
        title: String;
        /// What the model reads.
        description: String;
        /// The media type.
        mime_type: String;
        /// Whom it is for and how much it matters.
        annotations: Annotations;
        /// Pictures for lists.
        icons: Vec<Icon>;
        /// `_meta` of the definition.
        meta: MetaObject;
    }

    /// How long clients may keep what they read. Default: the server's.
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.hints = Some(hints);
        self
    }

    pub(crate) fn compile(mut self) -> Result<ResourceEntry, RegistrationError> {
        let key = normalized(&self.definition.uri)
            .ok_or_else(|| RegistrationError::Address(self.definition.uri.chars().take(140).collect()))?;
        if self.definition.name.is_empty() {
            self.definition.name.clone_from(&self.definition.uri);
        }
        Ok(ResourceEntry {
            key,
            definition: self.definition,
            handler: self.handler,
            hints: self.hints,
            rendered: Rendered::default(),
        })
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.definition.uri).finish_non_exhaustive()
    }
}

/// A family of resources whose addresses follow an RFC 6570 template, ready to be registered.
#[must_use = "a template is served once it is registered"]
pub struct ResourceTemplate {
    definition: types::ResourceTemplate,
    handler: Arc<dyn ResourceHandler>,
    hints: Option<CacheHints>,
    completers: HashMap<String, Arc<dyn Completer>>,
}

impl ResourceTemplate {
    /// A family that is read by a function; [`ReadRequest::variables`] says which member.
    pub fn new<F, W>(uri_template: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(ReadRequest, RequestContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<ResourceReply, HandlerError>> + Send + 'static,
    {
        Self::from_handler(uri_template, name, Function(handler))
    }

    /// A family with a handler of one's own type.
    pub fn from_handler(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: impl ResourceHandler,
    ) -> Self {
        Self {
            definition: types::ResourceTemplate::new(uri_template, name),
            handler: Arc::new(handler),
            hints: None,
            completers: HashMap::new(),
        }
    }

    definition_setters! {
        /// What a person sees.
        title: String;
        /// What the model reads.
        description: String;
        /// The media type of every member.
        mime_type: String;
        /// Whom it is for and how much it matters.
        annotations: Annotations;
        /// Pictures for lists.
        icons: Vec<Icon>;
        /// `_meta` of the definition.
        meta: MetaObject;
    }

    /// How long clients may keep what they read. Default: the server's.
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.hints = Some(hints);
        self
    }

    /// Suggests values for one of the template's variables.
    pub fn complete(mut self, variable: impl Into<String>, completer: impl Completer) -> Self {
        self.completers.insert(variable.into(), Arc::new(completer));
        self
    }

    pub(crate) fn compile(self) -> Result<TemplateEntry, RegistrationError> {
        let text = &self.definition.uri_template;
        let template = UriTemplate::parse(text)
            .map_err(|cause| RegistrationError::Template { template: text.chars().take(140).collect(), cause })?;
        for variable in self.completers.keys() {
            if !template.variables().any(|known| known == variable) {
                return Err(RegistrationError::Completer(variable.clone()));
            }
        }
        Ok(TemplateEntry {
            definition: self.definition,
            template,
            handler: self.handler,
            hints: self.hints,
            completers: self.completers,
            rendered: Rendered::default(),
        })
    }
}

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate").field("uri_template", &self.definition.uri_template).finish_non_exhaustive()
    }
}

/// A registered resource.
pub(crate) struct ResourceEntry {
    /// The address with its scheme in lower case.
    key: String,
    pub(crate) definition: types::Resource,
    pub(crate) handler: Arc<dyn ResourceHandler>,
    pub(crate) hints: Option<CacheHints>,
    rendered: Rendered,
}

impl Entry for ResourceEntry {
    fn key(&self) -> &str {
        &self.key
    }

    fn render(&self, revision: Revision) -> Bytes {
        let mut definition = self.definition.clone();
        definition.for_rules(revision.rules());
        registry::encode(&definition)
    }

    fn rendered(&self) -> &Rendered {
        &self.rendered
    }
}

/// A registered template.
pub(crate) struct TemplateEntry {
    pub(crate) definition: types::ResourceTemplate,
    pub(crate) template: UriTemplate,
    pub(crate) handler: Arc<dyn ResourceHandler>,
    pub(crate) hints: Option<CacheHints>,
    pub(crate) completers: HashMap<String, Arc<dyn Completer>>,
    rendered: Rendered,
}

impl Entry for TemplateEntry {
    fn key(&self) -> &str {
        &self.definition.uri_template
    }

    fn render(&self, revision: Revision) -> Bytes {
        let mut definition = self.definition.clone();
        definition.for_rules(revision.rules());
        registry::encode(&definition)
    }

    fn rendered(&self) -> &Rendered {
        &self.rendered
    }
}

/// The address with its scheme in lower case; `None` when it has no scheme and so is no absolute address.
pub(crate) fn normalized(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let mut letters = scheme.bytes();
    let valid = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let clean = !rest.is_empty() && !rest.bytes().any(|byte| byte.is_ascii_control() || byte == b' ');
    (valid && clean).then(|| format!("{}:{rest}", scheme.to_ascii_lowercase()))
}

/// An address as somebody wrote it, equal to all that name the same resource.
#[derive(Clone, Debug)]
pub(crate) struct Address(pub(crate) String);

impl Ord for Address {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_addresses(&self.0, &other.0)
    }
}

/// Compares addresses as [`Address`] does: the scheme without case and the rest exactly.
pub(crate) fn compare_addresses(one: &str, other: &str) -> Ordering {
    let (scheme, rest) = one.split_once(':').unwrap_or(("", one));
    let (other_scheme, other_rest) = other.split_once(':').unwrap_or(("", other));
    let [scheme, other_scheme] = [scheme, other_scheme].map(|it| it.bytes().map(|byte| byte.to_ascii_lowercase()));
    scheme.cmp(other_scheme).then_with(|| rest.cmp(other_rest))
}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Address {}

struct Function<F>(F);

#[async_trait]
impl<F, W> ResourceHandler for Function<F>
where
    F: Fn(ReadRequest, RequestContext) -> W + Send + Sync + 'static,
    W: Future<Output = Result<ResourceReply, HandlerError>> + Send + 'static,
{
    async fn read(
        self: Arc<Self>,
        request: ReadRequest,
        context: RequestContext,
    ) -> Result<ResourceReply, HandlerError> {
        (self.0)(request, context).await
    }
}

/// The text of a member of `params`, or why it is none.
pub(crate) fn text_member(name: &str, member: Option<&RawJson>) -> Result<String, mcp_wire::RpcError> {
    let refuse = || mcp_wire::RpcError::invalid_params(format!("params.{name} must be a string"));
    let member = member.ok_or_else(refuse)?;
    member.text().map(std::borrow::Cow::into_owned).ok_or_else(|| match member.parse::<String>() {
        Err(error) if error.is_syntax() => mcp_wire::RpcError::undecodable(&format!("params.{name}"), &error),
        _ => refuse(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_scheme_is_compared_without_case() {
        assert_eq!(normalized("FILE:///A/b").as_deref(), Some("file:///A/b"));
        assert_eq!(normalized("test+x.1-y:z").as_deref(), Some("test+x.1-y:z"));
        for bad in ["not a uri", "", ":", "a:", "1a:b", "a b:c", "/path", "a:b c", "a:\n"] {
            assert_eq!(normalized(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn addresses_are_equal_as_they_are_normalized() {
        let all = ["file:///A/b", "FILE:///A/b", "FILE:///a/b", "fil:e:///A/b", "files:///A/b", "file:///A/b/"];
        for (one, other) in all.iter().flat_map(|one| all.map(|other| (*one, other))) {
            let equal = Address(one.to_owned()) == Address(other.to_owned());
            assert_eq!(equal, normalized(one) == normalized(other), "{one} {other}");
        }
    }
}
