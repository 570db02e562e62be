//! `cargo xtask test`: everything that is needed, then every test, then one line that says how it ended.

use std::{
    io::{BufRead, BufReader},
    ops::AddAssign,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{packaging, real_node, source_tree, test_needs::TestNeeds};

mod programs;
mod retry;

#[derive(clap::Args)]
pub struct TestArguments {
    /// Instead of the tests: compile both programs for release, pack them, run the tests of images and packages with them, and
    /// make the book; some 20 minutes
    #[arg(long, exclusive = true)]
    packaging: bool,
    /// Instead of the tests: reboot, power-cycle and remediate a real node, which is a virtual machine with a kubelet that runs the
    /// coordinator's image; some 10 minutes, and 10 more the first time
    #[arg(long, exclusive = true)]
    real_node: bool,
    /// Handed to `cargo test` in place of `--workspace`, as in `cargo xtask test -p dogwatch-core`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo_test: Vec<String>,
}

pub fn run(arguments: &TestArguments) -> Result<()> {
    if arguments.packaging {
        return packaging::run_packaging_tests();
    }
    if arguments.real_node {
        return real_node::run_real_node_tests();
    }
    let needs = TestNeeds::of_arguments(&arguments.cargo_test)?;
    needs.install_packages()?;
    let outcome = if arguments.cargo_test.is_empty() {
        run_workspace(&needs)?
    } else {
        needs.prepare_parts(None)?;
        let mut command = source_tree::test_cargo_command();
        command.args(["test", "--no-fail-fast"]);
        command.args(&arguments.cargo_test);
        run_and_count(&mut command, "cargo test", &|line| println!("{line}"))?
    };
    let TestCount {
        passed,
        failed,
        ignored,
    } = outcome.count;
    for test in &outcome.passed_alone {
        println!("\nfailed beside other tests, and passed alone: {test}");
    }
    println!("\n{passed} passed, {failed} failed, {ignored} ignored");
    // Tests that do not compile, or a test program that dies, are in no count.
    if !outcome.failures.is_empty() {
        bail!("failed: {}", outcome.failures.join(", "));
    }
    Ok(())
}

/// Every test program of the workspace, several at once, and then the examples in the docs.
fn run_workspace(needs: &TestNeeds) -> Result<TestOutcome> {
    let built = programs::build_programs()?;
    needs.prepare_parts(built.testbed.as_deref())?;
    let mut outcome = programs::run_all(built.tests)?;
    let mut doc_tests = source_tree::test_cargo_command();
    doc_tests.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    outcome += run_and_count(&mut doc_tests, "doc tests", &|line| println!("{line}"))?;
    Ok(outcome)
}

/// What test programs reported.
#[derive(Debug, Default)]
struct TestOutcome {
    count: TestCount,
    /// The programs that did not end well.
    failures: Vec<String>,
    /// Tests that failed beside others and passed alone, as in `sim/chaos NAME`.
    passed_alone: Vec<String>,
}

impl AddAssign for TestOutcome {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.failures.extend(other.failures);
        self.passed_alone.extend(other.passed_alone);
    }
}

/// Hands each line of its standard output on, and counts what it says of tests.
fn run_and_count(command: &mut Command, name: &str, on_line: &dyn Fn(&str)) -> Result<TestOutcome> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to start {name}"))?;
    let stdout = child.stdout.take().expect("asked for above");
    let mut outcome = TestOutcome::default();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.with_context(|| format!("failed to read what {name} prints"))?;
        let line = String::from_utf8_lossy(&line);
        on_line(&line);
        outcome.count += TestCount::parse_result_line(&line);
    }
    let status = child
        .wait()
        .with_context(|| format!("failed to wait for {name}"))?;
    if !status.success() {
        outcome.failures.push(format!("{name} ({status})"));
    }
    Ok(outcome)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TestCount {
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl TestCount {
    /// What a line `test result: ok. 7 passed; 0 failed; 1 ignored; …` says; any other line counts nothing.
    fn parse_result_line(line: &str) -> Self {
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

    fn turn_into_passed(&mut self, tests: usize) {
        let tests = u32::try_from(tests).unwrap_or(u32::MAX).min(self.failed);
        self.failed -= tests;
        self.passed += tests;
    }
}

impl AddAssign for TestCount {
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
        let mut total = TestCount::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.01s",
            "test result: FAILED. 6 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 20.10s",
        ] {
            total += TestCount::parse_result_line(line);
        }
        assert_eq!(
            total,
            TestCount {
                passed: 9,
                failed: 1,
                ignored: 2
            }
        );
    }
}
