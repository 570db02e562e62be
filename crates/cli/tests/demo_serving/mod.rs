//! A demo that serves its API, for a test.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use dogwatch_testbed::{ControlPlaneBinaries, ControlPlaneProgram};

pub fn demo_command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dogwatch"));
    command.arg("demo").args(args);
    command
}

/// A serving demo, and its output up to a line.
pub struct ServingDemo {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    pub kubeconfig: String,
}

impl Drop for ServingDemo {
    fn drop(&mut self) {
        // SIGTERM makes it remove its folder. It may have ended already.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let _ = self.child.wait();
    }
}

impl ServingDemo {
    pub fn start_demo(args: &[&str]) -> Self {
        let mut child = demo_command(&["--serve"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut serving = Self {
            child,
            lines,
            kubeconfig: String::new(),
        };
        let line = serving.read_until("export KUBECONFIG=");
        line.split_once('=')
            .unwrap()
            .1
            .clone_into(&mut serving.kubeconfig);
        serving
    }

    /// Reads up to the first line that contains this text.
    pub fn read_until(&mut self, text: &str) -> String {
        let found = self
            .lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("the demo ended and never said {text:?}"))
    }

    /// kubectl's own cache, which goes with the demo.
    pub fn kubectl_cache(&self) -> PathBuf {
        Path::new(&self.kubeconfig).with_file_name("kubectl")
    }
}

pub fn kubectl_program() -> PathBuf {
    let binaries = ControlPlaneBinaries::find_or_build().unwrap();
    binaries
        .program_path(ControlPlaneProgram::Kubectl)
        .to_owned()
}
