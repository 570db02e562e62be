//! Advice for a person about a host's power.

use super::forecast::{forecast_without_reading, is_condition_current};
use super::requests::explained_annotations;
use super::{HostReportInput, POWER_AS_WANTED, POWER_CONTROL_READY, host_condition};
use crate::Now;
use crate::power::PowerReason;

/// The next step after a reason of the power controller; `None` if there is nothing to do, or if
/// the message says it.
pub fn next_step(word: &str) -> Option<&'static str> {
    PowerReason::parse(word)?.next_step()
}

/// The advice, the most likely help first.
pub(super) fn host_advice(view: &HostReportInput, now: Now) -> Vec<String> {
    let mut advice = Vec::new();
    let host = &view.host;
    if let Some(because) = forecast_without_reading(view, now) {
        advice.extend(because.reason.next_step().map(str::to_owned));
    } else {
        for kind in [POWER_CONTROL_READY, POWER_AS_WANTED] {
            let bad = host_condition(host, kind).filter(|said| said.status != "True");
            let step = bad.and_then(|said| next_step(&said.reason));
            let step = step.map(str::to_owned);
            advice.extend(step.filter(|step| !advice.contains(step)));
        }
    }
    advice.extend(annotation_advice(view));
    let is_idle = !is_condition_current(view, now);
    advice.extend(view.controller.controller_advice(is_idle, "power", now));
    advice
}

fn annotation_advice(view: &HostReportInput) -> Vec<String> {
    let name = &view.host.name;
    let mut advice = Vec::new();
    for asked in explained_annotations(&view.host) {
        let key = asked.request.key.as_deref();
        if asked.request.problem.is_some() {
            let (annotation, namespace) = (&asked.request.name, &name.namespace);
            advice.push(format!(
                "write it as JSON: kubectl annotate -n {namespace} bmh {} --overwrite {annotation}='{{\"mode\":\"hard\"}}'",
                name.name
            ));
        }
        match key {
            Some(key) if asked.is_obeyed => advice.push(format!(
                "the host is powered on when the writer of key {key} removes it; to remove it \
                 yourself: dogwatch power release {name} --key {key}"
            )),
            _ if !asked.is_obeyed => advice.push(format!(
                "to make Dogwatch obey {} in this state: dogwatch power {} {name} --force",
                asked.request.name,
                key.map_or_else(|| "cycle".to_owned(), |_| "hold".to_owned())
            )),
            Some(_) | None => {}
        }
    }
    advice
}
