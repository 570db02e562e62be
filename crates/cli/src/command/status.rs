//! `dogwatch status`.

mod rows;
mod watch;

use std::io::Write as _;

use dogwatch_core::explain::{self, Status};

use crate::args::Cluster;
use crate::cluster::{Connected, now};
use crate::exit::Failure;
use crate::output::{self, Format};
use crate::paint::Paint;

/// What to show.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// How it is printed
    #[arg(
        long,
        short,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    output: Format,

    /// Goes on, and shows every change
    #[arg(long, short)]
    watch: bool,
}

/// Reads and prints; with `--watch` for ever.
pub async fn run(cluster: &Cluster, args: &StatusArgs) -> Result<(), Failure> {
    let connected = Connected::to(cluster).await?;
    if args.watch {
        return watch::run(&connected, args.output).await;
    }
    let fleet = connected
        .fleet
        .read()
        .await
        .map_err(|error| connected.failed("list Nodes and Leases", &error))?;
    let status = explain::status(&fleet);
    if status.nodes.is_empty() {
        eprintln!("dogwatch: this cluster has no Nodes");
    }
    let mut out = output::stdout();
    print(&mut out, &status, args.output, Paint::of_stdout())?;
    Ok(out.flush()?)
}

fn print(
    out: &mut impl std::io::Write,
    status: &Status,
    format: Format,
    paint: Paint,
) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(out, status),
        Format::Yaml => output::yaml(out, status),
        Format::Table | Format::Wide => {
            let tables = rows::Tables::of(status, format, now());
            Ok(tables.write(out, paint)?)
        }
    }
}
