//! What a case wants read, done or told, as calls.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::condition::Write;
use dogwatch_core::decision::Event;
use dogwatch_core::name::NodeName;
use dogwatch_core::power::Host;
use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::{
    Action, Beat, Case, Fresh, KeptBackup, Leftovers, Look, Machine, ObjectName, PowerRequest,
    RemedyLease,
};
use futures::future::BoxFuture;

/// How a write was answered.
#[derive(Debug)]
pub(super) enum Answer {
    /// The host is this now.
    Host(Box<Host>),
    /// The Node is this now.
    Node(Box<NodeSeen>),
    /// The Node of this UID is gone.
    NodeGone { name: NodeName, uid: String },
    /// The Machine is this now.
    Machine(Box<Machine>),
    /// The request is this now.
    Request(Box<PowerRequest>),
    /// The request of this UID is gone: what kept it was our finalizer.
    RequestGone { name: ObjectName, uid: String },
    /// The node's Lease is held now, or free.
    Lease {
        node: NodeName,
        lease: Option<RemedyLease>,
    },
    /// What is kept for a host is this now.
    Backup(Box<KeptBackup>),
    /// What was kept for the host of this UID, in the object of that one, is gone.
    BackupGone { host: String, uid: String },
    /// Nothing that is watched has changed.
    Nothing,
}

/// What a look has found.
#[derive(Debug)]
pub(super) enum Found {
    /// The Node's sign of life; asked at this moment.
    Beat(Duration, Beat),
    /// Everything, read afresh.
    Fresh(Box<Fresh>),
    /// What is left of the workloads.
    Leftovers(Leftovers),
}

/// Why a call did not do what it was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// What it relied on had changed: it did nothing.
    Changed(String),
    /// The API server refuses it, and will again: rights, rules, a field that it does not know.
    Refused(String),
    /// It did nothing, or it is not known whether it did. Asking again may help.
    Failed(String),
}

impl Trouble {
    /// In words.
    pub(super) fn why(&self) -> &str {
        match self {
            Trouble::Changed(why) | Trouble::Refused(why) | Trouble::Failed(why) => why,
        }
    }

    /// How a write ended, for metrics.
    pub(super) fn end(&self) -> &'static str {
        match self {
            Trouble::Changed(_) => "changed",
            Trouble::Refused(_) => "refused",
            Trouble::Failed(_) => "failed",
        }
    }
}

/// The calls of remediation.
pub(super) trait Hands: Send + Sync {
    /// Does one write; a request's status takes these conditions along.
    fn act<'a>(
        &'a self,
        action: &'a Action,
        conditions: &'a [Write],
        now: Now,
    ) -> BoxFuture<'a, Result<Answer, Trouble>>;

    /// Reads what is to be looked at.
    fn look<'a>(&'a self, case: &'a Case, look: &'a Look) -> BoxFuture<'a, Result<Found, Trouble>>;

    /// Writes conditions of what the case is about.
    fn tell<'a>(
        &'a self,
        case: &'a Case,
        conditions: &'a [Write],
        now: Now,
    ) -> BoxFuture<'a, Result<Answer, Trouble>>;

    /// Says an Event about it, and about its Node where that is another object.
    fn say<'a>(
        &'a self,
        case: &'a Case,
        event: &'a Event,
        now: Now,
    ) -> BoxFuture<'a, Result<(), Trouble>>;
}
