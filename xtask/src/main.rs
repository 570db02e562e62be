//! The project's own commands: `cargo xtask help`.
//!
//! It may touch: the tree, the project's cache folder, and (only where something needed is missing) Debian's packages.
//! It promises that `test` and `lint` need nothing that a fresh machine with cargo, Go and git cannot give.

mod bench;
mod book;
mod cargo_deny;
mod cargo_tool;
mod debian_packages;
mod figures;
mod generate;
mod helm_chart;
mod house_rules;
mod lint;
mod packaging;
mod prove;
mod real_node;
mod source_tree;
mod test;
mod test_needs;
mod testbed;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// The project's own commands.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_help_subcommand = false
)]
struct XtaskArguments {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Runs every test, on the embedded cluster and on a real API server, which is built first (once, some 5 minutes)
    Test(test::TestArguments),
    /// Checks format, lints, dependencies, generated files and house rules
    Lint(lint::LintArguments),
    /// Perturbs every event, read and write of every scenario, and runs random scripts and fuzzers (--quick: a sample)
    Prove(prove::ProveArguments),
    /// Measures the figures the project promises and prints them as a table
    Bench(bench::BenchArguments),
    /// Writes the files that are made from code
    Generate(generate::GenerateArguments),
    /// Writes OCI images of both programs into target/images; needs no container engine
    #[command(disable_help_flag = true)]
    Image(packaging::PackagingWords),
    /// Writes packages of both programs into target/dist: deb, rpm, archives, krew, SBOMs, checksums
    #[command(disable_help_flag = true)]
    Dist(packaging::PackagingWords),
    /// Makes a book with a search of the docs, in target/book
    Book(book::BookArguments),
    /// Runs a real control plane on loopback until ctrl-c
    ControlPlane(testbed::ControlPlaneArguments),
}

fn main() -> ExitCode {
    match run_command(XtaskArguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_command(command: XtaskCommand) -> anyhow::Result<()> {
    match command {
        XtaskCommand::Test(arguments) => test::run(&arguments),
        XtaskCommand::Lint(arguments) => lint::run(&arguments),
        XtaskCommand::Prove(arguments) => prove::run(&arguments),
        XtaskCommand::Bench(arguments) => bench::run(&arguments),
        XtaskCommand::Generate(arguments) => generate::run(&arguments),
        XtaskCommand::Image(arguments) => packaging::run_packaging("image", &arguments),
        XtaskCommand::Dist(arguments) => packaging::run_packaging("dist", &arguments),
        XtaskCommand::Book(arguments) => book::run(&arguments),
        XtaskCommand::ControlPlane(arguments) => testbed::run_control_plane(&arguments),
    }
}

/// What `cargo xtask help` prints, for CONTRIBUTING.md.
fn help_text() -> String {
    // A fixed width: the terminal of whoever generates must not show in the file.
    XtaskArguments::command()
        .term_width(100)
        .render_help()
        .to_string()
}
