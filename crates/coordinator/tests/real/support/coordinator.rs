//! Runs `dogwatch-coordinator` as a process, and reads its log.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::PATIENCE;

/// All log lines of the coordinators of one machine.
#[derive(Clone)]
pub struct Log(Arc<watch::Sender<Vec<String>>>);

impl Log {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    fn add(&self, line: String) {
        self.0.send_modify(|lines| lines.push(line));
    }

    /// Waits for a line that contains all of these words.
    pub async fn until(&self, words: &[&str]) -> String {
        self.until_after(0, words).await
    }

    /// Like [`Self::until`], but skips the first `skip` lines.
    pub async fn until_after(&self, skip: usize, words: &[&str]) -> String {
        let mut lines = self.0.subscribe();
        let has = |line: &&String| words.iter().all(|word| line.contains(word));
        let wait = lines.wait_for(|lines| lines.iter().skip(skip).any(|line| has(&line)));
        let Ok(lines) = tokio::time::timeout(PATIENCE, wait).await else {
            panic!(
                "no line with {words:?} within {PATIENCE:?}:\n{}",
                self.text()
            );
        };
        let lines = lines.expect("the sender lives as long as self");
        lines
            .iter()
            .skip(skip)
            .find(has)
            .expect("waited for")
            .clone()
    }

    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    pub fn text(&self) -> String {
        self.0.borrow().join("\n")
    }
}

/// A running coordinator. It is killed when dropped.
pub struct Coordinator {
    child: Child,
}

impl Coordinator {
    /// Starts a coordinator that logs to `log`.
    pub fn start(kubeconfig: &Path, arguments: &[String], uid: Option<u32>, log: &Log) -> Self {
        let mut command = command(kubeconfig);
        if let Some(uid) = uid {
            command.uid(uid).gid(uid);
        }
        let mut child = command
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("cargo has built it");
        let stderr = child.stderr.take().expect("asked for above");
        let log = log.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                log.add(line);
            }
        });
        Self { child }
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("it was not waited for yet")
    }

    /// `kill -9`; returns when the process is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("a child can be killed");
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.id()).expect("a process id")).expect("not 0");
        rustix::process::kill_process(pid, signal).expect("a child can be signalled");
    }

    /// Sends SIGTERM, and waits for the end.
    pub async fn terminate(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended().await
    }

    pub fn runs(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("a child can be waited for")
            .is_none()
    }

    pub async fn ended(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended
            .expect("it ends in time")
            .expect("a child can be waited for")
    }
}

/// The program with a minimal environment.
pub fn command(kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dogwatch-coordinator"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KUBECONFIG", kubeconfig)
        // Many coordinators run on this host at the same time.
        .env("DOGWATCH_PROBE_LISTEN", "off")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}
