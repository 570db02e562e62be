//! What remediation decides from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::beat::Beat;
use super::kept::KeptBackup;
use super::machine::{InfraMachine, Machine, MachineName, ObjectName};
use super::request::PowerRequest;
use crate::name::NodeName;
use crate::power::{Host, HostName, OffProof, PowerNow};
use crate::reboot::NodeSeen;

/// Everything that is watched. Cheap to make: the objects are shared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct World {
    /// All Machines.
    pub machines: BTreeMap<MachineName, Arc<Machine>>,
    /// All `Metal3Machine`s.
    pub infra: BTreeMap<ObjectName, Arc<InfraMachine>>,
    /// All hosts.
    pub hosts: BTreeMap<HostName, Arc<Host>>,
    /// All Nodes.
    pub nodes: BTreeMap<NodeName, Arc<NodeSeen>>,
    /// All requests.
    pub requests: BTreeMap<ObjectName, Arc<PowerRequest>>,
    /// The `dogwatch-remedy-NODE` Leases that are held, by Node.
    pub leases: BTreeMap<NodeName, RemedyLease>,
    /// What is kept of deleted Nodes, by the UID of the host.
    pub backups: BTreeMap<String, Arc<KeptBackup>>,
    /// All lists have come. Before that nothing is concluded from what is not here.
    pub synced: bool,
}

/// A held `dogwatch-remedy-NODE`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemedyLease {
    /// Whose remediation it is; `None`: its record cannot be read.
    pub subject: Option<String>,
    /// What a write to it relies on.
    pub resource_version: String,
}

/// What is known of one case beside the watched objects: what was looked at, by this process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Known {
    /// Its host's power.
    pub power: Option<PowerSeen>,
    /// The Node's signs of life, as this process saw them.
    pub beats: Option<super::Beats>,
    /// The newest fresh reads.
    pub fresh: Option<Fresh>,
    /// What is left of the workloads.
    pub leftovers: Option<Leftovers>,
    /// When this process first decided about the case.
    pub first: Option<Duration>,
    /// The newest decision's reason, and since when it has been that: for what is said loudly after a while.
    /// Kept by [`Known::decided`].
    pub since: Option<(&'static str, Duration)>,
    /// Our write that the watch does not show yet: nothing is decided before it does, or this moment.
    pub settling: Option<Duration>,
}

impl Known {
    /// This was decided: to be called after each decision about the case.
    pub fn decided(&mut self, decision: &super::Decision, now: Duration) {
        let reason = decision.because.reason;
        self.first.get_or_insert(now);
        if self.since.is_none_or(|(same, _)| same != reason) {
            self.since = Some((reason, now));
        }
    }

    /// A write failed: what it rested on is read anew.
    pub fn failed(&mut self) {
        self.fresh = None;
    }

    /// A [`super::Look::Beat`] was asked and answered, or a [`Fresh`] brought one along.
    pub fn beat(&mut self, asked: Duration, answered: Duration, beat: Beat) {
        self.beats = Some(match self.beats.take() {
            Some(beats) => beats.saw(asked, answered, beat),
            None => super::Beats::new(asked, answered, beat),
        });
    }
}

/// The power side's word on one host.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerSeen {
    /// The table's bit.
    pub now: PowerNow,
    /// The proof, if there is one now.
    pub proof: Option<OffProof>,
    /// Its BMC answers.
    pub answers: bool,
    /// The system UUID that its BMC tells; `None`: none, or it was not asked yet.
    pub system_uuid: Option<String>,
    /// When the first of the newest unbroken readings of off was asked.
    pub off_since: Option<Duration>,
    /// What the power side says of the host: a reason, and a sentence.
    pub because: Option<(&'static str, String)>,
}

/// One set of fresh GETs, all sent after `taken`.
#[derive(Debug, Clone, PartialEq)]
pub struct Fresh {
    /// When the first question was sent.
    pub taken: Duration,
    /// The host; `None`: gone.
    pub host: Option<Arc<Host>>,
    /// The Node of the case's name; `None`: there is none.
    pub node: Option<Arc<NodeSeen>>,
    /// Its whole object's labels, annotations and taints, for the backup.
    pub backup: Option<super::record::Backup>,
    /// Its sign of life.
    pub beat: Beat,
    /// The need still stands: the annotation, or the request.
    pub needs: bool,
}

/// What is left on a Node whose workloads are being released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// When it was asked.
    pub taken: Duration,
    /// Pods that do not tolerate the taint, `namespace/name`; at most a few are named.
    pub pods: Vec<String>,
    /// `VolumeAttachment`s of this Node.
    pub attachments: Vec<String>,
}
