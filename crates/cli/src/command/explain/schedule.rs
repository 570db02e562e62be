//! Implements `dogwatch explain schedule/NAMESPACE/NAME`.

use dogwatch_core::explain::{ObservedController, ScheduleReportInput, explain_schedule};
use dogwatch_core::schedule::{Schedule, ScheduleName};
use dogwatch_k8s::fleet::ScheduleFound;

use super::{ExplanationText, print_explanation, warn_left_out};
use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::output::OutputFormat;
use crate::resource::{ObjectArg, ObjectKind, kind_missing, object_not_found};

/// The schedule must be readable; anything else that cannot be read is left out with a warning.
pub async fn run(
    cluster: &ClusterArgs,
    named: &ObjectArg,
    format: OutputFormat,
) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_for_objects(cluster).await?;
    let schedule = read_schedule(cluster, &connected, named).await?;
    let controller = connected.fleet.read_controller().await;
    let view = ScheduleReportInput {
        schedule,
        controller: controller
            .map_err(|error| warn_left_out("who leads the controllers", &error))
            .unwrap_or(ObservedController::Unknown),
    };
    let explanation = explain_schedule(&view, current_time());
    let told = ExplanationText {
        summary: &explanation.summary,
        chain: &explanation.chain,
        advice: &explanation.advice,
    };
    print_explanation(&explanation, &told, format)
}

async fn read_schedule(
    cluster: &ClusterArgs,
    connected: &ConnectedCluster,
    named: &ObjectArg,
) -> Result<Schedule, CommandFailure> {
    let make = |namespace, name| ScheduleName { namespace, name };
    let name = named.resolve_name(cluster, connected, make);
    let found = connected.fleet.read_schedule(&name).await;
    match found.map_err(|error| connected.api_failure(&format!("read schedule {name}"), &error))? {
        ScheduleFound::There(schedule) => Ok(*schedule),
        ScheduleFound::NoSchedule => {
            Err(object_not_found(connected, ObjectKind::Schedule, &name.to_string()).await)
        }
        ScheduleFound::NoKind => Err(kind_missing(ObjectKind::Schedule)),
    }
}
