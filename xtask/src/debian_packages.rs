//! Debian packages, installed only where something that is needed is missing.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::source_tree;

/// Packages that the tests need, one a line.
const TEST_PACKAGES: &str = include_str!("../../testbed/debian-packages.txt");

/// Installs what is missing, with a word about it.
pub fn install_missing() -> Result<()> {
    let missing = missing_packages();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    eprintln!("installing {names}");
    let install = ["install", "--yes", "--no-install-recommends"];
    apt_get(&["update", "--quiet"])
        .and_then(|()| apt_get(&[&install, missing.as_slice()].concat()))
        .with_context(|| format!("failed to install {names}: install it yourself and try again"))
}

fn missing_packages() -> Vec<&'static str> {
    // Whoever runs us has cargo and what cargo links with; Go may come from elsewhere than Debian.
    let go = (!has_go()).then_some("golang-go");
    // So may Node.js, whose other packages bring an npm that conflicts with Debian's.
    let npm = (!runs_version("npm")).then_some("npm");
    let tests = TEST_PACKAGES
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    go.into_iter()
        .chain(npm)
        .chain(tests.filter(|package| !is_installed(package)))
        .collect()
}

fn has_go() -> bool {
    runs_version("go") || Path::new("/usr/local/go/bin/go").is_file()
}

fn runs_version(program: &str) -> bool {
    Command::new(program).arg("version").output().is_ok()
}

fn is_installed(package: &str) -> bool {
    let query = Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status}", package])
        .output();
    query.is_ok_and(|output| output.stdout == b"installed")
}

/// As root, or else by a sudo that asks nothing.
fn apt_get(arguments: &[&str]) -> Result<()> {
    if !Path::new("/etc/debian_version").exists() {
        bail!("this is not Debian");
    }
    let is_root = source_tree::read_output(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        command.args(["--non-interactive", "apt-get"]);
    }
    source_tree::run_command(
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null()),
    )
}
