//! `cargo xtask image` and `cargo xtask dist`. The crate in `packaging/` does the work: it is called, not linked, so that xtask
//! compiles in seconds.

use std::{os::unix::process::CommandExt as _, process::Command};

use anyhow::{Context, Result};

use crate::{book, debian_packages, source_tree};

pub const PACKAGE: &str = "dogwatch-packaging";

#[derive(clap::Args)]
pub struct PackagingWords {
    /// --output DIR, --binaries DIR and others: --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the packaging's own program in place of this process.
pub fn run_packaging(what: &str, arguments: &PackagingWords) -> Result<()> {
    let mut command = packaging_command();
    command.arg(what).args(&arguments.arguments);
    Err(command.exec()).context("failed to start cargo")
}

/// What takes too long for each change: everything with the programs as they are released.
pub fn run_packaging_tests() -> Result<()> {
    debian_packages::install_missing()?;
    for what in ["image", "dist"] {
        source_tree::run_command(packaging_command().arg(what))?;
    }
    let released = source_tree::workspace_root().join("target/shipped/release");
    let mut tests = source_tree::test_cargo_command();
    tests
        .args(["test", "--package", PACKAGE, "--no-fail-fast"])
        .args(["--lib", "--bins", "--test=image", "--test=packages"])
        .args(["--", "--include-ignored"])
        .env("DOGWATCH_PROGRAMS", released);
    source_tree::run_command(&mut tests)?;
    book::make_book()
}

fn packaging_command() -> Command {
    let mut command = source_tree::test_cargo_command();
    command.args(["run", "--quiet", "--package", PACKAGE, "--"]);
    command
}
