//! cargo-deny: installed once into the project's cache, at one version.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result};
use dogwatch_testbed::cache_dir;

use crate::tree;

const VERSION: &str = "0.20.2";

/// A room that may name kube need not, and the tree of who wants what is longer than all else together.
const CHECK: [&str; 4] = [
    "check",
    "--hide-inclusion-graph",
    "--allow",
    "unused-wrapper",
];

/// What needs no network but the crates themselves: who may name whom, licences, where crates come from.
pub fn check() -> Result<()> {
    tree::run(
        cargo_deny()?
            .args(CHECK)
            .args(["bans", "licenses", "sources"]),
    )
}

/// Known holes. They are reported and do not fail: a hole that is found elsewhere must not turn an unchanged tree red.
pub fn advisories() -> Result<String> {
    if tree::read(cargo_deny()?.args(["fetch", "db"])).is_err() {
        return Ok("not looked at: the advisory database cannot be reached from here".to_owned());
    }
    let found = tree::run(
        cargo_deny()?
            .args(CHECK)
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

fn cargo_deny() -> Result<Command> {
    let mut command = Command::new(install()?);
    command.current_dir(tree::root());
    Ok(command)
}

fn install() -> Result<PathBuf> {
    let folder = cache_dir()?.join(format!("cargo-deny-{VERSION}"));
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        eprintln!(
            "installing cargo-deny {VERSION} (about 2 minutes, once) into {}",
            folder.display()
        );
        let mut cargo = tree::cargo();
        cargo
            .args([
                "install",
                "--quiet",
                "--locked",
                "--version",
                VERSION,
                "cargo-deny",
                "--root",
            ])
            .arg(&folder);
        tree::run(&mut cargo).context("failed to install cargo-deny")?;
    }
    Ok(program)
}
