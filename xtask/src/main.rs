//! The project's own commands: `cargo xtask help`.
//!
//! It may touch: the tree, the project's cache folder, and (only where something needed is missing) Debian's packages.
//! It promises that `test` and `lint` need nothing that a fresh machine with cargo, Go and git cannot give.

mod bench;
mod control_plane;
mod deny;
mod generate;
mod house;
mod lint;
mod needs;
mod packages;
mod test;
mod tree;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// The project's own commands.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_help_subcommand = false
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs every test, on the embedded cluster and on a real API server, which is built first (once, some 5 minutes)
    Test(test::Arguments),
    /// Checks format, lints, dependencies, generated files and house rules
    Lint,
    /// Measures the figures the project promises and prints them as a table
    Bench(bench::Arguments),
    /// Writes the files that are made from code
    Generate(generate::Arguments),
    /// Runs a real control plane on loopback until ctrl-c
    ControlPlane(control_plane::Arguments),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Lint => lint::run(),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::ControlPlane(arguments) => control_plane::run(&arguments),
    }
}

/// What `cargo xtask help` prints, for CONTRIBUTING.md.
fn help() -> String {
    // A fixed width: the terminal of whoever generates must not show in the file.
    Arguments::command()
        .term_width(100)
        .render_help()
        .to_string()
}
