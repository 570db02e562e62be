//! `dogwatch power status`.

use std::io::Write as _;

use dogwatch_core::explain::host_row;

use crate::args::Cluster;
use crate::cluster::now;
use crate::command::hosts::{self, Named, named};
use crate::command::status::rows;
use crate::exit::Failure;
use crate::output::{self, Format, Output};
use crate::paint::Paint;

/// Which host.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The host: NAMESPACE/NAME, or NAME with -n NAMESPACE
    #[arg(value_name = "NAMESPACE/NAME", value_parser = named)]
    host: Named,

    /// How it is printed
    #[command(flatten)]
    output: Output,
}

/// Reads and prints.
pub async fn run(cluster: &Cluster, args: &StatusArgs) -> Result<(), Failure> {
    let connected = hosts::connect(cluster).await?;
    let name = args.host.in_cluster(cluster, &connected);
    let host = hosts::one(&connected, &name).await?;
    let carried = connected.fleet.carried().await.unwrap_or_default();
    let row = host_row(&host, carried.node_of(&host).as_ref());
    let mut out = output::stdout();
    match args.output.format {
        Format::Json => output::json(&mut out, &row)?,
        Format::Yaml => output::yaml(&mut out, &row)?,
        Format::Table | Format::Wide => {
            let wide = args.output.format == Format::Wide;
            let table = rows::hosts(std::slice::from_ref(&row), wide, now());
            table.write(&mut out, Paint::of_stdout())?;
        }
    }
    Ok(out.flush()?)
}
