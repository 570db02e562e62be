//! cargo-deny: installed once into the project's cache, at one version.

use std::{env, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::source_tree;

const CARGO_DENY_VERSION: &str = "0.20.2";

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
    let mut command = Command::new(install_cargo_deny()?);
    command.current_dir(source_tree::workspace_root());
    Ok(command)
}

/// The folder where the test bed builds its programs (`cache_dir` there).
fn cache_folder() -> Result<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let below = |name: &str, folder: &str| Some(PathBuf::from(variable(name)?).join(folder));
    below("DOGWATCH_CACHE", "")
        .or_else(|| below("XDG_CACHE_HOME", "dogwatch"))
        .or_else(|| below("HOME", ".cache/dogwatch"))
        .context("failed to find a cache folder: set DOGWATCH_CACHE, XDG_CACHE_HOME or HOME")
}

fn install_cargo_deny() -> Result<PathBuf> {
    let folder = cache_folder()?.join(format!("cargo-deny-{CARGO_DENY_VERSION}"));
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        eprintln!(
            "installing cargo-deny {CARGO_DENY_VERSION} (about 2 minutes, once) into {}",
            folder.display()
        );
        let mut cargo = source_tree::cargo_command();
        cargo
            .args([
                "install",
                "--quiet",
                "--locked",
                "--version",
                CARGO_DENY_VERSION,
                "cargo-deny",
                "--root",
            ])
            .arg(&folder);
        source_tree::run_command(&mut cargo).context("failed to install cargo-deny")?;
    }
    Ok(program)
}
