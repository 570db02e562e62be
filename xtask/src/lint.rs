//! `cargo xtask lint`: every check runs, also after one that failed; the closing lines say which did.

use anyhow::{Result, ensure};

use crate::{cargo_deny, figures, generate, house_rules, source_tree};

/// A check with its name; what it returns is a word about the outcome.
type LintCheck = (&'static str, fn() -> Result<String>);

const LINT_CHECKS: [LintCheck; 9] = [
    ("format", check_format),
    ("clippy", check_clippy),
    ("demo", check_demo),
    ("model check", check_proof),
    ("dependencies", check_dependencies),
    ("advisories", cargo_deny::check_advisories),
    ("generated files", check_generated_files),
    ("house rules", house_rules::check_house_rules),
    ("ratchet", check_figures),
];

#[derive(clap::Args)]
pub struct LintArguments {
    /// Print the figures of the tree, and check nothing
    #[arg(long)]
    figures: bool,
    /// Write the figures that fell into the ratchet, and check nothing else
    #[arg(long)]
    lower_ratchet: bool,
}

pub fn run(arguments: &LintArguments) -> Result<()> {
    if arguments.lower_ratchet {
        figures::check_ratchet(&figures::measure_tree()?, true)?;
        return Ok(());
    }
    if arguments.figures {
        for figures::Figure { name, value } in figures::measure_tree()? {
            println!("{name:36} {value:>8}");
        }
        return Ok(());
    }
    run_checks()
}

fn run_checks() -> Result<()> {
    let mut lines = Vec::new();
    let mut failed = 0;
    for (name, check) in LINT_CHECKS {
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
    ensure!(
        failed == 0,
        "{failed} of {} checks failed",
        LINT_CHECKS.len()
    );
    Ok(())
}

fn check_format() -> Result<String> {
    source_tree::run_command(source_tree::cargo_command().args(["fmt", "--all", "--check"]))?;
    Ok("ok".to_owned())
}

fn check_clippy() -> Result<String> {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "--deny",
        "warnings",
    ];
    source_tree::run_command(source_tree::test_cargo_command().args(arguments))?;
    Ok("ok".to_owned())
}

/// `cargo demo` is built without HTTPS to BMCs, as nothing else is.
fn check_demo() -> Result<String> {
    let arguments = [
        "check",
        "--quiet",
        "--package",
        "dogwatch-cli",
        "--no-default-features",
    ];
    source_tree::run_command(source_tree::cargo_command().args(arguments))?;
    Ok("ok".to_owned())
}

/// `proof/` is a workspace of its own, so no other check compiles it. It is searched by
/// `cargo xtask prove --model`.
fn check_proof() -> Result<String> {
    let arguments = ["check", "--quiet", "--manifest-path", "proof/Cargo.toml"];
    source_tree::run_command(source_tree::cargo_command().args(arguments))?;
    Ok("ok".to_owned())
}

fn check_dependencies() -> Result<String> {
    cargo_deny::check_dependencies()?;
    Ok("ok".to_owned())
}

fn check_generated_files() -> Result<String> {
    generate::check_up_to_date()?;
    Ok("ok".to_owned())
}

fn check_figures() -> Result<String> {
    figures::check_ratchet(&figures::measure_tree()?, false)
}
