//! A reboot that does not happen: it is reported as a Warning, cordon and lock stay, and if the
//! policy says so, it is handed over to the power controller. Source: specification §2.4.
//!
//! One reboot is handed over once (S5). The intention is written on the Node first, on the version
//! that shows the old boot. One patch then writes both the request and the mark "asked for this
//! reboot" on the host, so that after a crash between the two writes a missing request is not taken
//! for one that was served.

use crate::reboot::RebootReason;
use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;

use super::healing_case::{HealerAction, HealerDecision, HealerObserve};
use super::node::NodeCase;
use super::snapshot::{EscalationRecord, HostRef};
use crate::decision::{EventSeverity, decision_with_cause};
use crate::lock::HolderId;
use crate::reboot::{self, ObservedNode, ParsedAnnotation, RebootRecord, TakeoverStep};

/// The oldest reads with which a host may be asked.
const MAX_READ_AGE: Duration = Duration::from_secs(10);
/// How long until a Node that changed around its read is read again.
const REREAD_INTERVAL: Duration = Duration::from_secs(1);
/// How long until an obstacle is checked again.
const OBSTACLE_RECHECK_INTERVAL: Duration = Duration::from_mins(5);

pub(super) fn decide_rebooting_phase(
    patient: &NodeCase<'_>,
    record: &RebootRecord,
) -> HealerDecision {
    let dead = is_coordinator_dead(patient, record);
    if !dead && !are_attempts_used_up(patient, record) {
        return wait_for_new_boot(patient, record);
    }
    let failed = dead.then(|| report_failed_reboot(patient, record));
    let policy = patient.rule.policy.filter(|policy| policy.reboot.escalate);
    // The controller switches the host of a power cycle off already.
    let policy = policy.filter(|_| record.trigger.method != RebootMethod::PowerCycle);
    if policy.is_none() {
        return failed.unwrap_or_else(|| wait_for_new_boot(patient, record));
    }
    let handed = hand_over_to_power(patient, record);
    match failed {
        None => handed,
        Some(mut failed) => {
            failed.actions.extend(handed.actions);
            failed.observe.extend(handed.observe);
            failed.report.events.extend(handed.report.events);
            failed.wake = crate::WakeTime::earlier_of(failed.wake, handed.wake);
            failed
        }
    }
}

/// The coordinator gave no sign, and the time of every attempt that it may have had is over.
fn is_coordinator_dead(patient: &NodeCase<'_>, record: &RebootRecord) -> bool {
    patient.watch_for_sign().is_none()
        && has_stage_lasted(patient, remaining_attempts_duration(patient, record))
}

fn remaining_attempts_duration(patient: &NodeCase<'_>, record: &RebootRecord) -> Duration {
    let config = &patient.rule.config;
    if record.trigger.method == RebootMethod::PowerCycle {
        return config.reboot_timeout;
    }
    let left = config.reboot_attempts.saturating_sub(record.attempts) + 1;
    config.reboot_timeout.saturating_mul(left)
}

/// Whether or not the coordinator lives: no attempt is left, and the time of the last one is over.
fn are_attempts_used_up(patient: &NodeCase<'_>, record: &RebootRecord) -> bool {
    let (policies, flags) = (&patient.ctx.seen.policies, &patient.ctx.config.flags);
    let since = patient.memory.stage_since;
    let until = reboot::rebooting_deadline_since(patient.node, policies, flags, since);
    let over = until.is_none_or(|until| until <= patient.ctx.now.mono);
    record.attempts >= patient.rule.config.reboot_attempts && over
}

fn has_stage_lasted(patient: &NodeCase<'_>, allowed: Duration) -> bool {
    let since = patient.memory.stage_since;
    patient.ctx.deadline_after(since, allowed).is_none()
}

fn wait_for_new_boot(patient: &NodeCase<'_>, record: &RebootRecord) -> HealerDecision {
    let after = remaining_attempts_duration(patient, record).max(patient.ctx.config.heal_after);
    let text = match record.trigger.method {
        RebootMethod::Reboot | RebootMethod::Hold => {
            "the reboot command may have been started; waits for a new boot"
        }
        RebootMethod::PowerCycle => "the host is switched off and on; waits for a new boot",
    };
    let decision = decision_with_cause(RebootReason::WatchingCoordinator, text);
    match patient.ctx.deadline_after(
        patient.memory.stage_since.max(patient.memory.silent_since),
        after,
    ) {
        Some(at) => decision.wake_at(at, "a new boot"),
        None => decision,
    }
}

/// Cordon and lock stay, because a delayed shutdown may still come.
fn report_failed_reboot(patient: &NodeCase<'_>, record: &RebootRecord) -> HealerDecision {
    let text = format!(
        "no new boot after attempt {}, and {}; cordon and lock stay, because a delayed shutdown may still happen: \
         reboot the node by hand, or if you are sure that it will not shut down, run `dogwatch abort {}`",
        record.attempts,
        patient.describe_silence(),
        patient.node.name
    );
    let why = RebootReason::RebootFailed;
    let told = patient.take_over(&TakeoverStep::Report, why, text.clone());
    told.unwrap_or_else(|| decision_with_cause(why, text))
        .with_event(EventSeverity::Warning)
}

fn hand_over_to_power(patient: &NodeCase<'_>, record: &RebootRecord) -> HealerDecision {
    if let Some(why) = find_escalation_obstacle(patient, record) {
        return report_blocked_escalation(patient, &why);
    }
    let newer_than = patient.ctx.now.mono.saturating_sub(MAX_READ_AGE);
    let looked = &patient.ctx.seen.observations;
    let name = &patient.node.name;
    let hosts = looked
        .hosts
        .get(name)
        .filter(|hosts| hosts.taken >= newer_than);
    let Some(hosts) = hosts else {
        let node = name.clone();
        return observing_host().with_observe(HealerObserve::Hosts { node, newer_than });
    };
    let read = looked
        .nodes
        .get(name)
        .filter(|read| read.taken >= newer_than);
    let Some(read) = read else {
        let name = name.clone();
        return observing_host().with_observe(HealerObserve::Node { name, newer_than });
    };
    let fresh = read.node.as_ref();
    let Some(fresh) = fresh.filter(|fresh| fresh.resource_version == patient.node.resource_version)
    else {
        // The Node changed around its read. Either the watch or a new read shows the change.
        let again = read.taken + REREAD_INTERVAL;
        if patient.ctx.now.mono < again {
            return observing_host().wake_at(again, "the Node to be read again");
        }
        let (name, newer_than) = (name.clone(), again);
        return observing_host().with_observe(HealerObserve::Node { name, newer_than });
    };
    match &hosts.host {
        Err(why) => report_blocked_escalation(patient, why),
        Ok(host) => record_or_send_escalation(patient, record, fresh, &read.escalated, host),
    }
}

fn observing_host() -> HealerDecision {
    decision_with_cause(
        RebootReason::RebootEscalated,
        "reading the node's host before asking it to reboot",
    )
}

/// Why the host must not be reset although the reboot does not happen.
fn find_escalation_obstacle(patient: &NodeCase<'_>, record: &RebootRecord) -> Option<String> {
    if let Some((_, why)) = patient.find_undo_cause() {
        return Some(why);
    }
    let boot = patient.node.boot_id.as_ref();
    if boot.is_some_and(|boot| *boot != record.boot_id) {
        return Some(
            "its kubelet reports another boot than the one that the reboot was to end".into(),
        );
    }
    if !matches!(
        patient.ctx.seen.policies,
        crate::policy::ClusterPolicies::Known(_)
    ) {
        return Some("the RebootPolicies cannot be read".into());
    }
    let lease = record
        .lease
        .as_ref()
        .and_then(|name| patient.ctx.seen.leases.get(name));
    let holder = HolderId::for_node(&patient.node.name);
    let ours = lease.filter(|lease| lease.holder.as_ref() == Some(&holder));
    let Some(lease) = ours else {
        return Some("the lock is not held for it any more".into());
    };
    let uid = lease
        .record
        .as_ref()
        .and_then(|record| record.node_uid.as_ref());
    let other = uid.filter(|uid| **uid != patient.node.uid);
    other.map(|uid| format!("the lock was taken for another Node object (UID {uid})"))
}

fn record_or_send_escalation(
    patient: &NodeCase<'_>,
    record: &RebootRecord,
    node: &ObservedNode,
    noted: &ParsedAnnotation<EscalationRecord>,
    host: &HostRef,
) -> HealerDecision {
    let note = EscalationRecord {
        node_uid: node.uid.clone(),
        planned: record.planned,
        boot_id: record.boot_id.clone(),
        host: host.full_name(),
        at: patient.ctx.now.wall,
    };
    if let ParsedAnnotation::Bad { why } = noted {
        return report_blocked_escalation(
            patient,
            &format!("annotation dogwatch.dev/escalated cannot be read ({why})"),
        );
    }
    let stands = noted.get().filter(|stands| stands.is_same_reboot(&note));
    let Some(stands) = stands else {
        let text = format!("hands the reboot over to BareMetalHost {}", note.host);
        let node = Box::new(node.clone());
        return decision_with_cause(RebootReason::RebootEscalated, text)
            .with_action(HealerAction::NoteEscalation { node, note });
    };
    request_host_reboot(patient, stands, host)
}

fn request_host_reboot(
    patient: &NodeCase<'_>,
    note: &EscalationRecord,
    host: &HostRef,
) -> HealerDecision {
    if note.host != host.full_name() {
        let why = format!(
            "it was handed over to BareMetalHost {}, but now another host names this Node",
            note.host
        );
        return report_blocked_escalation(patient, &why);
    }
    let done = host
        .mark
        .get()
        .is_some_and(|mark| mark.is_same_reboot(note));
    if done {
        let text = format!(
            "the reboot was handed over to BareMetalHost {}; waits for a new boot",
            note.host
        );
        return decision_with_cause(RebootReason::RebootEscalated, text);
    }
    if host.asked {
        let why = format!(
            "somebody has already requested a reboot of BareMetalHost {}",
            note.host
        );
        return report_blocked_escalation(patient, &why);
    }
    let text = format!("requests a hard reboot of BareMetalHost {}", note.host);
    let (host, note) = (host.clone(), note.clone());
    decision_with_cause(RebootReason::RebootEscalated, text)
        .with_action(HealerAction::Escalate { host, note })
        .with_event(EventSeverity::Warning)
}

fn report_blocked_escalation(patient: &NodeCase<'_>, why: &str) -> HealerDecision {
    let text = format!(
        "the node does not reboot, and the healer cannot hand the reboot over to the power controller: {why}"
    );
    let at = patient.ctx.now.mono + OBSTACLE_RECHECK_INTERVAL;
    decision_with_cause(RebootReason::EscalationBlocked, text)
        .with_event(EventSeverity::Warning)
        .wake_at(at, "the next check of the obstacle")
}
