//! Single lines of a host's explanation.

use super::requests::ExplainedAnnotation;
use crate::explain::human_format::{format_age, format_time};
use crate::power::{HostSnapshot, PowerHistoryEntry};

pub(super) fn annotation_line(host: &HostSnapshot, asked: &ExplainedAnnotation) -> String {
    let request = &asked.request;
    let mode = if request.is_hard { "hard" } else { "soft" };
    let what = match &request.key {
        None => "reboot, once",
        Some(_) => "off until it is removed",
    };
    let by = asked.by.as_ref().map(|by| format!(", {by}"));
    let problem = request.problem.as_ref();
    let problem = problem.map(|problem| format!("; its value {problem}, and counts as soft"));
    let state = host.status.provisioning.as_deref().unwrap_or("none");
    let disobeyed = (!asked.is_obeyed).then(|| {
        format!(
            "; NOT obeyed: the host is in provisioning state {state}, and the value has no \"force\":true"
        )
    });
    let tail = [by, problem, disobeyed];
    let tail: String = tail.into_iter().flatten().collect();
    format!("{}: {what}, {mode}{tail}", request.name)
}

pub(super) fn level_suffix(host: &HostSnapshot, level: usize) -> String {
    if host.levels.len() > 1 {
        format!(" on level {level}")
    } else {
        String::new()
    }
}

pub(super) fn past_action_line(done: &PowerHistoryEntry) -> String {
    let times = match done.attempts {
        0 | 1 => String::new(),
        many => format!(", sent {many} times"),
    };
    format!(
        "{} at {} ({}): {} after {}{times}",
        done.what,
        format_time(done.at),
        done.why,
        done.outcome,
        format_age(done.took)
    )
}
