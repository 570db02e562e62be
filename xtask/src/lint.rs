//! `cargo xtask lint`: every check runs, also after one that failed; the closing lines say which did.

use anyhow::{Result, ensure};

use crate::{deny, generate, house, tree};

/// A check with its name; what it returns is a word about the outcome.
type Check = (&'static str, fn() -> Result<String>);

const CHECKS: [Check; 6] = [
    ("format", format),
    ("clippy", clippy),
    ("dependencies", dependencies),
    ("advisories", deny::advisories),
    ("generated files", generated),
    ("house rules", house::check),
];

pub fn run() -> Result<()> {
    let mut lines = Vec::new();
    let mut failed = 0;
    for (name, check) in CHECKS {
        eprintln!("lint: {name}");
        let outcome = match check() {
            Ok(word) => word,
            Err(error) => {
                failed += 1;
                format!("FAILED: {error:#}")
            }
        };
        lines.push(format!("{name:16} {outcome}"));
    }
    println!("\n{}", lines.join("\n"));
    ensure!(failed == 0, "{failed} of {} checks failed", CHECKS.len());
    Ok(())
}

fn format() -> Result<String> {
    tree::run(tree::cargo().args(["fmt", "--all", "--check"]))?;
    Ok("ok".to_owned())
}

fn clippy() -> Result<String> {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "--deny",
        "warnings",
    ];
    tree::run(tree::cargo().args(arguments))?;
    Ok("ok".to_owned())
}

fn dependencies() -> Result<String> {
    deny::check()?;
    Ok("ok".to_owned())
}

fn generated() -> Result<String> {
    generate::check()?;
    Ok("ok".to_owned())
}
