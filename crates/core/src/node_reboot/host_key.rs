//! The key of a NodeReboot on a host, and what becomes of one that nobody answers for.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::annotation::{CONFIRMED_OFF, NODE_REBOOT_PREFIX, REQUEST_WITHDRAWN};
use dogwatch_api::node_reboot::PowerCycleStatus;

use super::decide::{NodeRebootAction, NodeRebootDecision, NodeRebootObserve};
use super::reason::NodeRebootReason;
use super::snapshot::MAX_READ_AGE;
use super::types::ObservedNodeReboot;
use crate::Now;
use crate::decision::decision_with_cause;
use crate::power::{HostName, HostRebootAnnotation, HostSnapshot, reboot_annotations};

/// One patch of our key on a host, or one that makes a late key fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKeyPatch {
    pub host: HostName,
    /// A later host of the same name is not patched.
    pub uid: String,
    /// The host's version that the patch was decided on.
    pub resource_version: String,
    pub key: String,
    /// `None` removes the key. Before something is put on, the NodeReboot must be read, and must have
    /// the version that was decided on.
    pub value: Option<String>,
    /// A person's confirmation that the host is off is removed too: it was not for a later key.
    pub removes_confirmation: bool,
}

impl HostKeyPatch {
    fn of_host(host: &HostSnapshot, key: String, value: Option<String>) -> Self {
        let requests = reboot_annotations(host);
        let is_only_key = requests.iter().all(|request| request.name == key);
        Self {
            host: host.name.clone(),
            uid: host.uid.clone(),
            resource_version: host.resource_version.clone(),
            key,
            value,
            removes_confirmation: is_only_key && host.annotations.contains_key(CONFIRMED_OFF),
        }
    }

    pub(super) fn add_key(host: &HostSnapshot, own: &ObservedNodeReboot) -> Self {
        Self::of_host(host, key_name(&own.uid), Some(key_value(own)))
    }

    pub(super) fn remove_key(host: &HostSnapshot, uid: &str) -> Self {
        Self::of_host(host, key_name(uid), None)
    }

    /// A write of the host that changes nothing that anybody acts on: a key that was sent for this or an
    /// older version of the host fails from then on.
    pub(super) fn block_late_key(host: &HostSnapshot, own: &ObservedNodeReboot) -> Self {
        Self {
            host: host.name.clone(),
            uid: host.uid.clone(),
            resource_version: host.resource_version.clone(),
            key: REQUEST_WITHDRAWN.into(),
            value: Some(late_key_mark(own)),
            removes_confirmation: false,
        }
    }
}

/// Whether [`HostKeyPatch::block_late_key`] was written for this attempt.
pub(super) fn is_late_key_blocked(host: &HostSnapshot, own: &ObservedNodeReboot) -> bool {
    host.annotations.get(REQUEST_WITHDRAWN) == Some(&late_key_mark(own))
}

fn late_key_mark(own: &ObservedNodeReboot) -> String {
    let attempt = own.status.attempts.len();
    format!("nodereboot/{} {} attempt {attempt}", own.name, own.uid)
}

pub(super) fn key_name(uid: &str) -> String {
    format!("{NODE_REBOOT_PREFIX}{uid}")
}

/// The machine may be sick: it is not asked to shut down. The number of the attempt makes the key
/// of each attempt another request, which an older proof does not cover.
fn key_value(own: &ObservedNodeReboot) -> String {
    format!(
        r#"{{"mode":"hard","attempt":{}}}"#,
        own.status.attempts.len()
    )
}

/// A copy of the host with our key on it.
pub(super) fn with_own_key(host: &HostSnapshot, own: &ObservedNodeReboot) -> HostSnapshot {
    let mut keyed = host.clone();
    keyed.annotations.insert(key_name(&own.uid), key_value(own));
    keyed
}

/// Our key of this attempt on the host, in the form that the power controller uses.
pub(super) fn find_own_key(
    host: &HostSnapshot,
    own: &ObservedNodeReboot,
) -> Option<HostRebootAnnotation> {
    let name = key_name(&own.uid);
    let is_ours = host.annotations.get(&name) == Some(&key_value(own));
    let mut requests = reboot_annotations(host).into_iter();
    requests.find(|request| is_ours && request.name == name)
}

pub(super) fn is_host_of(host: &HostSnapshot, power: &PowerCycleStatus) -> bool {
    host.uid == power.host_uid && host.name.to_string() == power.host
}

/// A key that was found on a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostKeyName {
    pub host: HostName,
    /// UID of the NodeReboot that the key names.
    pub owner: String,
}

/// The UIDs of the NodeReboots whose keys are on the host.
pub fn host_keys(host: &HostSnapshot) -> impl Iterator<Item = &str> {
    let from = host.annotations.range(NODE_REBOOT_PREFIX.to_owned()..);
    from.map_while(|(name, _)| name.strip_prefix(NODE_REBOOT_PREFIX))
}

/// Whether this NodeReboot answers for its key on the host.
pub fn is_power_cycle_open(own: &ObservedNodeReboot, host: &HostSnapshot) -> bool {
    // What a status says that cannot be parsed is not known.
    let is_known = own.status_problem.is_none();
    let attempt = own.open_attempt().filter(|_| !own.is_final());
    let power = attempt.and_then(|attempt| attempt.power.as_ref());
    let is_open = |power: &PowerCycleStatus| power.released_at.is_none() && is_host_of(host, power);
    !is_known || power.is_some_and(is_open)
}

/// What the decision about a key whose NodeReboot does not answer for it is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct HostKeySnapshot {
    pub host: Arc<HostSnapshot>,
    /// UID of the NodeReboot that the key names.
    pub owner: String,
    pub read: Option<KeyOwnerRead>,
}

/// A fresh read of the NodeReboot that a key names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOwnerRead {
    /// Whether there is one that answers for the key; or why that could not be read.
    pub is_owned: Result<bool, String>,
    /// When the read was sent, in monotonic time.
    pub taken: Duration,
}

/// The watch shows no NodeReboot that answers for the key: somebody removed the finalizer, or the
/// status. Nobody may be left off.
pub fn decide_host_key(seen: &HostKeySnapshot, now: Now) -> NodeRebootDecision {
    let reason = NodeRebootReason::ReleasingHost;
    let (key, host) = (key_name(&seen.owner), &seen.host);
    let text = format!(
        "no NodeReboot answers for annotation {key} of host {}",
        host.name
    );
    let read = seen.read.as_ref();
    let fresh = read.filter(|read| now.mono.saturating_sub(read.taken) < MAX_READ_AGE);
    let Some(read) = fresh else {
        return decision_with_cause(reason, text).with_observe(NodeRebootObserve::KeyOwner);
    };
    match &read.is_owned {
        Ok(false) => {
            let patch = HostKeyPatch::remove_key(host, &seen.owner);
            let text = format!("{text}; it is removed, and the host is switched on");
            decision_with_cause(reason, text)
                .with_action(NodeRebootAction::PatchHost(Box::new(patch)))
        }
        Ok(true) => decision_with_cause(reason, format!("{text} in the watch yet"))
            .wake_at(read.taken + MAX_READ_AGE, "another read of the NodeReboots"),
        Err(why) => {
            let text = format!("the NodeReboots cannot be read: {why}");
            decision_with_cause(NodeRebootReason::NodeUnreadable, text)
                .wake_at(read.taken + MAX_READ_AGE, "another read of the NodeReboots")
        }
    }
}
