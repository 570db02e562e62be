//! What the bench programs share: their settings, the programs that they measure, and how they
//! print a figure.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The number in this environment variable.
///
/// # Panics
///
/// If it is no number.
pub fn number_of(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// Prints one line for `cargo xtask bench`.
pub fn print_figure(what: &str, measured: &str, reach: &str, kept: bool) {
    let line = json!({ "what": what, "measured": measured, "reach": reach, "kept": kept });
    println!("{line}");
}

/// The program that the environment variable names, or one that is built as users get it, but
/// without the steps that take long and only reduce its size.
pub fn find_or_build_program(variable: &str, package: &str, name: &str) -> PathBuf {
    let given = std::env::var_os(variable).map(PathBuf::from);
    given.unwrap_or_else(|| build_program("quick", package, name))
}

/// Builds a program. The one that cargo builds beside a bench would differ: the tests' dependencies
/// enable features of shared dependencies.
///
/// # Panics
///
/// If it cannot be built.
pub fn build_program(profile: &str, package: &str, name: &str) -> PathBuf {
    let cargo = Command::new(env!("CARGO"))
        .args(["build", "--profile", profile])
        .args(["--package", package, "--bin", name])
        .args(["--quiet", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(cargo.status.success(), "cargo ended with {}", cargo.status);
    let messages = String::from_utf8(cargo.stdout).expect("cargo writes UTF-8");
    let built = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    built.expect("cargo names what it has built")
}
