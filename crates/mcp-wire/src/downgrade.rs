//! Fits values to older revisions: takes out what a revision lacks and says it otherwise where that is possible.
//!
//! Why here: handlers and registries speak the newest revision only; this is the one place that knows how to say it in
//! the others. The methods are `for_rules` on the types themselves.
//! Invariants: afterwards a value holds nothing that the revision does not define; fitting twice changes nothing more;
//! text, pictures and names are never lost. A result's own `_meta` stays: every revision has it.
//! Spec: 2026-07-28 changelog, and those of the revisions before

use crate::capability::{ClientCapabilities, ElicitationCapability, ServerCapabilities};
use crate::raw::text_of;
use crate::types::{
    Annotations, AudioContent, CallToolResult, CompleteParams, ContentBlock, CreateMessageParams, GetPromptResult,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Prompt,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate, SamplingContent, TextContent, Tool,
};
use crate::{Era, RawJson, Rules};

impl Tool {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        if !rules.core_tasks {
            self.execution = None;
        }
        if has_everything(rules) {
            return;
        }
        if !rules.tool_annotations {
            self.annotations = None;
        }
        if !rules.structured {
            self.title = None;
            self.output_schema = None;
            self.meta = None;
        }
        if !rules.structured_any {
            self.output_schema.take_if(|schema| !is_rooted_in_object(schema));
        }
        if !rules.icons {
            self.icons = None;
        }
    }
}

/// A value that an older revision has no form for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this client's protocol revision has no {0}")]
#[non_exhaustive]
pub struct NoForm(pub &'static str);

impl CreateMessageParams {
    /// Leaves what these rules have.
    ///
    /// # Errors
    /// When tools are offered or talked to, or a message has several blocks, to a client that knows neither.
    pub fn for_rules(&mut self, rules: &Rules) -> Result<(), NoForm> {
        if has_everything(rules) {
            self.tools.iter_mut().flatten().for_each(|tool| tool.for_rules(rules));
            return Ok(());
        }
        if !rules.sampling_tools {
            let blocks = || self.messages.iter().flat_map(|message| &message.content);
            let talks_to_tools =
                blocks().any(|block| matches!(block, SamplingContent::ToolUse(_) | SamplingContent::ToolResult(_)));
            if self.tools.is_some() || self.tool_choice.is_some() || talks_to_tools {
                return Err(NoForm("tools in sampling"));
            }
            if self.messages.iter().any(|message| message.content.len() != 1) {
                return Err(NoForm("sampling messages with several blocks"));
            }
            // Messages have it since they may have several blocks.
            self.messages.iter_mut().for_each(|message| message.meta = None);
        }
        self.tools.iter_mut().flatten().for_each(|tool| tool.for_rules(rules));
        self.messages.iter_mut().flat_map(|message| &mut message.content).for_each(|block| block.for_rules(rules));
        Ok(())
    }
}

impl SamplingContent {
    /// Leaves what these rules have. Sound becomes a text that names it where there is no such block.
    fn for_rules(&mut self, rules: &Rules) {
        let (annotations, meta) = match self {
            Self::Text(text) => (&mut text.annotations, &mut text.meta),
            Self::Image(image) => (&mut image.annotations, &mut image.meta),
            Self::Audio(audio) if !rules.audio => {
                let mut annotations = audio.annotations.take();
                forget_last_change(&mut annotations);
                *self = Self::Text(TextContent { text: describe_audio(audio), annotations, meta: None });
                return;
            }
            Self::Audio(audio) => (&mut audio.annotations, &mut audio.meta),
            Self::ToolResult(result) => {
                return fit_outcome(&mut result.content, &mut result.structured_content, rules);
            }
            Self::ToolUse(_) => return,
        };
        if !rules.structured {
            *meta = None;
            forget_last_change(annotations);
        }
    }
}

impl ListToolsResult {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        for tool in &mut self.tools {
            tool.for_rules(rules);
        }
    }
}

impl CallToolResult {
    /// Leaves what these rules have. Structured content that has to go becomes a text if there is no other content.
    pub fn for_rules(&mut self, rules: &Rules) {
        if !has_everything(rules) {
            fit_outcome(&mut self.content, &mut self.structured_content, rules);
        }
    }
}

impl ContentBlock {
    /// Leaves what these rules have. Sound and links become texts that name them where there are no such blocks.
    pub fn for_rules(&mut self, rules: &Rules) {
        if has_everything(rules) {
            return;
        }
        match self {
            Self::Audio(audio) if !rules.audio => {
                let text = describe_audio(audio);
                *self = replacement(text, audio.annotations.take());
            }
            Self::ResourceLink(resource) if !rules.structured => {
                let text = format!("Resource {}: {}", resource.name, resource.uri);
                *self = replacement(text, resource.annotations.take());
            }
            Self::ResourceLink(resource) => resource.for_rules(rules),
            Self::Resource(embedded) => embedded.resource.for_rules(rules),
            Self::Text(_) | Self::Image(_) | Self::Audio(_) => {}
        }
        if !rules.structured {
            *self.meta_mut() = None;
            forget_last_change(self.annotations_mut());
        }
    }
}

impl Resource {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        if !rules.structured {
            self.title = None;
            self.meta = None;
            forget_last_change(&mut self.annotations);
        }
        if !rules.icons {
            self.icons = None;
        }
    }
}

impl ResourceTemplate {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        if !rules.structured {
            self.title = None;
            self.meta = None;
            forget_last_change(&mut self.annotations);
        }
        if !rules.icons {
            self.icons = None;
        }
    }
}

impl ResourceContents {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        if !rules.structured {
            self.meta = None;
        }
    }
}

impl ListResourcesResult {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        for resource in &mut self.resources {
            resource.for_rules(rules);
        }
    }
}

impl ListResourceTemplatesResult {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        for template in &mut self.resource_templates {
            template.for_rules(rules);
        }
    }
}

impl ReadResourceResult {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        for contents in &mut self.contents {
            contents.for_rules(rules);
        }
    }
}

impl Prompt {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        if !rules.structured {
            self.title = None;
            self.meta = None;
            for argument in self.arguments.iter_mut().flatten() {
                argument.title = None;
            }
        }
        if !rules.icons {
            self.icons = None;
        }
    }
}

impl ListPromptsResult {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        for prompt in &mut self.prompts {
            prompt.for_rules(rules);
        }
    }
}

impl GetPromptResult {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        for message in &mut self.messages {
            message.content.for_rules(rules);
        }
    }
}

impl CompleteParams {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        if rules.structured {
            return;
        }
        self.context = None;
        if let Reference::Prompt { title, .. } = &mut self.reference {
            *title = None;
        }
    }
}

impl Implementation {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        if !rules.structured {
            self.title = None;
        }
        if !rules.icons {
            self.description = None;
            self.website_url = None;
            self.icons = None;
        }
    }
}

impl ServerCapabilities {
    /// Leaves what these rules have.
    pub fn for_rules(&mut self, rules: &Rules) {
        if !rules.tool_annotations {
            self.completions = None;
        }
        if !rules.core_tasks {
            self.tasks = None;
        }
        if rules.era == Era::Legacy {
            self.extensions = None;
        }
    }
}

impl ClientCapabilities {
    /// Leaves what these rules have. A client that asks people by URL only cannot ask them where there are only forms.
    pub fn for_rules(&mut self, rules: &Rules) {
        if !rules.sampling_tools
            && let Some(sampling) = &mut self.sampling
        {
            sampling.context = None;
            sampling.tools = None;
        }
        if !rules.elicitation {
            self.elicitation = None;
        } else if !rules.elicitation_extended
            && let Some(elicitation) = self.elicitation.take()
        {
            let has_form = elicitation.form.is_some() || elicitation.url.is_none();
            self.elicitation = has_form.then(ElicitationCapability::default);
        }
        if !rules.core_tasks {
            self.tasks = None;
        }
        match rules.era {
            Era::Legacy => self.extensions = None,
            Era::Modern => {
                if let Some(roots) = &mut self.roots {
                    roots.list_changed = None;
                }
            }
        }
    }
}

/// The newest revision's case: nothing to look for in content.
const fn has_everything(rules: &Rules) -> bool {
    rules.audio && rules.tool_annotations && rules.structured && rules.structured_any && rules.icons
}

/// Fits what a tool said, to a client or to a model.
fn fit_outcome(content: &mut Vec<ContentBlock>, structured_content: &mut Option<RawJson>, rules: &Rules) {
    if !rules.structured_any {
        let lost = structured_content.take_if(|value| !rules.structured || !value.is_object());
        if let Some(value) = lost
            && content.is_empty()
        {
            content.push(ContentBlock::text(value.as_str()));
        }
    }
    for block in content {
        block.for_rules(rules);
    }
}

fn forget_last_change(annotations: &mut Option<Annotations>) {
    // Hints that said only this would be left empty.
    annotations.take_if(|known| known.last_modified.take().is_some() && *known == Annotations::default());
}

fn replacement(text: String, annotations: Option<Annotations>) -> ContentBlock {
    ContentBlock::Text(TextContent { text, annotations, meta: None })
}

fn describe_audio(audio: &AudioContent) -> String {
    // Four characters of base64 carry three bytes; padding carries none.
    let bytes = audio.data.trim_end_matches('=').len() * 3 / 4;
    format!("Audio left out: {}, {bytes} bytes", audio.mime_type)
}

/// Whether a schema says `"type": "object"` at its root, as revisions before any-JSON results demand.
fn is_rooted_in_object(schema: &RawJson) -> bool {
    #[derive(serde::Deserialize)]
    struct Root<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<&'a serde_json::value::RawValue>,
    }

    let root = schema.parse_borrowed::<Root<'_>>();
    root.is_ok_and(|root| root.kind.and_then(|kind| text_of(kind.get())).as_deref() == Some("object"))
}

#[cfg(test)]
mod tests;
