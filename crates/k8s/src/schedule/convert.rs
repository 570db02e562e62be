//! Converts a RebootSchedule. Whatever cannot be understood becomes a problem that names its field.

use std::time::Duration;

use dogwatch_api::reboot_schedule::{self as api, RebootScheduleSpec};
use dogwatch_core::duration;
use dogwatch_core::schedule::{
    HostRebootMode, Schedule, ScheduleName, SchedulePlan, ScheduleRecurrence, ScheduleTiming,
    TargetChoice,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::ResourceExt as _;
use serde_json::Value;

use super::ScheduleObject;
use super::status::parse_status;
use crate::policy::selector_problem;

/// How late an occurrence may start, if the schedule does not say.
const DEFAULT_STARTING_DEADLINE: Duration = Duration::from_hours(1);
/// A shorter deadline would miss an occurrence whenever another replica takes over.
const MIN_STARTING_DEADLINE: Duration = Duration::from_mins(1);
/// The reason in a request if the schedule has none.
const DEFAULT_REASON: &str = "scheduled reboot";

/// `home`: the namespace where Dogwatch runs.
pub fn convert_schedule(object: &ScheduleObject, home: &str) -> Schedule {
    let name = ScheduleName {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    };
    let meta = &object.metadata;
    Schedule {
        plan: parse_plan(&object.spec, &name, home),
        name,
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        generation: meta.generation,
        created: meta
            .creation_timestamp
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        changed: spec_changed_at(object.managed_fields()),
        deleting: meta.deletion_timestamp.is_some(),
        status: parse_status(&object.status),
    }
}

/// The newest time of an entry with fields of the `spec` in the API server's managed fields. A write that
/// only removes fields sets no time there.
fn spec_changed_at(entries: &[ManagedFieldsEntry]) -> Option<Timestamp> {
    let of_spec = entries.iter().filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        let has_spec = fields.is_some_and(|fields| fields.0.get("f:spec").is_some());
        has_spec && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    of_spec
        .filter_map(|entry| entry.time.as_ref().map(|time| time.0))
        .max()
}

fn parse_plan(spec: &Value, name: &ScheduleName, home: &str) -> Result<SchedulePlan, Vec<String>> {
    let spec: RebootScheduleSpec =
        serde_json::from_value(spec.clone()).map_err(|error| vec![format!("spec: {error}")])?;
    let mut problems = target_problems(&spec, name, home);
    let deadline = parse_deadline(spec.starting_deadline.as_deref());
    let recurrence = spec.recurrence.map(convert_recurrence);
    let zone = spec.time_zone.as_deref();
    let when = ScheduleTiming::new(spec.at.as_deref(), recurrence.as_ref(), zone);
    let when = when.map_err(|bad| bad.to_string());
    problems.extend(when.as_ref().err().cloned());
    problems.extend(deadline.as_ref().err().cloned());
    let (Ok((when, zone)), Ok(starting_deadline), []) = (when, deadline, problems.as_slice())
    else {
        return Err(problems);
    };
    Ok(SchedulePlan {
        when,
        zone,
        starting_deadline,
        suspend: spec.suspend.unwrap_or(false),
        reason: spec.reason.unwrap_or_else(|| DEFAULT_REASON.to_owned()),
        mode: spec.mode.map_or(HostRebootMode::Soft, convert_mode),
        nodes: spec.nodes.map(convert_selection),
        hosts: spec.hosts.map(convert_selection),
    })
}

fn target_problems(spec: &RebootScheduleSpec, name: &ScheduleName, home: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if spec.nodes.is_none() && spec.hosts.is_none() {
        problems
            .push("spec: selects no node and no host; write nodes or hosts, or both".to_owned());
    }
    if spec.nodes.is_some() && name.namespace != home {
        problems.push(format!(
            "spec.nodes: only a schedule in namespace {home} may reboot nodes; choose the hosts \
             of this namespace, or create the schedule there"
        ));
    }
    for (field, chosen) in [("nodes", &spec.nodes), ("hosts", &spec.hosts)] {
        let selector = chosen.as_ref().and_then(|chosen| chosen.selector.as_ref());
        let problem = selector.and_then(selector_problem);
        problems.extend(problem.map(|problem| format!("spec.{field}.selector: {problem}")));
    }
    problems
}

fn parse_deadline(text: Option<&str>) -> Result<Duration, String> {
    let Some(text) = text else {
        return Ok(DEFAULT_STARTING_DEADLINE);
    };
    let deadline = duration::parse_duration(text)
        .map_err(|error| format!("spec.startingDeadline: {error}"))?;
    if deadline < MIN_STARTING_DEADLINE {
        return Err(
            "spec.startingDeadline: write at least 1m: another replica may have to take over first"
                .to_owned(),
        );
    }
    Ok(deadline)
}

fn convert_recurrence(recurrence: api::RecurrenceSpec) -> ScheduleRecurrence {
    ScheduleRecurrence {
        days: recurrence.days,
        // A missing start becomes an empty text, which is reported as no time of day.
        start: recurrence.start.unwrap_or_default(),
        rrule: recurrence.rrule,
        excluded_dates: recurrence.excluded_dates.unwrap_or_default(),
    }
}

fn convert_mode(mode: api::HostPowerOffMode) -> HostRebootMode {
    match mode {
        api::HostPowerOffMode::Soft => HostRebootMode::Soft,
        api::HostPowerOffMode::Hard => HostRebootMode::Hard,
    }
}

fn convert_selection(chosen: api::TargetsSpec) -> TargetChoice {
    TargetChoice {
        names: chosen.names.unwrap_or_default(),
        selector: chosen.selector,
    }
}
