//! `cargo xtask test`: everything that is needed, then every test, then one line that says how it ended.

use std::{
    io::{BufRead, BufReader},
    ops::AddAssign,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{needs, tree};

#[derive(clap::Args)]
pub struct Arguments {
    /// Handed to `cargo test` in place of `--workspace`, as in `cargo xtask test -p dogwatch-core`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo_test: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    needs::prepare(&arguments.cargo_test)?;
    let mut command = tree::cargo();
    command.args(["test", "--no-fail-fast"]);
    if arguments.cargo_test.is_empty() {
        command.arg("--workspace");
    }
    command.args(&arguments.cargo_test);
    run_and_count(&mut command)
}

fn run_and_count(command: &mut Command) -> Result<()> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start cargo test")?;
    let stdout = child.stdout.take().expect("asked for above");
    let mut total = Count::default();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("failed to read what cargo test prints")?;
        println!("{line}");
        total += Count::of(&line);
    }
    let status = child.wait().context("failed to wait for cargo test")?;
    println!(
        "\n{} passed, {} failed, {} ignored",
        total.passed, total.failed, total.ignored
    );
    // Tests that do not compile, or a test program that dies, are in no count.
    if !status.success() {
        bail!("cargo test ended with {status}");
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Count {
    /// What a line `test result: ok. 7 passed; 0 failed; 1 ignored; …` says; any other line counts nothing.
    fn of(line: &str) -> Self {
        let mut count = Self::default();
        let Some((_, figures)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return count;
        };
        for figure in figures.split("; ") {
            match figure.split_once(' ') {
                Some((number, "passed")) => count.passed = number.parse().unwrap_or(0),
                Some((number, "failed")) => count.failed = number.parse().unwrap_or(0),
                Some((number, "ignored")) => count.ignored = number.parse().unwrap_or(0),
                Some(_) | None => {}
            }
        }
        count
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_adds_up_what_every_test_program_said() {
        let mut total = Count::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.01s",
            "test result: FAILED. 6 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 20.10s",
        ] {
            total += Count::of(line);
        }
        assert_eq!(
            total,
            Count {
                passed: 9,
                failed: 1,
                ignored: 2
            }
        );
    }
}
