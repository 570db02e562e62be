//! The test programs of the workspace: built by cargo, and run several at once. Most of them wait for real servers most of their
//! time, so that one after the other takes almost twice as long.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Outcome, run_and_count};
use crate::tree;

/// One test program.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// `crate/program`, as in `sim/chaos`.
    name: String,
    executable: PathBuf,
    /// The folder of its crate, where cargo would run it.
    folder: PathBuf,
}

/// A line of what cargo prints about each thing that it built.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds all of them; those that take longest come first.
pub fn build() -> Result<Vec<Program>> {
    let mut command = tree::cargo();
    command.args(["test", "--workspace", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start cargo test --no-run")?;
    let stdout = child.stdout.take().expect("asked for above");
    let mut programs = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("failed to read what cargo test --no-run prints")?;
        programs.extend(Program::of(&line));
    }
    let status = child.wait().context("failed to wait for cargo test")?;
    if !status.success() {
        bail!("the tests do not compile: cargo test --no-run ended with {status}");
    }
    // The same order each time: against the real API server first, which takes longest.
    programs.sort_by_key(|program| (!program.is_on_real_servers(), program.name.clone()));
    Ok(programs)
}

/// Runs them, and prints what each one printed when it has ended.
pub fn run_all(programs: Vec<Program>) -> Result<Outcome> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let queue = Mutex::new(VecDeque::from(programs));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| work(&queue))).collect();
        let mut total = Outcome::default();
        for worker in workers {
            total += worker.join().expect("a worker does not panic")?;
        }
        Ok(total)
    })
}

fn work(queue: &Mutex<VecDeque<Program>>) -> Result<Outcome> {
    let mut total = Outcome::default();
    let next = || {
        queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    while let Some(program) = next() {
        total += program.run()?;
    }
    Ok(total)
}

impl Program {
    fn of(line: &str) -> Option<Self> {
        let artifact: Artifact = serde_json::from_str(line).ok()?;
        let folder = artifact.manifest_path.parent()?.to_owned();
        let executable = artifact.executable.filter(|_| artifact.profile.test)?;
        let name = format!("{}/{}", file_name(&folder), artifact.target.name);
        Some(Self {
            name,
            executable,
            folder,
        })
    }

    fn is_on_real_servers(&self) -> bool {
        self.name.contains("real") || self.name.ends_with("/controller")
    }

    fn run(&self) -> Result<Outcome> {
        let begun = Instant::now();
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .stdin(Stdio::null());
        let printed = RefCell::new(String::new());
        let outcome = run_and_count(&mut command, &self.name, &|line| {
            printed.borrow_mut().push_str(line);
            printed.borrow_mut().push('\n');
        })?;
        let printed = printed.into_inner();
        println!("{} ({} s){printed}", self.name, begun.elapsed().as_secs());
        Ok(outcome)
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
        let line = |is_test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/sim/Cargo.toml",
                "target":{{"name":"chaos"}},"profile":{{"test":{is_test}}},"executable":{executable}}}"#
            )
        };
        let program = Program::of(&line(true, "\"/t/chaos-1\"")).expect("a test program");
        assert_eq!(program.name, "sim/chaos");
        assert_eq!(program.folder, Path::new("/w/crates/sim"));
        assert!(!program.is_on_real_servers());
        assert_eq!(Program::of(&line(false, "\"/t/dogwatch\"")), None);
        assert_eq!(Program::of(&line(true, "null")), None);
        assert_eq!(
            Program::of(r#"{"reason":"build-finished","success":true}"#),
            None
        );
    }
}
