//! Runs the commands of the keys: this program itself, with the words that were shown.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;
use tokio::task::JoinSet;

/// More than any explanation; a command that prints more is cut off.
const MAX_OUTPUT_LINES: usize = 10_000;

pub struct TopCommandRunner {
    environment: Vec<(&'static str, PathBuf)>,
    running: JoinSet<(String, Vec<String>)>,
}

impl TopCommandRunner {
    pub fn new(environment: Vec<(&'static str, PathBuf)>) -> Self {
        Self {
            environment,
            running: JoinSet::new(),
        }
    }

    pub fn start_command(&mut self, title: String, words: Vec<String>) {
        let environment = self.environment.clone();
        self.running.spawn(async move {
            let lines = run_command(&words, environment).await;
            (title, lines)
        });
    }

    /// The title and the output of the next command that ends; `None` if none runs.
    pub async fn next_output(&mut self) -> Option<(String, Vec<String>)> {
        self.running.join_next().await?.ok()
    }
}

/// What the command prints for people, and its exit code unless that is 0.
async fn run_command(words: &[String], environment: Vec<(&'static str, PathBuf)>) -> Vec<String> {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return vec![format!("this program cannot be found again: {error}")],
    };
    let output = Command::new(program)
        .args(words)
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .await;
    let output = match output {
        Ok(output) => output,
        Err(error) => return vec![format!("the command cannot be started: {error}")],
    };
    let mut lines: Vec<String> = [&output.stdout, &output.stderr]
        .iter()
        .flat_map(|text| text_lines(text))
        .take(MAX_OUTPUT_LINES)
        .collect();
    match output.status.code() {
        Some(0) if lines.is_empty() => lines.push("done".into()),
        Some(0) => {}
        Some(code) => lines.extend([String::new(), format!("exit code {code}")]),
        None => lines.extend([String::new(), "ended by a signal".into()]),
    }
    lines
}

fn text_lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().map(str::to_owned).collect()
}
