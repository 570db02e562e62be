//! One thing found.

use serde::Serialize;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// While it is so, nothing begins, or the drain does not end.
    Blocks,
    /// It could not be looked at, so it may block.
    Unknown,
    /// It goes on, and somebody may be surprised: something is lost.
    Warns,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// As it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Blocks => "blocks",
            Severity::Unknown => "unknown",
            Severity::Warns => "warns",
            Severity::Note => "note",
        }
    }
}

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: `pod shop/db-0`, `RebootPolicy workers`.
    pub subject: String,
    /// A sentence.
    pub what: String,
    /// What to do about it, where there is anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        subject: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            subject: subject.into(),
            what: what.into(),
            fix: None,
        }
    }

    pub(super) fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }
}
