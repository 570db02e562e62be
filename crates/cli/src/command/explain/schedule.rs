//! `dogwatch explain schedule/NAMESPACE/NAME`.

use dogwatch_core::explain::{ControllerSeen, ScheduleView, explain_schedule};

use super::{Told, print, without};
use crate::args::Cluster;
use crate::cluster::now;
use crate::command::hosts::connect;
use crate::command::schedules::{self, Named};
use crate::exit::Failure;
use crate::output::Format;

/// Reads, explains, prints. The schedule must be readable; what else is missing is said and left out.
pub async fn run(cluster: &Cluster, named: &Named, format: Format) -> Result<(), Failure> {
    let connected = connect(cluster).await?;
    let schedule = schedules::one(cluster, &connected, named).await?;
    let controller = connected.fleet.controller().await;
    let view = ScheduleView {
        schedule,
        controller: controller
            .map_err(|error| without("who leads the controllers", &error))
            .unwrap_or(ControllerSeen::Unknown),
    };
    let explanation = explain_schedule(&view, now());
    let told = Told {
        summary: &explanation.summary,
        chain: &explanation.chain,
        advice: &explanation.advice,
    };
    print(&explanation, &told, format)
}
