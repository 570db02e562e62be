//! One line for each remediation.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::RemedyView;
use super::judged::{Judged, judged};
use super::lines::lasted;
use super::timeline::{StepRow, rows, timeline, took};
use crate::Now;
use crate::power::Host;
use crate::remedy::{Record, Step, Subject, World, reason, record_on};

/// How long one that has ended is shown.
const SHOWN: Duration = Duration::from_hours(1);

/// One remediation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RemedyRow {
    /// `machine/NS/NAME`, `node/NAME`, `powerremediation/NS/NAME` or `host/NS/NAME`.
    pub subject: String,
    /// Where the subject is; a Node's remediation is where its host is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The Node's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// `NAMESPACE/NAME` of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The newest step that was done; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<&'static str>,
    /// When that was done; before the first, since when the reason is what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Which attempt, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Something is asked, under way or left over.
    pub under_way: bool,
    /// Nothing goes on by itself.
    pub needs_somebody: bool,
    /// Why it stands where it stands: one word.
    pub reason: String,
    /// The same, as a sentence.
    pub message: String,
    /// Its steps, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRow>,
}

/// All that are under way, by subject; then those that ended within the last hour, and requests that failed.
pub fn remedy_rows(view: &RemedyView, now: Now) -> Vec<RemedyRow> {
    let judged = judged(view, now);
    let shown = judged.iter().filter(|judged| is_shown(judged, now));
    let mut all: Vec<RemedyRow> = shown.map(row).collect();
    let told: BTreeSet<String> = all.iter().map(|row| row.subject.clone()).collect();
    let ended = ended(&view.world, now);
    all.extend(ended.filter(|row| !told.contains(&row.subject)));
    all.sort_by(|one, other| place(one).cmp(&place(other)));
    all
}

fn place(row: &RemedyRow) -> (bool, &str) {
    (!row.under_way, &row.subject)
}

fn is_shown(judged: &Judged, now: Now) -> bool {
    let request = judged.case.request.as_ref();
    let Some(ended) = request.and_then(|request| request.status.ended_at) else {
        return judged.is_under_way();
    };
    is_recent(ended, now) || has_failed(judged)
}

fn is_recent(ended: Timestamp, now: Now) -> bool {
    now.since(ended) < SHOWN
}

fn has_failed(judged: &Judged) -> bool {
    let request = judged.case.request.as_ref();
    let steps = request.map(|request| &request.status.timeline);
    steps.is_some_and(|steps| steps.iter().any(|stamp| stamp.step == Step::Failed))
}

fn row(judged: &Judged) -> RemedyRow {
    let case = &judged.case;
    let host = case.host.as_ref().ok();
    let steps = timeline(case);
    let (reason, message) = judged.because();
    let said = judged.said().and_then(|said| said.last_transition);
    let attempt = case.request.as_ref().and_then(|it| it.status.attempt);
    let attempt = attempt.map(|attempt| attempt.number);
    let has_ended = case
        .request
        .as_ref()
        .is_some_and(|it| it.status.ended_at.is_some());
    let newest = steps.last();
    RemedyRow {
        subject: case.subject.to_string(),
        namespace: namespace(&case.subject, host.map(AsRef::as_ref)),
        node: case.node_name.as_ref().map(ToString::to_string),
        host: host.map(|host| host.name.to_string()),
        step: newest.map(|step| step.step),
        since: newest.map(|step| step.at).or(said),
        attempt: attempt.or_else(|| case.record.as_ref().map(|record| record.attempt)),
        under_way: judged.is_under_way() && (case.is_keyed() || !has_ended),
        needs_somebody: needs_somebody(reason),
        reason: reason.to_owned(),
        message: message.to_owned(),
        steps,
    }
}

fn namespace(subject: &Subject, host: Option<&Host>) -> Option<String> {
    match subject {
        Subject::Machine(name) => Some(name.object.namespace.clone()),
        Subject::Request(name) => Some(name.namespace.clone()),
        Subject::Host(name) => Some(name.namespace.clone()),
        Subject::Node(_) => host.map(|host| host.name.namespace.clone()),
    }
}

/// What stands wrong on objects: it follows from them alone, and stays until somebody changes them.
pub(super) const WRONG_ON_OBJECTS: [&str; 12] = [
    reason::NO_HOST,
    reason::HOST_NOT_FOUND,
    reason::BAD_HOST_LINK,
    reason::HOST_OF_ANOTHER,
    reason::HOST_SHARED,
    reason::NODE_OF_A_MACHINE,
    reason::NODE_SHARED,
    reason::NO_NODE,
    reason::HOST_NOT_PROVISIONED,
    reason::PAUSED,
    reason::BAD_REQUEST,
    reason::FOREIGN_KEY,
];

/// Reasons that stay until somebody does something.
pub(super) fn needs_somebody(word: &str) -> bool {
    let others = [
        reason::POWER_UNKNOWN,
        reason::ATTEMPTS_USED_UP,
        reason::WRONG_HOST,
        reason::IDENTITY_UNKNOWN,
        reason::NODE_IS_ALIVE,
        reason::NODE_REPLACED,
        reason::NOTHING_TO_DO,
        reason::REFUSED,
    ];
    WRONG_ON_OBJECTS.contains(&word) || others.contains(&word)
}

/// Those that only the hosts remember.
fn ended(world: &World, now: Now) -> impl Iterator<Item = RemedyRow> + '_ {
    world.hosts.values().filter_map(move |host| {
        let record = record_on(host)?;
        let ended = record.ended().filter(|at| is_recent(*at, now))?;
        Some(remembered(host, &record, ended))
    })
}

fn remembered(host: &Host, record: &Record, ended: Timestamp) -> RemedyRow {
    let steps = rows(&record.steps);
    let last = record.steps.iter().rev().find(|stamp| stamp.step.is_end());
    let step = last.map(|stamp| stamp.step);
    let reason = match step {
        Some(Step::Withdrawn) => reason::WITHDRAWN,
        Some(Step::Failed) => reason::ATTEMPTS_USED_UP,
        Some(
            Step::NodeReady
            | Step::Requested
            | Step::KeyAdded
            | Step::OffProved
            | Step::Released
            | Step::KeyRemoved
            | Step::PoweredOn,
        )
        | None => reason::REMEDIATED,
    };
    let took = took(&steps).map(|ms| format!(" after {}", lasted(ms)));
    RemedyRow {
        namespace: Some(place_of(&record.subject, host)),
        subject: record.subject.clone(),
        node: record.node.clone(),
        host: Some(host.name.to_string()),
        step: step.map(Step::as_str),
        since: Some(ended),
        attempt: Some(record.attempt),
        under_way: false,
        needs_somebody: false,
        reason: reason.to_owned(),
        message: format!("ended{}", took.unwrap_or_default()),
        steps,
    }
}

/// The namespace in `KIND/NAMESPACE/NAME`; else the host's.
fn place_of(subject: &str, host: &Host) -> String {
    let parts: Vec<&str> = subject.split('/').collect();
    match parts[..] {
        [_, namespace, _] => namespace.to_owned(),
        _ => host.name.namespace.clone(),
    }
}
