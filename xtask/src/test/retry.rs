//! Tests that failed beside others run once more, alone: on a busy machine a deadline of a test may pass although nothing is
//! wrong. What fails again has failed; what passes is named at the end. A test of random inputs that keeps its failing input
//! (proptest) gets that input again.

use anyhow::Result;

use super::{TestOutcome, programs::TestProgram};

/// More failures than this have another cause than a busy machine.
const MAX_RETRIED_TESTS: usize = 3;

/// A test program that did not end well.
pub struct FailedProgram {
    pub program: TestProgram,
    /// Its failed tests, by name; empty if the program died.
    pub tests: Vec<String>,
    /// How it ended, as in `sim/chaos (exit status: 101)`.
    pub ending: String,
}

/// Runs the failed tests of these programs again and corrects `outcome`.
pub fn retry_alone(failed: Vec<FailedProgram>, outcome: &mut TestOutcome) -> Result<()> {
    let count: usize = failed.iter().map(|failed| failed.tests.len()).sum();
    let is_dead = failed.iter().any(|failed| failed.tests.is_empty());
    for failed in failed {
        if is_dead || count > MAX_RETRIED_TESTS || !passes_alone(&failed)? {
            outcome.failures.push(failed.ending);
            continue;
        }
        outcome.count.turn_into_passed(failed.tests.len());
        let name = failed.program.name();
        let tests = failed.tests.iter().map(|test| format!("{name} {test}"));
        outcome.passed_alone.extend(tests);
    }
    Ok(())
}

fn passes_alone(failed: &FailedProgram) -> Result<bool> {
    println!(
        "\nonce more, alone: {} {}",
        failed.program.name(),
        failed.tests.join(" ")
    );
    let again = failed.program.run_tests(&failed.tests)?;
    Ok(again.failures.is_empty())
}

/// The name in a line such as `test lock::tests::waits ... FAILED`.
pub fn parse_failed_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_told_from_others() {
        for (line, name) in [
            ("test a::b ... FAILED", Some("a::b")),
            ("test a::c - should panic ... FAILED", Some("a::c")),
            ("test a::d ... ok", None),
            ("test result: FAILED. 6 passed; 1 failed; 0 ignored", None),
        ] {
            assert_eq!(parse_failed_test(line), name, "{line}");
        }
    }
}
