//! Advice for a person about a schedule.

use super::row::fell_short;
use super::{ScheduleReportInput, is_unobserved};
use crate::Now;
use crate::schedule::{
    OccurrenceOutcome, OccurrenceRecord, Schedule, ScheduleForecast, ScheduleReason,
    ScheduleTargetKind, TargetOutcome, TargetResult,
};

/// The advice, the most likely help first.
pub(super) fn schedule_advice(
    view: &ScheduleReportInput,
    outlook: &ScheduleForecast,
    now: Now,
) -> Vec<String> {
    let schedule = &view.schedule;
    let about_it = state_advice(schedule, outlook.because.reason);
    let is_left = is_unobserved(schedule) || outlook.come.is_some();
    let about_last = schedule.status.history.first().into_iter();
    about_it
        .into_iter()
        .chain(
            view.controller
                .controller_advice(is_left, "power or healer", now),
        )
        .chain(
            about_last
                .clone()
                .flat_map(|last| reboots_advice(schedule, last)),
        )
        .chain(about_last.flat_map(|last| last_occurrence_advice(schedule, last)))
        .collect()
}

fn state_advice(schedule: &Schedule, state: ScheduleReason) -> Option<String> {
    let (namespace, name) = (&schedule.name.namespace, &schedule.name.name);
    if state == ScheduleReason::Invalid {
        Some(format!(
            "correct it: kubectl edit -n {namespace} rebootschedule {name}"
        ))
    } else if state == ScheduleReason::Suspended {
        Some(format!(
            "to resume the schedule: kubectl patch -n {namespace} rebootschedule {name} \
             --type=merge -p '{{\"spec\":{{\"suspend\":false}}}}'"
        ))
    } else {
        None
    }
}

/// Where to look at the NodeReboots that failed, or that have not ended.
fn reboots_advice(schedule: &Schedule, last: &OccurrenceRecord) -> Vec<String> {
    let Some(reboots) = &last.reboots else {
        return Vec::new();
    };
    let failed = reboots.failures.first().map(|failure| {
        format!(
            "to see why a reboot did not succeed: dogwatch explain nodereboot/{}",
            failure.node_reboot
        )
    });
    let open = (reboots.open > 0).then(|| {
        format!(
            "to see the NodeReboots that have not ended: kubectl get nodereboots -l {}={}",
            dogwatch_api::label::SCHEDULE_UID,
            schedule.uid
        )
    });
    failed.into_iter().chain(open).collect()
}

fn last_occurrence_advice(schedule: &Schedule, last: &OccurrenceRecord) -> Vec<String> {
    let by_result = |failed: bool| {
        let of_it = last
            .targets
            .iter()
            // `*` stands for the targets of a selector that could not be listed.
            .filter(move |target| {
                (target.result == TargetResult::Failed) == failed && target.name != "*"
            });
        of_it.map(|target| target_name(schedule, target))
    };
    match last.outcome {
        OccurrenceOutcome::Missed | OccurrenceOutcome::NoTargets => {
            let step = last
                .outcome
                .schedule_reason()
                .next_step()
                .map(str::to_owned);
            step.into_iter().collect()
        }
        OccurrenceOutcome::Requested
        | OccurrenceOutcome::PartlyRequested
        | OccurrenceOutcome::Failed
        | OccurrenceOutcome::Cancelled => {
            let asked = by_result(false).next();
            let asked = asked
                .map(|one| format!("to see the result for one target: dogwatch explain {one}"));
            let failed = by_result(true).next().filter(|_| fell_short(last));
            let failed = failed.map(|one| {
                format!(
                    "to see why a target could not be requested: dogwatch explain {one}; then request it yourself"
                )
            });
            failed.into_iter().chain(asked).collect()
        }
    }
}

/// The target in the form that `dogwatch explain` takes.
fn target_name(schedule: &Schedule, target: &TargetOutcome) -> String {
    match target.kind {
        ScheduleTargetKind::Node => format!("node/{}", target.name),
        ScheduleTargetKind::Host => format!("host/{}/{}", schedule.name.namespace, target.name),
    }
}
