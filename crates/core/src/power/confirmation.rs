//! A person's word that a host is off: "I have pulled the plug". Source: specification §4.2.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::annotations::{Request, requests};
use super::host::Host;

/// On a host: a person has made sure that it is off (JSON: [`Confirmation`]).
pub const CONFIRMED_OFF: &str = "dogwatch.dev/confirmed-off";

/// Who made sure that a host is off, when, why, and for which keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Confirmation {
    /// Who, as they are known to the cluster.
    pub by: String,
    /// When, by their clock. It orders nothing: [`Self::keys`] says what it is later than.
    pub at: Timestamp,
    /// Why, or how, in their words.
    pub reason: String,
    /// [`Request::id`] of each key that stood on the host when they made sure.
    #[serde(rename = "for")]
    pub keys: Vec<String>,
}

/// What stands there says less than a release needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadConfirmation {
    /// It is no such JSON.
    #[error("is no JSON object with by, at, reason and for: {0}")]
    Unreadable(String),
    /// A field is there and says nothing.
    #[error("has nothing in {0}")]
    Empty(&'static str),
}

impl Confirmation {
    /// What a person's word on this host would be now: it covers the keys that stand there.
    pub fn of(host: &Host, by: &str, at: Timestamp, reason: &str) -> Self {
        Self {
            by: by.to_owned(),
            at,
            reason: reason.to_owned(),
            keys: keys(host).map(|request| request.id()).collect(),
        }
    }

    /// What stands on the host, if something does.
    ///
    /// # Errors
    /// It says less than a release needs.
    pub fn read(host: &Host) -> Option<Result<Self, BadConfirmation>> {
        host.annotations.get(CONFIRMED_OFF).map(|text| parse(text))
    }

    /// The annotation's value.
    pub fn value(&self) -> String {
        serde_json::to_string(self).expect("texts and a time only")
    }
}

fn parse(text: &str) -> Result<Confirmation, BadConfirmation> {
    let read: Confirmation = serde_json::from_str(text)
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

fn keys(host: &Host) -> impl Iterator<Item = Request> {
    let all = requests(host).into_iter();
    all.filter(|request| request.key.is_some())
}
