//! cargo-deny: who may depend on whom, licences, and known holes.

use std::process::Command;

use anyhow::Result;

use crate::{cargo_tool::CargoTool, source_tree};

const CARGO_DENY: CargoTool = CargoTool {
    name: "cargo-deny",
    version: "0.20.2",
    // Not optimized, it is compiled in half the time, and checks for some seconds.
    install_arguments: &["--debug"],
    usual_install_time: "about a minute",
};

/// A room that may name kube need not, and the tree of who wants what is longer than all else together.
const CHECK_ARGUMENTS: [&str; 4] = [
    "check",
    "--hide-inclusion-graph",
    "--allow",
    "unused-wrapper",
];

/// What needs no network but the crates themselves: who may name whom, licences, where crates come from.
pub fn check_dependencies() -> Result<()> {
    source_tree::run_command(
        cargo_deny_command()?
            .args(CHECK_ARGUMENTS)
            .args(["bans", "licenses", "sources"]),
    )
}

/// Known holes. They are reported and do not fail: a hole that is found elsewhere must not turn an unchanged tree red.
pub fn check_advisories() -> Result<String> {
    if source_tree::read_output(cargo_deny_command()?.args(["fetch", "db"])).is_err() {
        return Ok("not checked: the advisory database cannot be reached from here".to_owned());
    }
    let found = source_tree::run_command(
        cargo_deny_command()?
            .args(CHECK_ARGUMENTS)
            .args(["--disable-fetch", "advisories"]),
    )
    .is_err();
    Ok(if found {
        "FOUND, see above (does not fail)"
    } else {
        "none known"
    }
    .to_owned())
}

fn cargo_deny_command() -> Result<Command> {
    let mut command = Command::new(CARGO_DENY.find_or_install()?);
    command.current_dir(source_tree::workspace_root());
    Ok(command)
}
