//! Switches the host of a drained node off and on. Source: specification §10.1.
//!
//! Each step's intention is in the status before the step: which host; then the key; the proof that
//! the host is off; then the key comes off, and the power controller switches the host on. Only a
//! new boot id ends this phase.

use std::time::Duration;

use dogwatch_api::node_reboot::{PowerCycleStatus, RebootAttemptStatus, RebootMethod};
use jiff::SignedDuration;

use super::attempt::{RebootCase, begun_record};
use super::decide::{NextStep, NodeRebootStep};
use super::host_check::{HostCheckStage, describe_power, find_usable_host};
use super::host_key::{HostKeyPatch, find_own_key, is_host_of};
use super::host_release::release_host;
use super::reason::NodeRebootReason;
use super::request::lists_reboot;
use super::snapshot::{HostLookup, NodeHostPower, NodeRebootSnapshot, RebootNodeRead};
use super::types::ObservedNodeReboot;
use crate::Now;
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase, RebootRecord};
use crate::time::{SCHEDULE_CLOCK_CHECK_INTERVAL, truncate_to_micros};

/// The key is put on the host within this time of the reads that it rests on.
const KEY_READ_AGE: Duration = Duration::from_secs(5);
/// A host that is not proved off within this time is not kept off any longer.
pub(super) const OFF_LIMIT: SignedDuration = SignedDuration::from_mins(30);
/// So long before that limit no key is put on any more. Another leader's clock may be this far
/// ahead: it may have taken the key off because of the limit, and no write tells that.
const OFF_LIMIT_CLOCK_MARGIN: SignedDuration = SignedDuration::from_mins(1);

/// The record that asks this NodeReboot to switch the host now: drained, not begun to return, not
/// to be stopped. One reboot may serve several NodeReboots; one of them switches the host.
pub(super) fn serving_record(seen: &NodeRebootSnapshot) -> Option<&RebootRecord> {
    let node = seen.node.as_deref()?;
    let uid = seen.own.status.node_uid.as_ref();
    let record = drained_record(node, &seen.own).filter(|_| uid == Some(&node.uid))?;
    (driver_uid(seen, record) == Some(&seen.own.uid)).then_some(record)
}

/// The record of a power cycle for this NodeReboot, in the boot that it is to end.
fn drained_record<'a>(
    node: &'a ObservedNode,
    own: &ObservedNodeReboot,
) -> Option<&'a RebootRecord> {
    let record = begun_record(node)?;
    let attempt = own.open_attempt()?;
    let is_drained = record.phase == RebootPhase::Rebooting
        && record.trigger.method == RebootMethod::PowerCycle
        && lists_reboot(&record.trigger.node_reboots, own)
        && attempt.finished_at.is_none();
    let is_same_boot = node.boot_id.as_ref() == Some(&record.boot_id);
    let is_to_stop = node.abort != ParsedAnnotation::Absent;
    (is_drained && is_same_boot && !is_to_stop).then_some(record)
}

/// The first in the record's order that asked for the power cycle and still exists; only it has
/// checked the host. If none of them does, the first that exists.
fn driver_uid<'a>(seen: &NodeRebootSnapshot, record: &'a RebootRecord) -> Option<&'a String> {
    let all = || {
        let others = seen.others.iter();
        others.chain([&seen.own]).filter(|one| !one.is_final())
    };
    let method_of = |uid: &str| {
        let one = all().find(|one| one.uid == uid)?;
        Some(one.open_attempt().map(|attempt| attempt.method))
    };
    let uids = || record.trigger.node_reboots.iter().map(|one| &one.uid);
    let is_power_cycle = |uid: &&String| method_of(uid) == Some(Some(RebootMethod::PowerCycle));
    uids()
        .find(is_power_cycle)
        .or_else(|| uids().find(|uid| method_of(uid).is_some()))
}

/// The record is in phase `rebooting`, and its method is a power cycle.
pub(super) fn follow_power_cycle(
    case: RebootCase<'_>,
    attempt: &RebootAttemptStatus,
) -> NodeRebootStep {
    if serving_record(case.seen).is_none() {
        let text = "the node's host is switched for another NodeReboot, or a new boot was seen";
        let reason = NodeRebootReason::RebootingNode;
        return NodeRebootStep::new(case.own, NextStep::Wait, reason, text)
            .with_attempt(attempt.clone());
    }
    let step = match &attempt.power {
        None => decide_host(case, attempt),
        Some(power) if power.released_at.is_some() => await_boot(case, power),
        Some(power) if power.off_at.is_some() => {
            let text = format!("host {} is proved off; takes its key off", power.host);
            return release_host(case.seen, attempt, power, &text, case.now);
        }
        Some(power) if is_limit_passed(power, case.now) => {
            let text = format!(
                "host {} was not proved off within 30m; takes its key off",
                power.host
            );
            return release_host(case.seen, attempt, power, &text, case.now);
        }
        Some(power) => return keep_off(case, attempt, power),
    };
    keep_attempt(step, attempt)
}

/// The step's own attempt counts if the step has changed its power cycle.
fn keep_attempt(step: NodeRebootStep, attempt: &RebootAttemptStatus) -> NodeRebootStep {
    match step.status.attempts.last() {
        Some(last) if last.power != attempt.power => step,
        Some(_) | None => step.with_attempt(attempt.clone()),
    }
}

fn is_limit_passed(power: &PowerCycleStatus, now: Now) -> bool {
    now.wall.duration_since(power.requested_at) >= OFF_LIMIT
}

fn is_limit_near(power: &PowerCycleStatus, now: Now) -> bool {
    now.wall.duration_since(power.requested_at) >= OFF_LIMIT - OFF_LIMIT_CLOCK_MARGIN
}

/// The node is drained: decides which host, and writes that down.
fn decide_host(case: RebootCase<'_>, attempt: &RebootAttemptStatus) -> NodeRebootStep {
    if let Some(step) = check_cordon(case, case.node) {
        return step;
    }
    let host = match find_usable_host(case, HostCheckStage::Drained(KEY_READ_AGE)) {
        Ok(host) => host,
        Err(obstacle) => return obstacle.into_wait(case),
    };
    let mut attempt = attempt.clone();
    attempt.power = Some(PowerCycleStatus {
        host: host.name.to_string(),
        host_uid: host.uid.clone(),
        requested_at: truncate_to_micros(case.now.wall),
        off_at: None,
        released_at: None,
    });
    let text = format!(
        "the node is drained; host {} is to be switched off",
        host.name
    );
    let reason = NodeRebootReason::SwitchingOff;
    NodeRebootStep::new(case.own, NextStep::Wait, reason, text).with_attempt(attempt)
}

/// Somebody put the node back into service: pods may run on it.
fn check_cordon(case: RebootCase<'_>, node: &ObservedNode) -> Option<NodeRebootStep> {
    if node.unschedulable {
        return None;
    }
    let text = format!(
        "node {} was uncordoned after its drain, so its host is not switched off",
        node.name
    );
    let reason = NodeRebootReason::CordonRemoved;
    Some(NodeRebootStep::new(case.own, NextStep::Wait, reason, text))
}

/// Keeps the host off until that is proved.
fn keep_off(
    case: RebootCase<'_>,
    attempt: &RebootAttemptStatus,
    power: &PowerCycleStatus,
) -> NodeRebootStep {
    let known = case.seen.host.power.as_ref();
    let known = known.filter(|known| is_host_of(&known.host, power));
    let step = match known {
        Some(known) if find_own_key(&known.host, case.own).is_some() => {
            if is_proved_off(case, known) {
                return off_step(case, attempt, power);
            }
            wait_for_proof(case, power, known)
        }
        Some(_) | None => put_key(case, attempt, power),
    };
    let limit = power.requested_at.checked_add(OFF_LIMIT);
    let limit = limit.unwrap_or(jiff::Timestamp::MAX);
    let at = case
        .now
        .recheck_time_of(limit, SCHEDULE_CLOCK_CHECK_INTERVAL);
    keep_attempt(step, attempt).with_wake(at, "the limit of keeping the host off")
}

fn is_proved_off(case: RebootCase<'_>, known: &NodeHostPower) -> bool {
    let key = find_own_key(&known.host, case.own);
    let proof = known.observed.proof.as_ref();
    let proof = proof.filter(|it| *it.host() == known.host.name && it.uid() == known.host.uid);
    proof
        .zip(key)
        .is_some_and(|(proof, key)| proof.covers_annotation(&key))
}

fn off_step(
    case: RebootCase<'_>,
    attempt: &RebootAttemptStatus,
    power: &PowerCycleStatus,
) -> NodeRebootStep {
    let mut attempt = attempt.clone();
    attempt.power = Some(PowerCycleStatus {
        off_at: Some(truncate_to_micros(case.now.wall)),
        ..power.clone()
    });
    let text = format!("host {} is proved off; takes its key off", power.host);
    let reason = NodeRebootReason::ReleasingHost;
    NodeRebootStep::new(case.own, NextStep::Wait, reason, text).with_attempt(attempt)
}

fn wait_for_proof(
    case: RebootCase<'_>,
    power: &PowerCycleStatus,
    known: &NodeHostPower,
) -> NodeRebootStep {
    let (reason, what) = if known.observed.bmc_answers {
        (NodeRebootReason::SwitchingOff, "is switched off")
    } else {
        let what = "is to be switched off, and its BMC does not answer";
        (NodeRebootReason::HostUnreachable, what)
    };
    let text = format!("host {} {what}: {}", power.host, describe_power(known));
    NodeRebootStep::new(case.own, NextStep::Wait, reason, text)
}

/// Puts the key on the host. It rests on three reads, in this order: the host, the Node, and the
/// NodeReboot, which is read right before the patch. What takes a key off is on the Node or the
/// NodeReboot before the key goes. So if another leader has taken this key off before the host was
/// read, one of the later reads shows why; if it does so later, the patch meets another version.
fn put_key(
    case: RebootCase<'_>,
    attempt: &RebootAttemptStatus,
    power: &PowerCycleStatus,
) -> NodeRebootStep {
    let host = match find_usable_host(case, HostCheckStage::Drained(KEY_READ_AGE)) {
        Ok(host) => host,
        Err(obstacle) => return obstacle.into_wait(case),
    };
    if !is_host_of(&host, power) {
        let text = format!("host {} was replaced; takes its key off", power.host);
        return release_host(case.seen, attempt, power, &text, case.now);
    }
    let reason = NodeRebootReason::SwitchingOff;
    let text = format!("puts its key on host {}, which is switched off", power.host);
    let step = |next| NodeRebootStep::new(case.own, next, reason, text.clone());
    if find_own_key(&host, case.own).is_some() {
        // The power controller's watch shows it soon.
        let again = case.now.mono + KEY_READ_AGE;
        return step(NextStep::Wait).with_wake(again, "the key to be seen");
    }
    if is_limit_near(power, case.now) {
        return step(NextStep::Wait);
    }
    match young_node_read(case) {
        None => step(NextStep::Read),
        Some(Err(why)) => {
            let text = format!("the Node cannot be read: {why}");
            let again = case.now.mono + KEY_READ_AGE;
            NodeRebootStep::new(
                case.own,
                NextStep::Wait,
                NodeRebootReason::NodeUnreadable,
                text,
            )
            .with_wake(again, "another read of the Node")
        }
        Some(Ok(node)) => {
            let same = node.filter(|node| drained_record(node, case.own).is_some());
            match same.map(|node| check_cordon(case, node)) {
                Some(None) => step(NextStep::PatchHost(HostKeyPatch::add_key(&host, case.own))),
                Some(Some(uncordoned)) => uncordoned,
                // The watch shows it soon.
                None => step(NextStep::Wait)
                    .with_wake(case.now.mono + KEY_READ_AGE, "the Node to be seen"),
            }
        }
    }
}

/// A read of the Node that is young enough for the key, and was sent after that of the host.
fn young_node_read(case: RebootCase<'_>) -> Option<Result<Option<&ObservedNode>, &str>> {
    let read: &RebootNodeRead = case.seen.read.as_ref()?;
    let by_links = &HostLookup::ByLinks;
    let host_read = case
        .seen
        .host
        .read_within(by_links, KEY_READ_AGE, case.now)?;
    let age = case.now.mono.saturating_sub(read.taken);
    let is_young = age < KEY_READ_AGE && read.taken >= host_read.taken;
    let is_same = |node: &&ObservedNode| node.uid == case.node.uid;
    is_young.then(|| match &read.node {
        Ok(node) => Ok(node.as_deref().filter(is_same)),
        Err(why) => Err(why.as_str()),
    })
}

/// Nothing of the request keeps the host off.
fn await_boot(case: RebootCase<'_>, power: &PowerCycleStatus) -> NodeRebootStep {
    let known = case.seen.host.power.as_ref();
    let (named, known) = match known {
        Some(known) if is_host_of(&known.host, power) => (true, Some(known)),
        Some(_) => (false, None),
        None => (true, None),
    };
    let because = known.map_or("its power is not known", describe_power);
    let is_answering = known.is_none_or(|known| known.observed.bmc_answers);
    let (host, off_at) = (&power.host, power.off_at);
    let (reason, text) = match off_at {
        _ if !named => (
            NodeRebootReason::HostReplaced,
            format!("host {host} was replaced before the node booted"),
        ),
        None => (
            NodeRebootReason::OffNotProved,
            format!(
                "host {host} was not proved off, and nothing keeps it off any more; the node \
                 stays cordoned until a new boot is seen: {because}"
            ),
        ),
        Some(at) if is_answering => (
            NodeRebootReason::SwitchingOn,
            format!(
                "host {host} was off at {at}, and is switched on; waits for a new boot: {because}"
            ),
        ),
        Some(at) => (
            NodeRebootReason::HostUnreachable,
            format!(
                "host {host} was off at {at}, and its BMC does not answer to switch it on: {because}"
            ),
        ),
    };
    NodeRebootStep::new(case.own, NextStep::Wait, reason, text)
}
