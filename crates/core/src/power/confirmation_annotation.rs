//! The annotation with which a person confirms that a host is off: "I have pulled the plug".
//! Source: specification §4.2.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::annotations::{HostRebootAnnotation, reboot_annotations};
use super::host::HostSnapshot;

/// Set on a host by a person who has made sure that it is off. Its value is [`OffConfirmation`]
/// as JSON.
pub const CONFIRMED_OFF_ANNOTATION: &str = "dogwatch.dev/confirmed-off";

/// Who confirmed that a host is off, when, why, and for which keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OffConfirmation {
    /// The person's user name in the cluster.
    pub by: String,
    /// When, by the person's clock. It orders nothing: [`Self::keys`] says what it is later than.
    pub at: Timestamp,
    /// Why, or how, in the person's words.
    pub reason: String,
    /// [`HostRebootAnnotation::id`] of each key that stood on the host at the confirmation.
    #[serde(rename = "for")]
    pub keys: Vec<String>,
}

/// The annotation says less than a release needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadConfirmation {
    #[error("is not a JSON object with by, at, reason and for: {0}")]
    Unreadable(String),
    /// A field is present and empty.
    #[error("has nothing in {0}")]
    Empty(&'static str),
}

impl OffConfirmation {
    /// A confirmation made now: it covers the keys that stand on the host.
    pub fn for_host(host: &HostSnapshot, by: &str, at: Timestamp, reason: &str) -> Self {
        Self {
            by: by.to_owned(),
            at,
            reason: reason.to_owned(),
            keys: reboot_keys(host).map(|request| request.id()).collect(),
        }
    }

    /// Reads the confirmation on the host; `None` if there is none.
    ///
    /// # Errors
    /// The annotation says less than a release needs.
    pub fn read_from_host(host: &HostSnapshot) -> Option<Result<Self, BadConfirmation>> {
        host.annotations
            .get(CONFIRMED_OFF_ANNOTATION)
            .map(|text| parse_confirmation(text))
    }

    pub fn annotation_value(&self) -> String {
        serde_json::to_string(self).expect("texts and a time only")
    }
}

fn parse_confirmation(text: &str) -> Result<OffConfirmation, BadConfirmation> {
    let read: OffConfirmation = serde_json::from_str(text)
        .map_err(|error| BadConfirmation::Unreadable(error.to_string()))?;
    let is_said = |text: &str| !text.trim().is_empty();
    if !is_said(&read.by) {
        return Err(BadConfirmation::Empty("by"));
    }
    if !is_said(&read.reason) {
        return Err(BadConfirmation::Empty("reason"));
    }
    if read.keys.is_empty() {
        return Err(BadConfirmation::Empty("for"));
    }
    Ok(read)
}

fn reboot_keys(host: &HostSnapshot) -> impl Iterator<Item = HostRebootAnnotation> {
    let all = reboot_annotations(host).into_iter();
    all.filter(|request| request.key.is_some())
}
