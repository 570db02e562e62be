//! The steps of one remediation, with what each took.

use jiff::Timestamp;
use serde::Serialize;

use super::lines::lasted;
use crate::explain::words::moment;
use crate::power::{Host, requests};
use crate::remedy::{Case, Stamp, Step};

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRow {
    /// Which, as it stands in the record.
    pub step: &'static str,
    /// When, by the clock of whoever led then.
    pub at: Timestamp,
    /// Milliseconds since the step before it; absent for the first, and where two clocks contradict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// The steps of a case: a request keeps its own, of all attempts; else the host does.
pub(super) fn timeline(case: &Case) -> Vec<StepRow> {
    let request = case.request.as_ref();
    let own = request.map(|request| request.status.timeline.clone());
    let own = own.filter(|steps| !steps.is_empty());
    rows(&own.unwrap_or_else(|| proved(case)))
}

/// These steps, in their order.
pub(super) fn rows(steps: &[Stamp]) -> Vec<StepRow> {
    let mut before = None;
    let row = |stamp: &Stamp| {
        let row = StepRow {
            step: stamp.step.as_str(),
            at: stamp.at,
            after_ms: before.and_then(|before| millis(before, stamp.at)),
        };
        before = Some(stamp.at);
        row
    };
    steps.iter().map(row).collect()
}

/// How long from the first step to the last.
pub(super) fn took(steps: &[StepRow]) -> Option<u64> {
    let (first, last) = (steps.first()?, steps.last()?);
    millis(first.at, last.at)
}

fn millis(from: Timestamp, to: Timestamp) -> Option<u64> {
    u64::try_from(to.duration_since(from).as_millis()).ok()
}

/// Off is proved long before the host's record says so: nothing is written for it alone.
fn proved(case: &Case) -> Vec<Stamp> {
    let record = case.record.as_ref();
    let mut steps = record.map_or_else(Vec::new, |record| record.steps.clone());
    let is_next = steps
        .last()
        .is_some_and(|stamp| stamp.step == Step::KeyAdded);
    let at = case.host.as_ref().ok().and_then(|host| off_for(case, host));
    steps.extend(at.filter(|_| is_next).map(|at| Stamp {
        step: Step::OffProved,
        at,
    }));
    steps
}

/// When the host was proved off for this case's key, as its status says.
pub(super) fn off_for(case: &Case, host: &Host) -> Option<Timestamp> {
    let key = case.key.key();
    let mut asked = requests(host).into_iter();
    let id = asked.find(|request| request.name == key)?.id();
    let power = &host.status.power;
    let is_for_it = case.is_keyed() && power.confirmed_for.contains(&id);
    power.off_confirmed_at.filter(|_| is_for_it)
}

impl StepRow {
    /// One line of text.
    pub(super) fn line(&self) -> String {
        let after = self.after_ms.map(|ms| format!(", after {}", lasted(ms)));
        let (step, at) = (self.step, moment(self.at));
        format!("{step} at {at}{}", after.unwrap_or_default())
    }
}
