//! The test programs of the workspace: built by cargo, and run several at once. Most of them wait for real servers most of their
//! time, so that one after the other takes almost twice as long.

use std::{
    cell::RefCell,
    collections::VecDeque,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Result, bail};
use serde::Deserialize;

use super::{
    TestOutcome,
    retry::{FailedProgram, parse_failed_test, retry_alone},
    run_and_count,
};
use crate::source_tree;

/// One test program.
#[derive(Debug, PartialEq, Eq)]
pub struct TestProgram {
    /// `crate/program`, as in `sim/chaos`.
    name: String,
    executable: PathBuf,
    /// The folder of its crate, where cargo would run it.
    folder: PathBuf,
}

/// A line of what cargo prints about each thing that it built.
#[derive(Deserialize)]
struct CargoArtifact {
    manifest_path: PathBuf,
    target: CargoTarget,
    profile: CargoProfile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
}

#[derive(Deserialize)]
struct CargoProfile {
    test: bool,
}

/// What cargo built for the tests.
#[derive(Default)]
pub struct BuiltPrograms {
    /// Those that take longest come first.
    pub tests: Vec<TestProgram>,
    /// The test bed's own program.
    pub testbed: Option<PathBuf>,
}

pub fn build_programs() -> Result<BuiltPrograms> {
    let mut command = source_tree::test_cargo_command();
    command.args(["test", "--workspace", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics");
    let programs = RefCell::new(BuiltPrograms::default());
    let built = run_and_count(&mut command, "cargo test --no-run", &|line| {
        programs.borrow_mut().add_artifact_line(line);
    })?;
    if !built.failures.is_empty() {
        bail!("the tests do not compile: {}", built.failures.join(", "));
    }
    let mut programs = programs.into_inner();
    programs
        .tests
        .retain(|program| !RUN_BY_FLAG.contains(&program.name.as_str()));
    // The same order each time: against the real API server first, which takes longest.
    programs
        .tests
        .sort_by_key(|program| (program.queue_rank(), program.name.clone()));
    Ok(programs)
}

/// What takes too long for each change: `cargo xtask test --packaging` and `--real-node` run it.
const RUN_BY_FLAG: [&str; 3] = [
    "packaging/image",
    "packaging/packages",
    "packaging/real_node",
];

/// Runs them, and prints what each one printed when it has ended. A few tests that fail run once more, alone.
pub fn run_all(programs: Vec<TestProgram>) -> Result<TestOutcome> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    // With one program for each of two processors, these were idle for two fifths of the time.
    let workers = processors + processors.div_ceil(2);
    let queue = Mutex::new(VecDeque::from(programs));
    let mut total = TestOutcome::default();
    let mut failed = Vec::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| run_queue(&queue)))
            .collect();
        for worker in workers {
            let (outcome, failures) = worker.join().expect("a worker does not panic")?;
            total += outcome;
            failed.extend(failures);
        }
        anyhow::Ok(())
    })?;
    retry_alone(failed, &mut total)?;
    Ok(total)
}

/// The failures that it returns are not in its outcome.
fn run_queue(queue: &Mutex<VecDeque<TestProgram>>) -> Result<(TestOutcome, Vec<FailedProgram>)> {
    let mut total = TestOutcome::default();
    let mut failed = Vec::new();
    let next = || {
        queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    while let Some(program) = next() {
        let (mut outcome, tests) = program.run_program(&[])?;
        if let Some(ending) = outcome.failures.pop() {
            failed.push(FailedProgram {
                program,
                tests,
                ending,
            });
        }
        total += outcome;
    }
    Ok((total, failed))
}

impl BuiltPrograms {
    fn add_artifact_line(&mut self, line: &str) {
        let Ok(artifact) = serde_json::from_str::<CargoArtifact>(line) else {
            return;
        };
        if artifact.target.name == "testbed" && !artifact.profile.test {
            self.testbed = artifact.executable;
        } else {
            self.tests.extend(TestProgram::from_artifact(artifact));
        }
    }
}

impl TestProgram {
    fn from_artifact(artifact: CargoArtifact) -> Option<Self> {
        let folder = artifact.manifest_path.parent()?.to_owned();
        let executable = artifact.executable.filter(|_| artifact.profile.test)?;
        let name = format!("{}/{}", file_name(&folder), artifact.target.name);
        Some(Self {
            name,
            executable,
            folder,
        })
    }

    /// All scenarios are one program, which takes longest; it begins first.
    fn queue_rank(&self) -> u8 {
        match (self.name == "sim/embedded", self.is_on_real_servers()) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }
    }

    fn is_on_real_servers(&self) -> bool {
        self.name.contains("real") || self.name.ends_with("/controller")
    }

    /// `crate/program`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs these tests one after the other.
    pub fn run_tests(&self, tests: &[String]) -> Result<TestOutcome> {
        let mut arguments = vec!["--exact".to_owned(), "--test-threads=1".to_owned()];
        arguments.extend_from_slice(tests);
        Ok(self.run_program(&arguments)?.0)
    }

    /// Returns also the names of the tests that failed.
    fn run_program(&self, arguments: &[String]) -> Result<(TestOutcome, Vec<String>)> {
        let begun = Instant::now();
        let mut command = Command::new(&self.executable);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            // The models of core run in full here, and 16 times shorter when one crate is tested.
            .env("DOGWATCH_MODEL_DEPTH", "full")
            .stdin(Stdio::null());
        let printed = RefCell::new(String::new());
        let failed = RefCell::new(Vec::new());
        let outcome = run_and_count(&mut command, &self.name, &|line| {
            printed.borrow_mut().push_str(line);
            printed.borrow_mut().push('\n');
            let name = parse_failed_test(line).map(str::to_owned);
            failed.borrow_mut().extend(name);
        })?;
        let printed = printed.into_inner();
        println!("{} ({} s){printed}", self.name, begun.elapsed().as_secs());
        Ok((outcome, failed.into_inner()))
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_is_told_from_what_else_cargo_builds() {
        let line = |name: &str, is_test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/sim/Cargo.toml",
                "target":{{"name":"{name}"}},"profile":{{"test":{is_test}}},"executable":{executable}}}"#
            )
        };
        let mut built = BuiltPrograms::default();
        built.add_artifact_line(&line("chaos", true, "\"/t/chaos-1\""));
        built.add_artifact_line(&line("dogwatch", false, "\"/t/dogwatch\""));
        built.add_artifact_line(&line("chaos", true, "null"));
        built.add_artifact_line(&line("testbed", false, "\"/t/testbed\""));
        built.add_artifact_line(r#"{"reason":"build-finished","success":true}"#);
        assert_eq!(built.testbed.as_deref(), Some(Path::new("/t/testbed")));
        let [program] = &built.tests[..] else {
            panic!("{:?}", built.tests);
        };
        assert_eq!(program.name, "sim/chaos");
        assert_eq!(program.folder, Path::new("/w/crates/sim"));
        assert!(!program.is_on_real_servers());
    }
}
