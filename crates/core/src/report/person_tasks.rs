//! What only a person can end.

use std::collections::BTreeSet;

use super::overdue::overdue_tasks;
use super::{FleetView, PersonTask};
use crate::Now;
use crate::explain::{FleetSnapshot, HostRow, NodeStatusRow, RemediationRow, ScheduleRow};
use crate::policy::{Policy, PolicyReason, rollout};
use crate::power::PowerReason;
use crate::reboot::{HeldBackBy, RebootPhase, RebootReason};
use crate::remediation::RemediationReason;

/// The most urgent first: a controller that is missing, machines that are out of service, then what
/// holds up a whole policy, then single nodes, hosts, schedules. One task for each subject.
pub(super) fn person_tasks(fleet: &FleetSnapshot, view: &FleetView, now: Now) -> Vec<PersonTask> {
    let (out, idle): (Vec<_>, Vec<_>) = view.nodes.iter().partition(|row| is_out(row));
    let remediations = view.remediations.iter().filter_map(remediation_task);
    let policies = fleet.policies.known_policies().iter();
    let overdue = overdue_tasks(fleet, view, now);
    let controller = controller_task(fleet, view, now);
    let tasks = controller
        .into_iter()
        .chain(remediations)
        .chain(out.into_iter().filter_map(node_task))
        .chain(overdue)
        .chain(policies.filter_map(policy_task))
        .chain(idle.into_iter().filter_map(node_task))
        .chain(view.hosts.iter().filter_map(host_task))
        .chain(view.schedules.iter().filter_map(schedule_task));
    let mut subjects = BTreeSet::new();
    tasks
        .filter(|task| subjects.insert(task.subject.clone()))
        .collect()
}

/// Nobody leads the controllers, and something depends on them.
fn controller_task(fleet: &FleetSnapshot, view: &FleetView, now: Now) -> Option<PersonTask> {
    let remediations = view.remediations.iter().filter(|row| row.under_way).count();
    let waiting = [
        (remediations, "remediation", "remediations"),
        (
            view.counts.requested,
            "requested reboot",
            "requested reboots",
        ),
    ];
    let waiting = waiting.into_iter().filter(|(count, ..)| *count > 0);
    let total: usize = waiting.clone().map(|(count, ..)| count).sum();
    let waiting = waiting.map(|(count, one, more)| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    });
    let waiting: Vec<String> = waiting.collect();
    if waiting.is_empty() || !fleet.controller.is_without_leader(now) {
        return None;
    }
    let waiting = waiting.join(" and ");
    let wait = if total == 1 { "waits" } else { "wait" };
    Some(PersonTask {
        subject: "controller".to_owned(),
        reason: "NobodyLeads".to_owned(),
        message: format!("no dogwatch controller leads, and {waiting} {wait} for one"),
        next_step: Some("start the controller, or read its log".to_owned()),
        command: Some(
            "kubectl get pods -A -l app.kubernetes.io/name=dogwatch-controller".to_owned(),
        ),
    })
}

fn is_out(row: &NodeStatusRow) -> bool {
    row.phase
        .is_some_and(|phase| phase != RebootPhase::Waiting.as_str())
}

fn node_task(row: &NodeStatusRow) -> Option<PersonTask> {
    let reason = RebootReason::parse(row.reason.as_deref()?)?;
    if !reason.needs_person() {
        return None;
    }
    let of_policy = match reason.held_back_by() {
        HeldBackBy::BadPolicy | HeldBackBy::RolloutStop => row.policy.as_deref(),
        HeldBackBy::Nothing
        | HeldBackBy::Calendar
        | HeldBackBy::MinInterval
        | HeldBackBy::RolloutWait
        | HeldBackBy::Policy
        | HeldBackBy::Cluster => None,
    };
    let subject = match of_policy {
        Some(policy) => format!("policy/{policy}"),
        None => format!("node/{}", row.name),
    };
    let step = reason.next_step();
    let step = step.map(|step| step.replace("NODE", &row.name));
    let step = step.map(|step| step.replace("POLICY", of_policy.unwrap_or("POLICY")));
    Some(PersonTask {
        subject,
        reason: reason.to_string(),
        message: row.message.clone().unwrap_or_default(),
        next_step: step,
        command: Some(format!("dogwatch explain node/{}", row.name)),
    })
}

fn policy_task(policy: &Policy) -> Option<PersonTask> {
    let name = &policy.name;
    let halt = policy.rollout.state.as_ref();
    let halt = halt.and_then(|state| state.halted.as_ref());
    let (reason, message, command) = if let Some(halt) = halt {
        let message = rollout::describe_halt(policy, halt);
        let command = format!("dogwatch resume {name}");
        (PolicyReason::TooManyFailures, message, command)
    } else if !policy.problems.is_empty() {
        let message = policy.problems.join("; ");
        let command = format!("kubectl edit rebootpolicy {name}");
        (PolicyReason::Invalid, message, command)
    } else {
        return None;
    };
    let step = reason.next_step();
    Some(PersonTask {
        subject: format!("policy/{name}"),
        reason: reason.to_string(),
        message,
        next_step: step.map(|step| step.replace("POLICY", name.as_str())),
        command: Some(command),
    })
}

fn remediation_task(row: &RemediationRow) -> Option<PersonTask> {
    let step = RemediationReason::parse(&row.reason).and_then(RemediationReason::next_step);
    row.needs_somebody.then(|| PersonTask {
        subject: row.subject.clone(),
        reason: row.reason.clone(),
        message: row.message.clone(),
        next_step: step.map(str::to_owned),
        command: Some(format!("dogwatch explain {}", row.subject)),
    })
}

fn host_task(row: &HostRow) -> Option<PersonTask> {
    let power = row.reason.clone().zip(row.message.clone());
    let control = row
        .not_ready
        .as_ref()
        .and_then(|text| text.split_once(": "));
    let control = control.map(|(reason, message)| (reason.to_owned(), message.to_owned()));
    let mut said = [power, control].into_iter().flatten();
    let (reason, message) =
        said.find(|(reason, _)| PowerReason::parse(reason).is_some_and(PowerReason::needs_person))?;
    let subject = format!("host/{}/{}", row.namespace, row.name);
    Some(PersonTask {
        next_step: crate::explain::next_step(&reason).map(str::to_owned),
        command: Some(format!("dogwatch explain {subject}")),
        subject,
        reason,
        message,
    })
}

fn schedule_task(row: &ScheduleRow) -> Option<PersonTask> {
    let subject = format!("schedule/{}/{}", row.namespace, row.name);
    let (reason, message) = schedule_trouble(row)?;
    Some(PersonTask {
        command: Some(format!("dogwatch explain {subject}")),
        subject,
        next_step: crate::schedule::ScheduleReason::parse(&reason)
            .and_then(crate::schedule::ScheduleReason::next_step)
            .map(str::to_owned),
        reason,
        message,
    })
}

/// What is wrong with a schedule that needs somebody.
fn schedule_trouble(row: &ScheduleRow) -> Option<(String, String)> {
    if !row.needs_somebody {
        return None;
    }
    if row.state.needs_person() || row.not_begun.is_some() {
        return Some((row.state.to_string(), row.message.clone()));
    }
    let failed = crate::schedule::ScheduleReason::NotAllRebooted;
    if row.reboots == Some(failed) {
        let message = row.reboots_message.clone().unwrap_or_default();
        return Some((failed.to_string(), message));
    }
    let message = row.outcome_message.clone().unwrap_or_default();
    Some((row.outcome.unwrap_or_default().to_owned(), message))
}
