//! The extension: what the engine asks an extension for, answered for skills.
//!
//! Why here: one place shows how little an outsider has to write.
//! Invariants: a cursor names the last thing that was shown, so a page begins after it whatever the server was restarted
//! with; an entry is never split.
//! Spec: skills extension, "Capability Negotiation", "Listing Skills", "Getting a Skill" and "Reading Directories"

use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use mcp_core::{
    Extension, ExtensionMethod, ExtensionReply, ExtensionRequest, HandlerError, ReadRequest, RequestContext, Resource,
    ResourceReply, ResourceTemplate, ServerBuilder,
};
use mcp_wire::types::MetaObject;
use mcp_wire::{RawJson, Revision, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{EXTENSION, Skills};

#[derive(Deserialize)]
struct ListParams {
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct GetParams {
    uri: String,
}

#[derive(Deserialize)]
struct FolderParams {
    uri: String,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SkillsPage<'a> {
    skills: Vec<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FolderPage<'a> {
    resources: Vec<&'a mcp_wire::types::Resource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
}

#[async_trait]
impl Extension for Skills {
    fn id(&self) -> &str {
        EXTENSION
    }

    fn advertise(&self, revision: Revision) -> Option<MetaObject> {
        let settings = json!({ "directoryRead": true });
        settings.as_object().cloned().filter(|_| revision.rules().extensions)
    }

    fn methods(&self) -> Vec<ExtensionMethod> {
        ["skills/list", "skills/get", "resources/directory/read"].map(ExtensionMethod::new).into()
    }

    async fn handle(
        self: Arc<Self>,
        request: ExtensionRequest,
        _context: RequestContext,
    ) -> Result<ExtensionReply, HandlerError> {
        match request.method.as_str() {
            "skills/list" => self.list(&request.parse()?),
            "skills/get" => self.get(&request.parse()?),
            _ => self.read_folder(&request.parse()?),
        }
    }
}

impl Skills {
    fn list(&self, params: &ListParams) -> Result<ExtensionReply, HandlerError> {
        let (skills, next_cursor) = page(&self.shelf.entries, params.cursor.as_deref(), self.page)?;
        Ok(ExtensionReply::new(&SkillsPage { skills, next_cursor })?.cache(self.hints))
    }

    fn get(&self, params: &GetParams) -> Result<ExtensionReply, HandlerError> {
        let entry = self.shelf.entries.get(&params.uri);
        let skill = entry.ok_or_else(|| refused(&params.uri, "is not the address of a skill that is served here"))?;
        Ok(ExtensionReply::new(&json!({ "skill": skill }))?.cache(self.hints))
    }

    fn read_folder(&self, params: &FolderParams) -> Result<ExtensionReply, HandlerError> {
        let folder = self.shelf.tree.folder(&params.uri);
        let folder =
            folder.ok_or_else(|| refused(&params.uri, "is not the address of a folder that is served here"))?;
        let (resources, next_cursor) = page(folder, params.cursor.as_deref(), self.page)?;
        ExtensionReply::new(&FolderPage { resources, next_cursor })
    }

    fn read(&self, request: &ReadRequest) -> Result<ResourceReply, HandlerError> {
        let file = self.shelf.tree.file(&request.uri).ok_or_else(HandlerError::not_found)?;
        let mut reply = match std::str::from_utf8(&file.bytes) {
            Ok(text) => request.text(text),
            Err(_) => request.blob(&file.bytes),
        };
        for contents in &mut reply.contents {
            contents.mime_type = Some(file.mime_type.to_owned());
        }
        Ok(reply)
    }
}

/// See [`Skills::install`].
pub(crate) fn install(skills: Skills, mut builder: ServerBuilder) -> ServerBuilder {
    let hints = skills.hints;
    let reader = |skills: &Skills| {
        let skills = skills.clone();
        move |request: ReadRequest, _context: RequestContext| ready(skills.read(&request))
    };
    for skill in skills.skills() {
        let resource = Resource::new(skill.uri(), skill.text_field("name"), reader(&skills))
            .description(skill.text_field("description"))
            .mime_type("text/markdown")
            .cache(hints);
        builder = builder.resource(resource);
    }
    let files = ResourceTemplate::new("skill://{+path}", "skill-file", reader(&skills))
        .description("A file of a skill that this server has instructions in.")
        .cache(hints);
    builder.resource_template(files).extension(skills)
}

/// At most `most` values after the one that `cursor` names, and the cursor of the next page.
fn page<'a, T>(
    all: &'a BTreeMap<String, T>,
    cursor: Option<&str>,
    most: usize,
) -> Result<(Vec<&'a T>, Option<&'a str>), HandlerError> {
    let after = match cursor {
        None => Bound::Unbounded,
        Some(last) if all.contains_key(last) => Bound::Excluded(last),
        Some(other) => return Err(refused(other, "is no cursor of this list")),
    };
    let mut rest = all.range::<str, _>((after, Bound::Unbounded)).peekable();
    let shown: Vec<_> = rest.by_ref().take(most).collect();
    let last = shown.last().filter(|_| rest.peek().is_some()).map(|(key, _)| key.as_str());
    Ok((shown.into_iter().map(|(_, value)| value).collect(), last))
}

/// -32602 that shows enough of what was given to recognize it.
fn refused(given: &str, problem: &str) -> HandlerError {
    let shown: String = given.chars().take(140).collect();
    HandlerError::rpc(RpcError::invalid_params(format!("\"{shown}\" {problem}")))
}
