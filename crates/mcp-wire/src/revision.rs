//! The dated revisions of the protocol, their two eras, and one row of rules per revision.
//!
//! Why here: what a revision has or lacks is data, so that no code compares revisions elsewhere.
//! Invariants: [`Revision`] is ordered by date and closed, so that a new revision is a compile error where it matters.
//! Spec: 2026-07-28 basic/versioning, "Protocol Version Negotiation"

use std::fmt;
use std::str::FromStr;

/// A published revision, in the order of publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a new revision must be a compile error wherever it matters")]
pub enum Revision {
    /// 2024-11-05: the first, with the HTTP+SSE pair.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, batches, audio.
    V2025_03_26,
    /// 2025-06-18: structured results, elicitation, resource links.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, sampling tools, polling streams.
    V2025_11_25,
    /// 2026-07-28: stateless requests, multi round-trip requests, subscriptions.
    V2026_07_28,
}

/// The two ways of talking: with a handshake and sessions, or with everything in each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a third era must be a compile error wherever it matters")]
pub enum Era {
    /// Revisions up to 2025-11-25.
    Legacy,
    /// Revisions from 2026-07-28.
    Modern,
}

impl Era {
    /// The era's name, for people: `legacy` or `modern`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// What a revision has and lacks; one row each.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rules {
    /// How requests carry their context.
    pub era: Era,
    /// JSON-RPC batches are received.
    pub batches: bool,
    /// Results say `resultType`, name the server in `_meta` and carry caching hints.
    pub result_type: bool,
    /// The code for a resource that does not exist.
    pub resource_missing: i64,
    /// `audio` content blocks exist.
    pub audio: bool,
    /// Tools carry `annotations`, progress carries `message`, the `completions` capability exists.
    pub tool_annotations: bool,
    /// `structuredContent` and `outputSchema` (object rooted), `resource_link`, `title`, `_meta` on types.
    pub structured: bool,
    /// `structuredContent` may be any JSON value and `outputSchema` may have any root.
    pub structured_any: bool,
    /// `icons`, `execution`, `description` and `websiteUrl` of an implementation.
    pub icons: bool,
    /// `elicitation/create` exists.
    pub elicitation: bool,
    /// URL elicitation, titled and multi-select enumerations, defaults on every kind of field.
    pub elicitation_extended: bool,
    /// URL elicitations have names, their completion is told, and -32042 asks for them.
    pub named_visits: bool,
    /// Sampling takes tools and several content blocks per message.
    pub sampling_tools: bool,
    /// An event with an id and empty data opens a stream, and the server may end a stream before its response.
    pub polling: bool,
    /// An error may go without an `id`; before, it carries a null one.
    pub error_without_id: bool,
    /// The code for a capability that the client did not declare.
    pub missing_capability: i64,
    /// Core tasks (`task` parameter, `execution.taskSupport`) exist.
    pub core_tasks: bool,
    /// Capabilities have a map of `extensions`; before, what is outside the protocol is `experimental`.
    pub extensions: bool,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest revision of all.
    pub const NEWEST: Self = Self::V2026_07_28;
    /// The newest revision with a handshake: the answer to an `initialize` that names an unknown one.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    /// What a legacy request over HTTP speaks that says nothing.
    pub const HTTP_DEFAULT: Self = Self::V2025_03_26;

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The rules of this revision.
    #[must_use]
    pub const fn rules(self) -> &'static Rules {
        match self {
            Self::V2024_11_05 => &V2024_11_05,
            Self::V2025_03_26 => &V2025_03_26,
            Self::V2025_06_18 => &V2025_06_18,
            Self::V2025_11_25 => &V2025_11_25,
            Self::V2026_07_28 => &V2026_07_28,
        }
    }

    /// The era of this revision.
    #[must_use]
    pub const fn era(self) -> Era {
        self.rules().era
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no revision that this library knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a known protocol revision")]
#[non_exhaustive]
pub struct UnknownRevision;

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text).ok_or(UnknownRevision)
    }
}

const V2024_11_05: Rules = Rules {
    era: Era::Legacy,
    batches: false,
    result_type: false,
    resource_missing: -32002,
    audio: false,
    tool_annotations: false,
    structured: false,
    structured_any: false,
    icons: false,
    elicitation: false,
    elicitation_extended: false,
    named_visits: false,
    sampling_tools: false,
    polling: false,
    error_without_id: false,
    missing_capability: -32602,
    core_tasks: false,
    extensions: false,
};

const V2025_03_26: Rules = Rules { batches: true, audio: true, tool_annotations: true, ..V2024_11_05 };

const V2025_06_18: Rules = Rules { batches: false, structured: true, elicitation: true, ..V2025_03_26 };

const V2025_11_25: Rules = Rules {
    icons: true,
    elicitation_extended: true,
    named_visits: true,
    sampling_tools: true,
    polling: true,
    error_without_id: true,
    core_tasks: true,
    ..V2025_06_18
};

const V2026_07_28: Rules = Rules {
    era: Era::Modern,
    result_type: true,
    named_visits: false,
    resource_missing: -32602,
    structured_any: true,
    polling: false,
    missing_capability: -32021,
    core_tasks: false,
    extensions: true,
    ..V2025_11_25
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_order_agree_with_the_dates() {
        for pair in Revision::ALL.windows(2) {
            assert!(pair[0] < pair[1]);
            assert!(pair[0].as_str() < pair[1].as_str());
        }
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
        }
        for unknown in ["", "2026-07-29", "v999", "2025-06-18 ", "DRAFT-2026-v1"] {
            assert_eq!(unknown.parse::<Revision>(), Err(UnknownRevision), "{unknown}");
        }
    }

    #[test]
    fn batches_belong_to_one_revision_only() {
        let with: Vec<_> = Revision::ALL.into_iter().filter(|revision| revision.rules().batches).collect();
        assert_eq!(with, [Revision::V2025_03_26]);
    }

    #[test]
    fn only_the_newest_revision_is_modern() {
        let modern: Vec<_> = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Modern).collect();
        assert_eq!(modern, [Revision::V2026_07_28]);
        assert_eq!(Revision::NEWEST_LEGACY.era(), Era::Legacy);
        assert_eq!(Some(&Revision::NEWEST), Revision::ALL.last());
    }
}
