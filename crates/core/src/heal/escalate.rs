//! A reboot that does not happen: said loudly, cordon and lock stay; and where the policy says so,
//! handed over to the power controller. Source: specification §2.4.
//!
//! One reboot is handed over once (S5): the intention stands on the Node first, on the version that
//! shows the old boot; the request and the mark "asked for this reboot" go onto the host in one
//! patch, so that a crash between the two is told from a request that was served already.

use std::time::Duration;

use super::case::{Action, Decision, Look};
use super::node::Patient;
use super::reason;
use super::seen::{Escalated, HostRef};
use crate::decision::{Severity, because};
use crate::lock::HolderId;
use crate::reboot::{self, Instead, NodeSeen, Parsed, Record};

/// How old what was read may be when a host is asked.
const FRESH: Duration = Duration::from_secs(10);
/// How long until what stands in the way is looked at again.
const LOOK_AGAIN: Duration = Duration::from_mins(5);

pub(super) fn rebooting(patient: &Patient<'_>, record: &Record) -> Decision {
    let dead = dead(patient, record);
    if !dead && !used_up(patient, record) {
        return waiting(patient, record);
    }
    let failed = dead.then(|| failed(patient, record));
    let policy = patient.rule.policy.filter(|policy| policy.reboot.escalate);
    if policy.is_none() {
        return failed.unwrap_or_else(|| waiting(patient, record));
    }
    let handed = hand_over(patient, record);
    match failed {
        None => handed,
        Some(mut failed) => {
            failed.actions.extend(handed.actions);
            failed.looks.extend(handed.looks);
            failed.report.events.extend(handed.report.events);
            failed.wake = crate::Wake::earlier(failed.wake, handed.wake);
            failed
        }
    }
}

/// The coordinator gave no sign, and every attempt that it may have had is over.
fn dead(patient: &Patient<'_>, record: &Record) -> bool {
    patient.watching().is_none() && passed(patient, dead_after(patient, record))
}

fn dead_after(patient: &Patient<'_>, record: &Record) -> Duration {
    let config = &patient.rule.config;
    let left = config.reboot_attempts.saturating_sub(record.attempts) + 1;
    config.reboot_timeout.saturating_mul(left)
}

/// Whether it lives or not: no attempt is left, and the last one has had its time.
fn used_up(patient: &Patient<'_>, record: &Record) -> bool {
    let (policies, flags) = (&patient.ctx.seen.policies, &patient.ctx.config.flags);
    let since = patient.memory.stage_since;
    let until = reboot::is_rebooting_until(patient.node, policies, flags, since);
    let over = until.is_none_or(|until| until <= patient.ctx.now.mono);
    record.attempts >= patient.rule.config.reboot_attempts && over
}

fn passed(patient: &Patient<'_>, allowed: Duration) -> bool {
    let since = patient.memory.stage_since;
    patient.ctx.due(since, allowed).is_none()
}

fn waiting(patient: &Patient<'_>, record: &Record) -> Decision {
    let after = dead_after(patient, record).max(patient.ctx.config.heal_after);
    let text = "the reboot command may have been started; watches for a new boot";
    let decision = because(reason::WATCHING, text);
    match patient.ctx.due(
        patient.memory.stage_since.max(patient.memory.quiet_since),
        after,
    ) {
        Some(at) => decision.wake(at, "a new boot"),
        None => decision,
    }
}

/// Cordon and lock stay: a delayed shutdown may still fire.
fn failed(patient: &Patient<'_>, record: &Record) -> Decision {
    let text = format!(
        "no new boot after attempt {}, and {}; cordon and lock stay, because a delayed shutdown may still come: \
         reboot the node by hand, or when it is sure that it will not go down, run `dogwatch abort {}`",
        record.attempts,
        patient.no_sign(),
        patient.node.name
    );
    let why = reboot::reason::REBOOT_FAILED;
    let told = patient.instead(&Instead::Tell, why, text.clone());
    told.unwrap_or_else(|| because(why, text))
        .say(Severity::Warning)
}

fn hand_over(patient: &Patient<'_>, record: &Record) -> Decision {
    if let Some(why) = obstacle(patient, record) {
        return blocked(patient, &why);
    }
    let newer_than = patient.ctx.now.mono.saturating_sub(FRESH);
    let looked = &patient.ctx.seen.looked;
    let name = &patient.node.name;
    let read = looked
        .nodes
        .get(name)
        .filter(|read| read.taken >= newer_than);
    let Some(read) = read else {
        let name = name.clone();
        return looking().look(Look::Node { name, newer_than });
    };
    let hosts = looked
        .hosts
        .get(name)
        .filter(|hosts| hosts.taken >= newer_than);
    let Some(hosts) = hosts else {
        let node = name.clone();
        return looking().look(Look::Hosts { node, newer_than });
    };
    let fresh = read.node.as_ref();
    let Some(fresh) = fresh.filter(|fresh| fresh.resource_version == patient.node.resource_version)
    else {
        // It changed while it was read: the watch will show it.
        let at = patient.ctx.now.mono + FRESH;
        return looking().wake(at, "the Node to be read again");
    };
    match &hosts.host {
        Err(why) => blocked(patient, why),
        Ok(host) => ask(patient, record, fresh, &read.escalated, host),
    }
}

fn looking() -> Decision {
    because(
        reason::ESCALATING,
        "looking at the node's host before it is asked to reboot",
    )
}

/// Why the host must not be reset although the reboot does not happen.
fn obstacle(patient: &Patient<'_>, record: &Record) -> Option<String> {
    if let Some((_, why)) = patient.no_leave() {
        return Some(why);
    }
    let boot = patient.node.boot_id.as_ref();
    if boot.is_some_and(|boot| *boot != record.boot_id) {
        return Some("its kubelet shows another boot than the one that was to be ended".into());
    }
    if !matches!(patient.ctx.seen.policies, crate::policy::Policies::Known(_)) {
        return Some("the RebootPolicies cannot be read".into());
    }
    let lease = record
        .lease
        .as_ref()
        .and_then(|name| patient.ctx.seen.leases.get(name));
    let holder = HolderId::node(&patient.node.name);
    let ours = lease.filter(|lease| lease.holder.as_ref() == Some(&holder));
    let Some(lease) = ours else {
        return Some("the lock is not held for it any more".into());
    };
    let uid = lease
        .record
        .as_ref()
        .and_then(|record| record.node_uid.as_ref());
    let other = uid.filter(|uid| **uid != patient.node.uid);
    other.map(|uid| format!("the lock was taken for another Node (UID {uid})"))
}

fn ask(
    patient: &Patient<'_>,
    record: &Record,
    node: &NodeSeen,
    noted: &Parsed<Escalated>,
    host: &HostRef,
) -> Decision {
    let note = Escalated {
        node_uid: node.uid.clone(),
        planned: record.planned,
        boot_id: record.boot_id.clone(),
        host: host.full_name(),
        at: patient.ctx.now.wall,
    };
    if let Parsed::Bad { why } = noted {
        return blocked(
            patient,
            &format!("annotation dogwatch.dev/escalated cannot be read ({why})"),
        );
    }
    let stands = noted.get().filter(|stands| stands.same_reboot(&note));
    let Some(stands) = stands else {
        let text = format!("hands the reboot over to BareMetalHost {}", note.host);
        let node = Box::new(node.clone());
        return because(reason::ESCALATING, text).act(Action::NoteEscalation { node, note });
    };
    asked(patient, stands, host)
}

fn asked(patient: &Patient<'_>, note: &Escalated, host: &HostRef) -> Decision {
    if note.host != host.full_name() {
        let why = format!(
            "it was handed over to BareMetalHost {}, and another one names it now",
            note.host
        );
        return blocked(patient, &why);
    }
    let done = host.mark.get().is_some_and(|mark| mark.same_reboot(note));
    if done {
        let text = format!(
            "was handed over to BareMetalHost {}; waits for a new boot",
            note.host
        );
        return because(reason::ESCALATING, text);
    }
    if host.asked {
        let why = format!(
            "somebody has asked BareMetalHost {} for a reboot already",
            note.host
        );
        return blocked(patient, &why);
    }
    let text = format!("asks BareMetalHost {} to reboot, hard", note.host);
    let (host, note) = (host.clone(), note.clone());
    because(reason::ESCALATING, text)
        .act(Action::Escalate { host, note })
        .say(Severity::Warning)
}

fn blocked(patient: &Patient<'_>, why: &str) -> Decision {
    let text = format!(
        "the reboot does not happen, and cannot be handed over to the power controller: {why}"
    );
    let at = patient.ctx.now.mono + LOOK_AGAIN;
    because(reason::ESCALATION_BLOCKED, text)
        .say(Severity::Warning)
        .wake(at, "another look at what is in the way")
}
