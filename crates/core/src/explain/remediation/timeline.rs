//! The steps of one remediation, and how long each took.

use jiff::Timestamp;
use serde::Serialize;

use super::lines::format_millis;
use crate::explain::human_format::format_time;
use crate::power::{HostSnapshot, reboot_annotations};
use crate::remediation::{Remediation, RemediationStep, StepStamp};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRow {
    /// The step's name in the record.
    pub step: &'static str,
    /// By the clock of the controller that led then.
    pub at: Timestamp,
    /// Milliseconds since the previous step; absent for the first step, and if two clocks
    /// contradict each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// The steps of a remediation: a request records those of all attempts; otherwise the host records
/// them.
pub(super) fn remediation_timeline(case: &Remediation) -> Vec<StepRow> {
    let request = case.request.as_ref();
    let own = request.map(|request| request.status.timeline.clone());
    let own = own.filter(|steps| !steps.is_empty());
    step_rows(&own.unwrap_or_else(|| steps_with_off_proof(case)))
}

pub(super) fn step_rows(steps: &[StepStamp]) -> Vec<StepRow> {
    let mut before = None;
    let row = |stamp: &StepStamp| {
        let row = StepRow {
            step: stamp.step.as_str(),
            at: stamp.at,
            after_ms: before.and_then(|before| millis_between(before, stamp.at)),
        };
        before = Some(stamp.at);
        row
    };
    steps.iter().map(row).collect()
}

/// Milliseconds from the first step to the last.
pub(super) fn total_millis(steps: &[StepRow]) -> Option<u64> {
    let (first, last) = (steps.first()?, steps.last()?);
    millis_between(first.at, last.at)
}

fn millis_between(from: Timestamp, to: Timestamp) -> Option<u64> {
    u64::try_from(to.duration_since(from).as_millis()).ok()
}

/// Adds the proof of off, which the host's record gets only with a later step.
fn steps_with_off_proof(case: &Remediation) -> Vec<StepStamp> {
    let record = case.record.as_ref();
    let mut steps = record.map_or_else(Vec::new, |record| record.steps.clone());
    let is_next = steps
        .last()
        .is_some_and(|stamp| stamp.step == RemediationStep::KeyAdded);
    let at = case
        .host
        .as_ref()
        .ok()
        .and_then(|host| off_confirmed_for(case, host));
    steps.extend(at.filter(|_| is_next).map(|at| StepStamp {
        step: RemediationStep::OffProved,
        at,
    }));
    steps
}

/// When off was proved for this remediation's key, according to the host's status.
pub(super) fn off_confirmed_for(case: &Remediation, host: &HostSnapshot) -> Option<Timestamp> {
    let key = case.key.annotation_name();
    let mut asked = reboot_annotations(host).into_iter();
    let id = asked.find(|request| request.name == key)?.id();
    let power = &host.status.power;
    let is_for_it = case.is_keyed() && power.confirmed_for.contains(&id);
    power.off_confirmed_at.filter(|_| is_for_it)
}

impl StepRow {
    pub(super) fn to_line(&self) -> String {
        let after = self
            .after_ms
            .map(|ms| format!(", after {}", format_millis(ms)));
        let (step, at) = (self.step, format_time(self.at));
        format!("{step} at {at}{}", after.unwrap_or_default())
    }
}
