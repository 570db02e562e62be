//! Takes the key off the host. Whatever ends, this comes first: nobody is left off (S6).

use dogwatch_api::node_reboot::{PowerCycleStatus, RebootAttemptStatus};

use super::decide::{NextStep, NodeRebootStep};
use super::host_key::{HostKeyPatch, is_host_of, is_late_key_blocked, key_name};
use super::power_cycle::serving_record;
use super::reason::NodeRebootReason;
use super::snapshot::{HostLookup, MAX_READ_AGE, NodeRebootSnapshot};
use super::types::ObservedNodeReboot;
use crate::Now;
use crate::power::{HostName, HostSnapshot};
use crate::time::truncate_to_micros;

/// The open attempt has switched a host, and its record does not ask for that any more.
pub(super) fn release_unwanted_host(seen: &NodeRebootSnapshot, now: Now) -> Option<NodeRebootStep> {
    let attempt = seen.own.open_attempt()?;
    let power = attempt.power.as_ref()?;
    if power.released_at.is_some() || serving_record(seen).is_some() {
        return None;
    }
    let text = format!("takes its key off host {}", power.host);
    Some(release_host(seen, attempt, power, &text, now))
}

/// A fresh read must show that the key is gone.
pub(super) fn release_host(
    seen: &NodeRebootSnapshot,
    attempt: &RebootAttemptStatus,
    power: &PowerCycleStatus,
    text: &str,
    now: Now,
) -> NodeRebootStep {
    let own = &*seen.own;
    let reason = NodeRebootReason::ReleasingHost;
    let step = |next| NodeRebootStep::new(own, next, reason, text).with_attempt(attempt.clone());
    let Some(name) = parse_host(power) else {
        return released_step(seen, attempt, power, text, now);
    };
    let lookup = HostLookup::ByName(name);
    let Some(read) = seen.host.read_within(&lookup, MAX_READ_AGE, now) else {
        return step(NextStep::ReadHost(lookup));
    };
    match &read.found {
        Ok(Ok(host)) if is_keyed(host, power, &own.uid) => {
            let patch = HostKeyPatch::remove_key(host, &own.uid);
            step(NextStep::PatchHost(patch))
        }
        Ok(Ok(host)) if may_key_still_arrive(host, power, own) => {
            let patch = HostKeyPatch::block_late_key(host, own);
            step(NextStep::PatchHost(patch))
        }
        Ok(Ok(_) | Err(_)) => released_step(seen, attempt, power, text, now),
        Err(why) => {
            let text = format!("host {} cannot be read: {why}", power.host);
            let reason = NodeRebootReason::HostUnreadable;
            NodeRebootStep::new(own, NextStep::Wait, reason, text)
                .with_attempt(attempt.clone())
                .with_wake(read.taken + MAX_READ_AGE, "another read of the host")
        }
    }
}

fn is_keyed(host: &HostSnapshot, power: &PowerCycleStatus, uid: &str) -> bool {
    is_host_of(host, power) && host.annotations.contains_key(&key_name(uid))
}

/// A patch with the key may have been sent without an answer. After the node is back in service it would
/// switch the host off, so the host is written once more: the patch was sent for an older version.
fn may_key_still_arrive(
    host: &HostSnapshot,
    power: &PowerCycleStatus,
    own: &ObservedNodeReboot,
) -> bool {
    power.off_at.is_none() && is_host_of(host, power) && !is_late_key_blocked(host, own)
}

fn released_step(
    seen: &NodeRebootSnapshot,
    attempt: &RebootAttemptStatus,
    power: &PowerCycleStatus,
    text: &str,
    now: Now,
) -> NodeRebootStep {
    let mut attempt = attempt.clone();
    attempt.power = Some(PowerCycleStatus {
        released_at: Some(truncate_to_micros(now.wall)),
        ..power.clone()
    });
    let reason = NodeRebootReason::ReleasingHost;
    NodeRebootStep::new(&seen.own, NextStep::Wait, reason, text).with_attempt(attempt)
}

fn parse_host(power: &PowerCycleStatus) -> Option<HostName> {
    let (namespace, name) = power.host.split_once('/')?;
    Some(HostName::new(namespace, name))
}
