//! Debian packages, installed only where something that is needed is missing.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::tree;

/// A program that the tools themselves need, and the packages that have it. `cc` links every Rust program and compiles
/// the C in `ring`.
const TOOLS: [(&str, &[&str]); 3] = [
    ("cc", &["gcc", "libc6-dev"]),
    ("git", &["git"]),
    ("go", &["golang-go"]),
];

/// Packages that the tests need, one a line.
const TESTS: &str = include_str!("../../testbed/debian-packages.txt");

/// Installs what is missing, with a word about it.
pub fn install_missing() -> Result<()> {
    let missing = missing();
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

fn missing() -> Vec<&'static str> {
    let tools = TOOLS.iter().filter(|(program, _)| !is_on_path(program));
    let tools = tools.flat_map(|(_, packages)| packages.iter().copied());
    let tests = TESTS
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    tools
        .chain(tests.filter(|package| !is_installed(package)))
        .collect()
}

/// A tool may well come from elsewhere than Debian.
fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
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
        bail!("this is no Debian");
    }
    let is_root = tree::read(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        command.args(["--non-interactive", "apt-get"]);
    }
    tree::run(
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null()),
    )
}
