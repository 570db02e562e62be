//! The schedules of a status.

use dogwatch_core::explain::{ScheduleRow, schedule_rows};
use dogwatch_k8s::fleet::SchedulesFound;

use super::{Scope, What};
use crate::cluster::{Connected, now};
use crate::command::schedules::no_kind;
use crate::exit::Failure;

/// The rows of the schedules in scope. Beside Nodes and locks they are left out where they cannot be had.
pub async fn read(connected: &Connected, scope: &Scope) -> Result<Vec<ScheduleRow>, Failure> {
    if !scope.wants(What::Schedules) {
        return Ok(Vec::new());
    }
    let is_all_that_is_wanted = scope.what == Some(What::Schedules);
    let namespace = scope.namespace.as_deref();
    match connected.fleet.schedules(namespace).await {
        Ok(SchedulesFound::Schedules(schedules)) => {
            if schedules.is_empty() && is_all_that_is_wanted {
                eprintln!("dogwatch: {}", nothing(namespace));
            }
            Ok(schedule_rows(&schedules, now()))
        }
        Ok(SchedulesFound::NoKind) if is_all_that_is_wanted => Err(no_kind()),
        Ok(SchedulesFound::NoKind) => Ok(Vec::new()),
        Err(error) if is_all_that_is_wanted => {
            Err(connected.failed("list RebootSchedules", &error))
        }
        Err(error) => {
            eprintln!("dogwatch: shown without schedules: {}", error.in_words());
            Ok(Vec::new())
        }
    }
}

fn nothing(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("there are no RebootSchedules in namespace {namespace}"),
        None => "there are no RebootSchedules in this cluster".into(),
    }
}
