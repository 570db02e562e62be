//! What a person can do about a schedule.

use super::row::fell_short;
use super::{ScheduleView, is_unseen};
use crate::Now;
use crate::schedule::{Kind, Outcome, Outlook, Record, Schedule, TargetEnd, TargetResult, reason};

/// What can be done, the most likely help first.
pub(super) fn advice(view: &ScheduleView, outlook: &Outlook, now: Now) -> Vec<String> {
    let schedule = &view.schedule;
    let about_it = about_it(schedule, outlook.because.reason);
    let is_left = is_unseen(schedule) || outlook.come.is_some();
    let about_last = schedule.status.history.first().into_iter();
    about_it
        .into_iter()
        .chain(view.controller.advice(is_left, "power or healer", now))
        .chain(about_last.flat_map(|last| about_last_one(schedule, last)))
        .collect()
}

fn about_it(schedule: &Schedule, state: &str) -> Option<String> {
    let (namespace, name) = (&schedule.name.namespace, &schedule.name.name);
    match state {
        reason::INVALID => Some(format!(
            "correct it: kubectl edit -n {namespace} rebootschedule {name}"
        )),
        reason::SUSPENDED => Some(format!(
            "to have it issue again: kubectl patch -n {namespace} rebootschedule {name} --type=merge \
             -p '{{\"spec\":{{\"suspend\":false}}}}'"
        )),
        _ => None,
    }
}

fn about_last_one(schedule: &Schedule, last: &Record) -> Vec<String> {
    let by_result = |failed: bool| {
        let of_it = last
            .targets
            .iter()
            // `*` stands for all that could not be listed.
            .filter(move |target| {
                (target.result == TargetResult::Failed) == failed && target.name != "*"
            });
        of_it.map(|target| named(schedule, target))
    };
    match last.outcome {
        Outcome::Missed => vec![
            "what was missed is not made up for: ask with dogwatch reboot or dogwatch power cycle, or \
             give spec.startingDeadline more time"
                .into(),
        ],
        Outcome::NoTargets => vec!["see that its names and selectors match somebody".into()],
        Outcome::Requested
        | Outcome::PartlyRequested
        | Outcome::Failed
        | Outcome::Cancelled => {
            let asked = by_result(false).next();
            let asked = asked.map(|one| format!("what became of one that was asked: dogwatch explain {one}"));
            let failed = by_result(true).next().filter(|_| fell_short(last));
            let failed = failed.map(|one| {
                format!("why one could not be asked: dogwatch explain {one}; then ask it yourself")
            });
            failed.into_iter().chain(asked).collect()
        }
    }
}

/// As `dogwatch explain` takes it.
fn named(schedule: &Schedule, target: &TargetEnd) -> String {
    match target.kind {
        Kind::Node => format!("node/{}", target.name),
        Kind::Host => format!("host/{}/{}", schedule.name.namespace, target.name),
    }
}
