//! Implements `dogwatch explain schedule/NAMESPACE/NAME`.

use dogwatch_core::explain::{ObservedController, ScheduleReportInput, explain_schedule};

use super::{ExplanationText, print_explanation, warn_left_out};
use crate::args::ClusterArgs;
use crate::cluster::current_time;
use crate::command::hosts::connect_for_hosts;
use crate::command::schedules::{self, ScheduleArg};
use crate::exit::CommandFailure;
use crate::output::OutputFormat;

/// The schedule must be readable; anything else that cannot be read is left out with a warning.
pub async fn run(
    cluster: &ClusterArgs,
    named: &ScheduleArg,
    format: OutputFormat,
) -> Result<(), CommandFailure> {
    let connected = connect_for_hosts(cluster).await?;
    let schedule = schedules::read_schedule(cluster, &connected, named).await?;
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
