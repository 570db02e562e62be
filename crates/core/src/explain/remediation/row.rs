//! The status rows of remediations.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::RemediationReportInput;
use super::assessment::{AssessedRemediation, assess_all};
use super::lines::format_millis;
use super::timeline::{StepRow, remediation_timeline, step_rows, total_millis};
use crate::Now;
use crate::power::HostSnapshot;
use crate::remediation::{
    RemediationReason, RemediationRecord, RemediationSnapshot, RemediationStep, RemediationSubject,
    record_on_host,
};

/// How long an ended remediation is shown.
const ENDED_SHOWN_FOR: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RemediationRow {
    /// `machine/NS/NAME`, `node/NAME`, `powerremediation/NS/NAME` or `host/NS/NAME`.
    pub subject: String,
    /// The subject's namespace; for a Node, that of its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `NAMESPACE/NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The newest completed step; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<&'static str>,
    /// Time of that step; before the first step, since when the reason holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The number of the attempt, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Whether something is requested, under way or left over.
    pub under_way: bool,
    /// Whether a person has to act before it goes on.
    pub needs_somebody: bool,
    /// One CamelCase word.
    pub reason: String,
    pub message: String,
    /// The oldest step first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRow>,
}

/// The remediations under way, by subject; then those that ended within the last hour, and failed
/// requests.
pub fn remediation_rows(view: &RemediationReportInput, now: Now) -> Vec<RemediationRow> {
    let judged = assess_all(view, now);
    let shown = judged.iter().filter(|judged| is_shown(judged, now));
    let mut all: Vec<RemediationRow> = shown.map(remediation_row).collect();
    let told: BTreeSet<String> = all.iter().map(|row| row.subject.clone()).collect();
    let ended = ended_rows(&view.snapshot, now);
    all.extend(ended.filter(|row| !told.contains(&row.subject)));
    all.sort_by(|one, other| sort_key(one).cmp(&sort_key(other)));
    all
}

fn sort_key(row: &RemediationRow) -> (bool, &str) {
    (!row.under_way, &row.subject)
}

fn is_shown(judged: &AssessedRemediation, now: Now) -> bool {
    let request = judged.remediation.request.as_ref();
    let Some(ended) = request.and_then(|request| request.status.ended_at) else {
        return judged.is_under_way();
    };
    is_recent(ended, now) || has_failed(judged)
}

fn is_recent(ended: Timestamp, now: Now) -> bool {
    now.elapsed_since(ended) < ENDED_SHOWN_FOR
}

fn has_failed(judged: &AssessedRemediation) -> bool {
    let request = judged.remediation.request.as_ref();
    let steps = request.map(|request| &request.status.timeline);
    steps.is_some_and(|steps| {
        steps
            .iter()
            .any(|stamp| stamp.step == RemediationStep::Failed)
    })
}

fn remediation_row(judged: &AssessedRemediation) -> RemediationRow {
    let case = &judged.remediation;
    let host = case.host.as_ref().ok();
    let steps = remediation_timeline(case);
    let (reason, message) = judged.reason_and_message();
    let said = judged
        .controller_condition()
        .and_then(|said| said.last_transition);
    let attempt = case.request.as_ref().and_then(|it| it.status.attempt);
    let attempt = attempt.map(|attempt| attempt.number);
    let has_ended = case
        .request
        .as_ref()
        .is_some_and(|it| it.status.ended_at.is_some());
    let newest = steps.last();
    RemediationRow {
        subject: case.subject.to_string(),
        namespace: subject_namespace(&case.subject, host.map(AsRef::as_ref)),
        node: case.node_name.as_ref().map(ToString::to_string),
        host: host.map(|host| host.name.to_string()),
        step: newest.map(|step| step.step),
        since: newest.map(|step| step.at).or(said),
        attempt: attempt.or_else(|| case.record.as_ref().map(|record| record.attempt)),
        under_way: judged.is_under_way() && (case.is_keyed() || !has_ended),
        needs_somebody: RemediationReason::parse(reason)
            .is_some_and(RemediationReason::needs_person),
        reason: reason.to_owned(),
        message: message.to_owned(),
        steps,
    }
}

fn subject_namespace(subject: &RemediationSubject, host: Option<&HostSnapshot>) -> Option<String> {
    match subject {
        RemediationSubject::Machine(name) => Some(name.object.namespace.clone()),
        RemediationSubject::Request(name) => Some(name.namespace.clone()),
        RemediationSubject::Host(name) => Some(name.namespace.clone()),
        RemediationSubject::WorkloadNode(cluster, _) => Some(cluster.namespace.clone()),
        RemediationSubject::Node(_) => host.map(|host| host.name.namespace.clone()),
    }
}

/// Ended remediations, which only the hosts still record.
fn ended_rows(world: &RemediationSnapshot, now: Now) -> impl Iterator<Item = RemediationRow> + '_ {
    world.hosts.values().filter_map(move |host| {
        let record = record_on_host(host)?;
        let ended = record.ended_at().filter(|at| is_recent(*at, now))?;
        Some(row_from_host_record(host, &record, ended))
    })
}

fn row_from_host_record(
    host: &HostSnapshot,
    record: &RemediationRecord,
    ended: Timestamp,
) -> RemediationRow {
    let steps = step_rows(&record.steps);
    let last = record.steps.iter().rev().find(|stamp| stamp.step.is_end());
    let step = last.map(|stamp| stamp.step);
    let reason = match step {
        Some(RemediationStep::Withdrawn) => RemediationReason::Withdrawn,
        Some(RemediationStep::Failed) => RemediationReason::AttemptsUsedUp,
        Some(
            RemediationStep::NodeReady
            | RemediationStep::Requested
            | RemediationStep::KeyAdded
            | RemediationStep::OffProved
            | RemediationStep::Released
            | RemediationStep::KeyRemoved
            | RemediationStep::PoweredOn,
        )
        | None => RemediationReason::Remediated,
    };
    let took = total_millis(&steps).map(|ms| format!(" after {}", format_millis(ms)));
    RemediationRow {
        namespace: Some(namespace_of_subject(&record.subject, host)),
        subject: record.subject.clone(),
        node: record.node.clone(),
        host: Some(host.name.to_string()),
        step: step.map(RemediationStep::as_str),
        since: Some(ended),
        attempt: Some(record.attempt),
        under_way: false,
        needs_somebody: false,
        reason: reason.to_string(),
        message: format!("ended{}", took.unwrap_or_default()),
        steps,
    }
}

/// The namespace in `KIND/NAMESPACE/NAME`, else the host's.
fn namespace_of_subject(subject: &str, host: &HostSnapshot) -> String {
    let parts: Vec<&str> = subject.split('/').collect();
    match parts[..] {
        [_, namespace, _] => namespace.to_owned(),
        _ => host.name.namespace.clone(),
    }
}
