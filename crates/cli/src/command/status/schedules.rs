//! Reads the schedules of a status.

use dogwatch_core::explain::{ScheduleRow, schedule_rows};
use dogwatch_k8s::fleet::SchedulesFound;

use super::{StatusPart, StatusScope};
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::resource::{ObjectKind, kind_missing};

/// The rows of the schedules in scope. In a status of all parts, schedules that cannot be read are
/// left out.
pub async fn read_schedule_rows(
    connected: &ConnectedCluster,
    scope: &StatusScope,
    unreadable: &mut Vec<String>,
) -> Result<Vec<ScheduleRow>, CommandFailure> {
    if !scope.includes_part(StatusPart::Schedules) {
        return Ok(Vec::new());
    }
    let is_all_that_is_wanted = scope.part == Some(StatusPart::Schedules);
    let namespace = scope.namespace.as_deref();
    match connected.fleet.list_schedules(namespace).await {
        Ok(SchedulesFound::Schedules(schedules)) => {
            if schedules.is_empty() && is_all_that_is_wanted {
                eprintln!("dogwatch: {}", no_schedules_text(namespace));
            }
            Ok(schedule_rows(&schedules, current_time()))
        }
        Ok(SchedulesFound::NoKind) if is_all_that_is_wanted => {
            Err(kind_missing(ObjectKind::Schedule))
        }
        Ok(SchedulesFound::NoKind) => Ok(Vec::new()),
        Err(error) if is_all_that_is_wanted => {
            Err(connected.api_failure("list RebootSchedules", &error))
        }
        Err(error) => {
            let missing = format!("the schedules cannot be shown: {}", error.error_chain());
            unreadable.push(missing);
            Ok(Vec::new())
        }
    }
}

fn no_schedules_text(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("there are no RebootSchedules in namespace {namespace}"),
        None => "there are no RebootSchedules in this cluster".into(),
    }
}
