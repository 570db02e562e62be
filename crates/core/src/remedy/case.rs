//! Who is concerned, as data.

use std::fmt;
use std::sync::Arc;

use super::action::{Action, Look};
use super::kept::{Kept, KeptBackup};
use super::key::KeyOwner;
use super::legacy::Legacy;
use super::machine::{Machine, MachineName, ObjectName};
use super::record::Record;
use super::request::PowerRequest;
use crate::name::NodeName;
use crate::power::{Host, HostName};
use crate::reboot::NodeSeen;

/// What to do about one case.
pub type Decision = crate::Decision<Action, Look>;

/// What a case is about. It is its name in logs, Events and `explain`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A Machine that is marked, or whose key stands on a host.
    Machine(MachineName),
    /// A Node that is marked, or whose key stands on a host.
    Node(NodeName),
    /// A request.
    Request(ObjectName),
    /// A host that carries a key of ours whose Machine, Node or request is gone, or a backup that waits
    /// for its Node.
    Host(HostName),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Machine(name) => write!(f, "machine/{name}"),
            Subject::Node(name) => write!(f, "node/{name}"),
            Subject::Request(name) => write!(f, "powerremediation/{name}"),
            Subject::Host(name) => write!(f, "host/{name}"),
        }
    }
}

/// One thing to be handled, with its links followed.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What it is about.
    pub subject: Subject,
    /// For whom the key is.
    pub key: KeyOwner,
    /// It needs remediation. For a request: it is not served, withdrawn or given up yet.
    pub needs: bool,
    /// Its host, or why there is none: a reason of [`super::reason`], and a sentence.
    pub host: Result<Arc<Host>, (&'static str, String)>,
    /// The name of its Node, if it has one.
    pub node_name: Option<NodeName>,
    /// Its Node, if it is there.
    pub node: Option<Arc<NodeSeen>>,
    /// Why nothing is begun or released for it although its host is known: a reason, and a sentence. What
    /// was begun is taken back.
    pub trouble: Option<(&'static str, String)>,
    /// The Lease `dogwatch-remedy-NODE` of its Node is held.
    pub leased: bool,
    /// Its remediation, as far as the host remembers it.
    pub record: Option<Record>,
    /// What is kept of its host's Node.
    pub stored: Option<Arc<KeptBackup>>,
    /// The same with what becomes of it, where this case is to see to that. Of several cases of one host one
    /// is.
    pub kept: Option<Kept>,
    /// What an older version of Dogwatch kept on the host itself, where this case is to see to that.
    pub legacy: Option<Legacy>,
    /// It is a control-plane machine.
    pub control_plane: bool,
    /// The Machine, where the case is one's, or its request's.
    pub machine: Option<Arc<Machine>>,
    /// The request.
    pub request: Option<Arc<PowerRequest>>,
}
