//! Implements `dogwatch power status`.

use dogwatch_core::explain::host_row;
use dogwatch_core::power::HostName;

use crate::args::ClusterArgs;
use crate::cluster::{ConnectedCluster, current_time};
use crate::command::hosts;
use crate::command::status::rows;
use crate::exit::CommandFailure;
use crate::output::{self, OutputArgs, OutputFormat};
use crate::paint::TerminalPaint;
use crate::resource::{ObjectArg, parse_host};

#[derive(Debug, clap::Args)]
pub struct PowerStatusArgs {
    /// Host: NAMESPACE/NAME, or NAME with -n NAMESPACE
    #[arg(value_name = "NAMESPACE/NAME", value_parser = parse_host)]
    host: ObjectArg,

    #[command(flatten)]
    output: OutputArgs,
}

pub async fn run(cluster: &ClusterArgs, args: &PowerStatusArgs) -> Result<(), CommandFailure> {
    let connected = ConnectedCluster::connect_for_objects(cluster).await?;
    let name = args.host.resolve_name(cluster, &connected, HostName::new);
    let host = hosts::read_host(&connected, &name).await?;
    let carried = connected
        .fleet
        .read_nodes_by_host()
        .await
        .unwrap_or_default();
    let row = host_row(&host, carried.node_of_host(&host).as_ref());
    let format = args.output.format;
    output::print_document(format, &row, |out| {
        let wide = format == OutputFormat::Wide;
        let table = rows::hosts_table(std::slice::from_ref(&row), wide, current_time());
        Ok(table.write_table(out, TerminalPaint::of_stdout())?)
    })
}
