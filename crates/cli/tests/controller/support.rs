//! A control plane with Dogwatch's kinds and namespace, and controllers as processes.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use dogwatch_testbed::ControlPlane;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::recount::{RecountedPlane, new_decision_log};

/// Longer than any step takes on a slow machine.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// Two controllers that the audit log can tell apart.
pub const USERS: [&str; 2] = ["first", "second"];

/// A control plane with everything installed except the workloads, and without controllers.
pub async fn plane() -> RecountedPlane {
    installed(&[]).await
}

const WITHOUT: &[&str] = &["--without-policies"];

/// The same, with the output of `dogwatch manifests` for these flags.
pub async fn installed(flags: &[&str]) -> RecountedPlane {
    let mut builder = ControlPlane::builder().with_controllers([]);
    for user in USERS {
        builder = builder.with_user(user, user, &["system:masters"]);
    }
    let plane = builder.start().await.unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .args(["manifests", "--ignore-cluster"])
        .args(["--image=none", "--controller-image=none"])
        .args(if flags.is_empty() { WITHOUT } else { flags })
        .output()
        .unwrap();
    let manifests = String::from_utf8(output.stdout).unwrap();
    let apply = ["apply", "--server-side", "-f", "-"];
    plane.run_kubectl(&apply, &manifests).await.unwrap();
    let established = [
        "wait",
        "--for=condition=established",
        "--timeout=120s",
        "crd/rebootpolicies.dogwatch.dev",
    ];
    plane.run_kubectl(&established, "").await.unwrap();
    plane.wait_until_rights_are_in_force().await.unwrap();
    RecountedPlane(plane)
}

/// A running controller, or another program that logs in JSON. It is killed on drop.
pub struct Controller {
    child: Child,
    lines: watch::Receiver<Vec<Value>>,
}

impl Controller {
    /// A controller that leads, watches and writes, and serves nothing.
    pub fn start(kubeconfig: &Path) -> Self {
        Self::with(kubeconfig, &["--components=healer", "--listen=off"])
    }

    pub fn with(kubeconfig: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dogwatch"));
        command.arg("controller").args(flags);
        command.arg("--decision-log");
        command.arg(new_decision_log(kubeconfig));
        Self::spawn(command, kubeconfig)
    }

    pub fn spawn(mut command: Command, kubeconfig: &Path) -> Self {
        let mut child = command
            .arg("--log-format=json")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("KUBECONFIG", kubeconfig)
            // Many programs run on this host at once.
            .env("DOGWATCH_PROBE_LISTEN", "off")
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stderr = child.stderr.take().unwrap();
        let (sender, lines) = watch::channel(Vec::new());
        tokio::spawn(async move {
            let mut reader = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = reader.next_line().await {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                sender.send_modify(|lines| lines.push(value));
            }
        });
        Self { child, lines }
    }

    /// Runs as one of [`USERS`].
    pub fn as_user(plane: &ControlPlane, user: &str) -> Self {
        Self::start(&plane.kubeconfig_for(user).unwrap())
    }

    /// The value of this field in the log line with this message.
    pub async fn field(&self, message: &str, field: &str) -> String {
        self.until(message, 1).await;
        let lines = self.lines.borrow();
        let line = lines.iter().find(|line| line["message"] == message);
        line.unwrap()[field].as_str().unwrap().to_owned()
    }

    /// The log so far.
    pub fn log(&self) -> String {
        let lines = self.lines.borrow();
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        lines.join("\n")
    }

    /// The number of log lines with this message so far.
    pub fn said(&self, message: &str) -> usize {
        let said = |line: &&Value| line["message"] == message;
        self.lines.borrow().iter().filter(said).count()
    }

    /// Waits for this number of log lines with this message.
    pub async fn until(&self, message: &str, times: usize) {
        let mut lines = self.lines.clone();
        let said = |line: &&Value| line["message"] == message;
        let enough = |lines: &Vec<Value>| lines.iter().filter(said).count() >= times;
        let waited = tokio::time::timeout(PATIENCE, lines.wait_for(enough)).await;
        assert!(
            matches!(waited, Ok(Ok(_))),
            "{message:?} was not said {times} times: {:#?}",
            self.lines.borrow()
        );
    }

    /// Waits for a log line, past or future, that matches.
    pub async fn until_one(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut lines = self.lines.clone();
        let has_it = |lines: &Vec<Value>| lines.iter().any(&is_it);
        let waited = tokio::time::timeout(PATIENCE, lines.wait_for(has_it)).await;
        let lines = waited.expect("it is said in time");
        let lines = lines.expect("it runs");
        let line = lines.iter().find(|line| is_it(line));
        line.unwrap().clone()
    }

    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        rustix::process::kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    pub async fn ended(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.expect("it ends in time").unwrap()
    }
}

/// Repeats `ask` until it succeeds.
pub async fn eventually<T, F: Future<Output = Result<T, String>>>(mut ask: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(why) => assert!(tokio::time::Instant::now() < deadline, "{why}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub async fn get(plane: &ControlPlane, arguments: &[&str]) -> Value {
    let words: Vec<&str> = ["get"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let words: Vec<&str> = words.into_iter().chain(["-o", "json"]).collect();
    let text = plane.run_kubectl(&words, "").await.unwrap();
    serde_json::from_str(&text).unwrap()
}
