//! From an object to what decisions use. Whatever cannot be understood becomes a problem that names
//! its field.

use std::time::Duration;

use dogwatch_api::reboot_schedule::{self as api, RebootScheduleSpec};
use dogwatch_core::duration;
use dogwatch_core::schedule::{Chosen, Mode, Plan, Recurrence, Schedule, ScheduleName, When};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::ResourceExt as _;
use serde_json::Value;

use super::ScheduleObject;
use super::status::status_of;
use crate::policy::selector_problem;

/// How late is still on time, unless the schedule says otherwise.
const STARTING_DEADLINE: Duration = Duration::from_hours(1);
/// Shorter ones would miss an occurrence whenever another replica takes over.
const SHORTEST_DEADLINE: Duration = Duration::from_mins(1);
/// What a request says where the schedule gives no reason.
const REASON: &str = "scheduled reboot";

/// The schedule that this object is, where Dogwatch's own namespace is `home`.
pub fn convert(object: &ScheduleObject, home: &str) -> Schedule {
    let name = ScheduleName {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    };
    let meta = &object.metadata;
    Schedule {
        plan: plan(&object.spec, &name, home),
        name,
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        generation: meta.generation,
        created: meta
            .creation_timestamp
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        changed: changed(object.managed_fields()),
        deleting: meta.deletion_timestamp.is_some(),
        status: status_of(&object.status),
    }
}

/// When somebody last changed a field of the `spec`, by the API server's own account.
fn changed(entries: &[ManagedFieldsEntry]) -> Option<Timestamp> {
    let of_spec = entries.iter().filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        let has_spec = fields.is_some_and(|fields| fields.0.get("f:spec").is_some());
        has_spec && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    of_spec
        .filter_map(|entry| entry.time.as_ref().map(|time| time.0))
        .max()
}

fn plan(spec: &Value, name: &ScheduleName, home: &str) -> Result<Plan, Vec<String>> {
    let spec: RebootScheduleSpec =
        serde_json::from_value(spec.clone()).map_err(|error| vec![format!("spec: {error}")])?;
    let mut problems = whom_problems(&spec, name, home);
    let deadline = deadline(spec.starting_deadline.as_deref());
    let recurrence = spec.recurrence.map(recurrence);
    let zone = spec.time_zone.as_deref();
    let when = When::new(spec.at.as_deref(), recurrence.as_ref(), zone);
    let when = when.map_err(|bad| bad.to_string());
    problems.extend(when.as_ref().err().cloned());
    problems.extend(deadline.as_ref().err().cloned());
    let (Ok((when, zone)), Ok(starting_deadline), []) = (when, deadline, problems.as_slice())
    else {
        return Err(problems);
    };
    Ok(Plan {
        when,
        zone,
        starting_deadline,
        suspend: spec.suspend.unwrap_or(false),
        reason: spec.reason.unwrap_or_else(|| REASON.to_owned()),
        mode: spec.mode.map_or(Mode::Soft, mode),
        nodes: spec.nodes.map(chosen),
        hosts: spec.hosts.map(chosen),
    })
}

fn whom_problems(spec: &RebootScheduleSpec, name: &ScheduleName, home: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if spec.nodes.is_none() && spec.hosts.is_none() {
        problems.push("spec: chooses nobody; write nodes or hosts, or both".to_owned());
    }
    if spec.nodes.is_some() && name.namespace != home {
        problems.push(format!(
            "spec.nodes: only a schedule in namespace {home} may have nodes rebooted; choose the hosts \
             of this namespace, or make the schedule there"
        ));
    }
    for (field, chosen) in [("nodes", &spec.nodes), ("hosts", &spec.hosts)] {
        let selector = chosen.as_ref().and_then(|chosen| chosen.selector.as_ref());
        let problem = selector.and_then(selector_problem);
        problems.extend(problem.map(|problem| format!("spec.{field}.selector: {problem}")));
    }
    problems
}

fn deadline(text: Option<&str>) -> Result<Duration, String> {
    let Some(text) = text else {
        return Ok(STARTING_DEADLINE);
    };
    let deadline =
        duration::parse(text).map_err(|error| format!("spec.startingDeadline: {error}"))?;
    if deadline < SHORTEST_DEADLINE {
        return Err(
            "spec.startingDeadline: write at least 1m: another replica may have to take over first"
                .to_owned(),
        );
    }
    Ok(deadline)
}

fn recurrence(recurrence: api::Recurrence) -> Recurrence {
    Recurrence {
        days: recurrence.days,
        // One that is missing is no time of day, and said to be none.
        start: recurrence.start.unwrap_or_default(),
        rrule: recurrence.rrule,
        excluded_dates: recurrence.excluded_dates.unwrap_or_default(),
    }
}

fn mode(mode: api::Mode) -> Mode {
    match mode {
        api::Mode::Soft => Mode::Soft,
        api::Mode::Hard => Mode::Hard,
    }
}

fn chosen(chosen: api::Chosen) -> Chosen {
    Chosen {
        names: chosen.names.unwrap_or_default(),
        selector: chosen.selector,
    }
}
