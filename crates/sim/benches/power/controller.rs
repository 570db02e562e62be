//! `dogwatch controller --components power`, or `power,remediation`, as a process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use dogwatch_testbed::bench::find_or_build_program;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;

use super::effort::ran_and_waited;
use super::stage::{PATIENCE, Stage};

/// Linux counts processor time so.
const TICKS_EACH_SECOND: f64 = 100.0;
/// How often what only its metrics tell is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Dropped, it is killed.
pub struct Controller {
    child: Child,
    said: watch::Receiver<Said>,
}

/// What it has said so far.
#[derive(Default)]
struct Said {
    leads: bool,
    is_in_sync: bool,
    metrics: Option<String>,
    /// How many of its lines were warnings, or worse.
    warnings: usize,
}

pub fn find_program() -> PathBuf {
    find_or_build_program("DOGWATCH", "dogwatch-cli", "dogwatch")
}

impl Controller {
    /// Starts one; it sees all hosts when this returns.
    pub async fn start(stage: &Stage) -> Self {
        Self::of(stage, &["--components=power"]).await
    }

    /// One that remediates as well, more at once than it would by itself.
    pub async fn remediating(stage: &Stage) -> Self {
        let flags = ["--components=power,remediation", "--max-fenced=60"];
        Self::of(stage, &flags).await
    }

    async fn of(stage: &Stage, flags: &[&str]) -> Self {
        let mut child = Command::new(&stage.program)
            .env_clear()
            .env("KUBECONFIG", stage.plane.admin_kubeconfig())
            .env("DOGWATCH_PROBE_LISTEN", "off")
            // As the manifests have it.
            .env("MALLOC_ARENA_MAX", "1")
            .args(["controller", "--log-format=json", "--listen=127.0.0.1:0"])
            .args(flags)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it was built");
        let log = child.stderr.take().expect("asked for above");
        let (sender, said) = watch::channel(Said::default());
        tokio::spawn(listen(log, sender));
        let controller = Self { child, said };
        controller
            .until(|said| said.is_in_sync && said.metrics.is_some())
            .await;
        controller
    }

    pub async fn until_it_leads(&self) {
        self.until(|said| said.leads).await;
    }

    async fn until(&self, is_so: impl FnMut(&Said) -> bool) {
        let mut said = self.said.clone();
        let waited = tokio::time::timeout(PATIENCE, said.wait_for(is_so)).await;
        assert!(matches!(waited, Ok(Ok(_))), "it never came so far");
    }

    /// Until so many hosts were read and are on.
    pub async fn until_on(&self, hosts: usize) {
        let look = async {
            while self.count("dogwatch_power_hosts{state=\"On\"}").await < hosts as f64 {
                tokio::time::sleep(LOOK).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, look).await;
        assert!(waited.is_ok(), "{}", self.metrics().await);
    }

    /// The value of one line of its metrics; 0 where there is none.
    pub async fn count(&self, series: &str) -> f64 {
        let page = self.metrics().await;
        let value = page.lines().find_map(|line| line.strip_prefix(series));
        value.map_or(0.0, |value| value.trim().parse().expect("a number"))
    }

    pub async fn metrics(&self) -> String {
        let address = self.said.borrow().metrics.clone().expect("it has said it");
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request = "GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n";
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("UTF-8");
        answer
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.start_kill().expect("it runs");
    }

    pub fn warnings(&self) -> usize {
        self.said.borrow().warnings
    }

    /// A line of the process' status, in MiB.
    pub fn resident(&self, field: &str) -> f64 {
        kibibytes(&self.file("status"), field) / 1024.0
    }

    /// The processor's seconds that it took so far.
    pub fn processor(&self) -> f64 {
        let stat = self.file("stat");
        let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
        let ticks = fields.split(' ').skip(11).take(2);
        let ticks: f64 = ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum();
        ticks / TICKS_EACH_SECOND
    }

    /// Since it began: the seconds that it ran, and those that it waited for a processor.
    pub fn ran_and_waited(&self) -> (f64, f64) {
        let id = self.child.id().expect("it runs");
        ran_and_waited(Path::new(&format!("/proc/{id}")))
    }

    fn file(&self, name: &str) -> String {
        let id = self.child.id().expect("it runs");
        std::fs::read_to_string(format!("/proc/{id}/{name}")).unwrap()
    }
}

/// A line of a process' `status`.
pub fn kibibytes(status: &str, field: &str) -> f64 {
    let value = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = value.unwrap().split_whitespace().next().unwrap();
    kibibytes.parse().unwrap()
}

async fn listen(log: ChildStderr, said: watch::Sender<Said>) {
    let mut lines = BufReader::new(log).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(line) = serde_json::from_str::<Value>(&line) else {
            eprintln!("{line}");
            continue;
        };
        let is_warning = line["level"] == "WARN" || line["level"] == "ERROR";
        let message = line["message"].as_str().unwrap_or_default();
        said.send_modify(|said| match message {
            "became the leader" => said.leads = true,
            "all hosts have been read" => said.is_in_sync = true,
            _ if message.starts_with("serves /metrics") => {
                said.metrics = line["address"].as_str().map(str::to_owned);
            }
            _ => said.warnings += usize::from(is_warning),
        });
    }
}
