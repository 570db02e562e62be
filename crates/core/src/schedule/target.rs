//! Whom an occurrence asks, and what it writes on them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::types::{TargetEnd, TargetResult};

/// What kind of thing is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A Node: a planned reboot, with lock and drain.
    Node,
    /// A `BareMetalHost` that carries no Node: by its power.
    Host,
}

impl Kind {
    /// As Kubernetes calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Node => "Node",
            Kind::Host => "BareMetalHost",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        [Kind::Node, Kind::Host]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// A Node, or a host in the schedule's namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// Annotation `dogwatch.dev/scheduled`: by the UID of each schedule the newest occurrence that has
/// asked. It outlives the request, so that a leader that died before it wrote down what it did asks
/// nobody twice (S5).
pub type Marks = BTreeMap<String, Mark>;

/// One occurrence that has asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// `NAMESPACE/NAME` of the schedule.
    pub by: String,
    /// The appointed time.
    pub at: Timestamp,
    /// There was a request already, and it was left as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noted: bool,
}

/// One patch: the mark, and the request with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Whom.
    pub target: Target,
    /// The object's UID: one of the same name that is made later is another one.
    pub uid: String,
    /// The version that it relies on: that nobody has asked, and that there is no mark.
    pub resource_version: String,
    /// All marks as they should stand.
    pub marks: Marks,
    /// The annotation that asks, and its value; `None` where one stands there.
    pub request: Option<(&'static str, String)>,
}

/// As it is written down.
pub(super) fn end(target: &Target, result: TargetResult, message: String) -> TargetEnd {
    TargetEnd {
        kind: target.kind,
        name: target.name.clone(),
        result,
        message,
    }
}
