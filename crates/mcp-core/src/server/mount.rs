//! One server made of several: what is mounted is merged before anything is registered.
//!
//! Why here: parts of a server are written and tested alone; a built server still shares nothing with another.
//! Invariants: what is the server's own comes first, then what is mounted, in that order; layers stay around the tools
//! they came with.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::mem::take;

use super::{RegistrationError, ServerBuilder};
use crate::prompt::Prompt;
use crate::registry::{Entry, Table};
use crate::resource::{Resource, ResourceTemplate};
use crate::tool::{Tool, check_name};

/// Where something came from: the prefix it is mounted under, empty for what is the server's own.
type Origin = String;

/// What is to be registered, in order.
pub(super) struct Parts {
    pub(super) tools: Vec<(Origin, Tool)>,
    pub(super) resources: Vec<(Origin, Resource)>,
    pub(super) templates: Vec<(Origin, ResourceTemplate)>,
    pub(super) prompts: Vec<(Origin, Prompt)>,
    instructions: Vec<(Origin, String)>,
}

impl Parts {
    /// Takes them out of a builder, which is left with its settings and those that it gets from what is mounted in it.
    pub(super) fn of(builder: &mut ServerBuilder) -> Result<Self, RegistrationError> {
        let mut parts = Self {
            tools: own(take(&mut builder.tools)),
            resources: own(take(&mut builder.resources)),
            templates: own(take(&mut builder.templates)),
            prompts: own(take(&mut builder.prompts)),
            instructions: own(builder.instructions.take()),
        };
        for (prefix, mut other) in take(&mut builder.mounted) {
            check_name(&prefix)?;
            if other.access.is_set() {
                return Err(RegistrationError::MountedPolicy(prefix));
            }
            let mut inner = Self::of(&mut other)?;
            for (_, tool) in &mut inner.tools {
                tool.enclose(&other.layers);
                put_before(tool.name_mut(), &prefix);
            }
            for (_, prompt) in &mut inner.prompts {
                put_before(prompt.name_mut(), &prefix);
            }
            parts.tools.extend(under(&prefix, inner.tools));
            parts.resources.extend(under(&prefix, inner.resources));
            parts.templates.extend(under(&prefix, inner.templates));
            parts.prompts.extend(under(&prefix, inner.prompts));
            parts.instructions.extend(under(&prefix, inner.instructions));
            builder.extensions.append(&mut other.extensions);
            builder.offers.tools |= other.offers.tools;
            builder.offers.resources |= other.offers.resources;
            builder.offers.prompts |= other.offers.prompts;
            builder.offers.completions |= other.offers.completions;
        }
        Ok(parts)
    }

    /// The instructions of all, each under the prefix that it is about.
    pub(super) fn instructions(&self) -> Option<String> {
        let texts: Vec<String> = self
            .instructions
            .iter()
            .map(|(origin, text)| if origin.is_empty() { text.clone() } else { format!("{origin}.*:\n{text}") })
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

/// Registers what is of one kind.
pub(super) fn fill<T, E: Entry>(
    table: &mut Table<E>,
    things: Vec<(Origin, T)>,
    compile: impl Fn(T) -> Result<E, RegistrationError>,
) -> Result<(), RegistrationError> {
    let mut mounted: HashMap<String, Origin> = HashMap::new();
    for (origin, thing) in things {
        let entry = compile(thing)?;
        let key = entry.key().to_owned();
        if !table.insert(entry) {
            let first = mounted.remove(&key).unwrap_or_default();
            return Err(RegistrationError::Taken { key, first, second: origin });
        }
        if !origin.is_empty() {
            mounted.insert(key, origin);
        }
    }
    Ok(())
}

/// For the message of a clash: who the two are, where that is not plain.
pub(super) fn between(first: &str, second: &str) -> String {
    let name = |origin: &str| match origin {
        "" => "the server itself".to_owned(),
        prefix => format!("what is mounted at \"{prefix}\""),
    };
    if first.is_empty() && second.is_empty() {
        return String::new();
    }
    format!(": by {} and by {}", name(first), name(second))
}

fn own<T>(things: impl IntoIterator<Item = T>) -> Vec<(Origin, T)> {
    things.into_iter().map(|thing| (Origin::new(), thing)).collect()
}

fn under<T>(prefix: &str, things: Vec<(Origin, T)>) -> impl Iterator<Item = (Origin, T)> {
    things.into_iter().map(move |(origin, thing)| {
        let origin = if origin.is_empty() { prefix.to_owned() } else { format!("{prefix}.{origin}") };
        (origin, thing)
    })
}

/// An empty name stays empty, so that it is refused as it would be without a prefix.
fn put_before(name: &mut String, prefix: &str) {
    if !name.is_empty() {
        *name = format!("{prefix}.{name}");
    }
}
