//! The objects that a command is told about: how they are written, and what is said when one does
//! not exist.

mod arg;
mod missing;

pub use arg::{ObjectArg, ResourceArg, parse_host, parse_node, parse_node_reboot, parse_policy};
pub use missing::{kind_missing, list_object_names, not_found, object_not_found};

/// The namespaced kinds that commands take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    Host,
    /// A Machine of OpenShift or Cluster API.
    Machine,
    Remediation,
    Schedule,
}

/// Whether this is the kind of a Node, with the slash behind it.
pub fn is_node_prefix(text: &str) -> bool {
    is_kind_prefix(text, NODE_WORDS)
}

/// Whether this is the kind of a NodeReboot, with the slash behind it.
pub fn is_node_reboot_prefix(text: &str) -> bool {
    is_kind_prefix(text, NODE_REBOOT_WORDS)
}

fn is_kind_prefix(text: &str, words: &[&str]) -> bool {
    let word = text.strip_suffix('/');
    word.is_some_and(|word| words.contains(&word))
}

/// The accepted spellings of a Node; messages use the first one, as for the kinds below.
const NODE_WORDS: &[&str] = &["node", "nodes", "no"];
const NODE_REBOOT_WORDS: &[&str] = &["nodereboot", "nodereboots", "nr"];
const POLICY_WORDS: &[&str] = &["rebootpolicy", "rebootpolicies", "policy"];

impl ObjectKind {
    pub const ALL: [ObjectKind; 4] = [
        ObjectKind::Host,
        ObjectKind::Machine,
        ObjectKind::Remediation,
        ObjectKind::Schedule,
    ];

    fn kind_words(self) -> &'static [&'static str] {
        match self {
            ObjectKind::Host => &["host", "hosts", "bmh", "baremetalhost", "baremetalhosts"],
            ObjectKind::Machine => &["machine", "machines"],
            ObjectKind::Remediation => &[
                "remediation",
                "remediations",
                "powerremediation",
                "powerremediations",
                "prem",
            ],
            ObjectKind::Schedule => &[
                "schedule",
                "schedules",
                "rebootschedule",
                "rebootschedules",
                "rbs",
            ],
        }
    }

    /// The kind as it is written in a command.
    pub fn as_str(self) -> &'static str {
        self.kind_words()[0]
    }

    fn object_kind(self) -> &'static str {
        match self {
            ObjectKind::Host => "BareMetalHost",
            ObjectKind::Machine => "Machine",
            ObjectKind::Remediation => "PowerRemediation",
            ObjectKind::Schedule => "RebootSchedule",
        }
    }

    /// The kind before the first slash, and the text behind that slash.
    pub fn split_prefix(text: &str) -> Option<(Self, &str)> {
        let (word, rest) = text.split_once('/')?;
        let mut kinds = Self::ALL.into_iter();
        let kind = kinds.find(|kind| kind.kind_words().contains(&word))?;
        Some((kind, rest))
    }
}
