//! One finding of a check.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// Nothing begins, or the drain does not end, until this is fixed.
    Blocks,
    /// It could not be read, so it may block.
    Unknown,
    /// The reboot goes on, but something is lost that somebody may miss.
    Warns,
    Note,
}

impl FindingSeverity {
    pub fn as_str(self) -> &'static str {
        match self {
            FindingSeverity::Blocks => "blocks",
            FindingSeverity::Unknown => "unknown",
            FindingSeverity::Warns => "warns",
            FindingSeverity::Note => "note",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckFinding {
    pub severity: FindingSeverity,
    /// `pod shop/db-0`, `RebootPolicy workers`.
    pub subject: String,
    pub what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// A part of the input could not be read: nothing was found there.
    #[serde(skip)]
    pub is_unread: bool,
}

impl CheckFinding {
    pub(super) fn new(
        severity: FindingSeverity,
        subject: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            subject: subject.into(),
            what: what.into(),
            fix: None,
            is_unread: false,
        }
    }

    pub(super) fn with_fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }
}
