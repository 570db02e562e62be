//! A real Prometheus on loopback: its rules, its query engine and its HTTP API, served under a path
//! as behind a proxy. It scrapes the targets that it is given. Built from the Go module
//! `prometheus` into the project's cache, like the control plane.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::{
    Error, control_plane::kill_and_reap, go_program::GoProgramRecipe, identity, ports,
    process_group::GuardedProcessGroup, readiness::tail_log,
};

const GO_MOD: &str = include_str!("../prometheus/go.mod");
const GO_MODULE_SOURCES: [&str; 3] = [
    GO_MOD,
    include_str!("../prometheus/go.sum"),
    include_str!("../prometheus/cmd/prometheus/main.go"),
];
const URL_PATH: &str = "/prometheus";
const PROGRAM_NAME: &str = "prometheus";
/// Measured: 0.2 s alone on 2 cores. The rest is for a machine that compiles beside it.
const READY_WITHIN: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Another program can take a free port before Prometheus listens on it; then another is tried.
const START_ATTEMPTS: usize = 3;

/// An alert that is active as long as its rule exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestAlert<'a> {
    Firing(&'a str),
    /// Pending for an hour.
    Pending(&'a str),
}

/// What a Prometheus does, and how it is reached.
struct PrometheusSetup<'a> {
    scheme: &'static str,
    rules: &'a [Value],
    targets: &'a BTreeMap<String, String>,
}

/// A running Prometheus. Dropping it removes its process and files.
#[derive(Debug)]
pub struct TestPrometheus {
    // Drop order: the process, then its guard, then the folder.
    process: PrometheusProcess,
    _process_group: GuardedProcessGroup,
    folder: TempDir,
    address: String,
}

#[derive(Debug)]
struct PrometheusProcess(Child);

impl Drop for PrometheusProcess {
    fn drop(&mut self) {
        kill_and_reap(&mut self.0);
    }
}

/// The path of the program; builds it first if it is missing, which takes a minute or two. Blocks.
pub fn find_or_build() -> Result<PathBuf, Error> {
    let recipe = GoProgramRecipe {
        name: PROGRAM_NAME,
        module: concat!(env!("CARGO_MANIFEST_DIR"), "/prometheus"),
        folder: format!("prometheus-{}", prometheus_version()),
        go_mod_file: "go.mod",
        sources: GO_MODULE_SOURCES.to_vec(),
        usual_build_time: "about 1 minute",
        linker_flags: "-s -w".to_owned(),
    };
    recipe.find_or_build()
}

/// The version that the Go module builds, as Go counts it: `v0.309.1` is Prometheus 3.9.1.
pub fn prometheus_version() -> &'static str {
    GO_MOD
        .lines()
        .find_map(|line| {
            line.trim()
                .strip_prefix("github.com/prometheus/prometheus ")
        })
        .expect("go.mod requires prometheus")
}

impl TestPrometheus {
    /// Starts Prometheus over plain HTTP; it answers when this returns. From then on it evaluates
    /// its rules once a second.
    pub async fn start(alerts: &[TestAlert<'_>]) -> Result<Self, Error> {
        Self::start_with_rules(&rules_of_alerts(alerts)).await
    }

    /// Evaluates these rules, in their order. Rules with `record` are the only source of samples.
    pub async fn start_with_rules(rules: &[Value]) -> Result<Self, Error> {
        Self::start_scraping(&BTreeMap::new(), rules).await
    }

    /// Scrapes `/metrics` of these addresses (`HOST:PORT`, by label `instance`) once a second, and evaluates these rules.
    pub async fn start_scraping(
        targets: &BTreeMap<String, String>,
        rules: &[Value],
    ) -> Result<Self, Error> {
        Self::start_setup(PrometheusSetup {
            scheme: "http",
            rules,
            targets,
        })
        .await
    }

    /// The same as [`TestPrometheus::start`] over TLS, with a certificate that [`TestPrometheus::ca_file`] has signed.
    pub async fn start_with_tls(alerts: &[TestAlert<'_>]) -> Result<Self, Error> {
        Self::start_setup(PrometheusSetup {
            scheme: "https",
            rules: &rules_of_alerts(alerts),
            targets: &BTreeMap::new(),
        })
        .await
    }

    /// `http://127.0.0.1:PORT/prometheus`.
    pub fn base_url(&self) -> &str {
        &self.address
    }

    /// The authority that signed its certificate, PEM.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// Makes these alerts active, and no others. The change takes a second or two to show.
    pub fn set_alerts(&self, alerts: &[TestAlert<'_>]) -> Result<(), Error> {
        write_rules(self.folder.path(), &rules_of_alerts(alerts))?;
        kill_process(Pid::from_child(&self.process.0), Signal::HUP)
            .map_err(|errno| Error::io_error("signal", PROGRAM_NAME)(errno.into()))
    }

    async fn start_setup(setup: PrometheusSetup<'_>) -> Result<Self, Error> {
        let program = tokio::task::spawn_blocking(find_or_build)
            .await
            .expect("finding does not panic")?;
        let mut attempt = 1;
        loop {
            match Self::start_once(&program, &setup).await {
                Err(Error::Died { log, .. })
                    if attempt < START_ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn start_once(program: &Path, setup: &PrometheusSetup<'_>) -> Result<Self, Error> {
        let scheme = setup.scheme;
        let folder = tempfile::Builder::new()
            .prefix("dogwatch-prometheus-")
            .tempdir()
            .map_err(Error::io_error("make a folder in", std::env::temp_dir()))?;
        let brood = GuardedProcessGroup::new(folder.path())?;
        identity::write_certificates(folder.path())?;
        write_rules(folder.path(), setup.rules)?;
        let port = ports::find_free_port()?;
        let address = format!("{scheme}://127.0.0.1:{port}{URL_PATH}");
        let mut command = build_command(program, folder.path(), port, &address);
        if !setup.targets.is_empty() {
            let text = json!(setup.targets).to_string();
            let file = write_file(folder.path().join("targets.json"), &text)?;
            command.arg(format!("--targets={}", file.display()));
        }
        if scheme == "https" {
            command.arg(format!("--web-config={}", write_web_config(folder.path())?));
        }
        let process = PrometheusProcess(brood.spawn_child(&mut command, &log_path(folder.path()))?);
        let mut this = Self {
            process,
            _process_group: brood,
            folder,
            address,
        };
        this.wait_until_it_listens(port).await?;
        Ok(this)
    }

    /// Prometheus reports itself as ready before it accepts its first connection.
    async fn wait_until_it_listens(&mut self, port: u16) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            let status = self.process.0.try_wait();
            if let Some(status) = status.expect("a child of ours can be waited for") {
                let log = tail_log(&log_path(self.folder.path()));
                return Err(Error::Died {
                    program: PROGRAM_NAME,
                    status,
                    log,
                });
            }
            if Instant::now() > deadline {
                let log = tail_log(&log_path(self.folder.path()));
                return Err(Error::NotReady {
                    seconds: READY_WITHIN.as_secs(),
                    last: "connection refused by prometheus".to_owned(),
                    log,
                });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

fn build_command(program: &Path, folder: &Path, port: u16, address: &str) -> Command {
    let mut command = Command::new(program);
    command
        .arg(format!("--listen=127.0.0.1:{port}"))
        .arg(format!("--data={}", folder.join("data").display()))
        .arg(format!("--rules={}", folder.join("rules.json").display()))
        .arg(format!("--external-url={address}"));
    command
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("log")
}

/// One rule always exists: when a whole group is removed, its alerts stay active for a while.
fn rules_of_alerts(alerts: &[TestAlert<'_>]) -> Vec<Value> {
    let always = json!({ "record": "always", "expr": "vector(1)" });
    let alerts = alerts.iter().map(|alert| match alert {
        TestAlert::Firing(name) => json!({ "alert": name, "expr": "vector(1)" }),
        TestAlert::Pending(name) => json!({ "alert": name, "expr": "vector(1)", "for": "1h" }),
    });
    [always].into_iter().chain(alerts).collect()
}

fn write_rules(folder: &Path, rules: &[Value]) -> Result<(), Error> {
    let file = json!({ "groups": [{ "name": "tests", "rules": rules }] });
    // JSON is YAML.
    write_file(folder.join("rules.json"), &file.to_string()).map(drop)
}

fn write_web_config(folder: &Path) -> Result<String, Error> {
    let mut text = String::from("tls_server_config:\n");
    for (field, file) in [("cert_file", "server.crt"), ("key_file", "server.key")] {
        let path = folder.join(file);
        writeln!(text, "  {field}: {}", path.display()).expect("a String takes all");
    }
    let path = write_file(folder.join("web.yaml"), &text)?;
    Ok(path.display().to_string())
}

fn write_file(path: PathBuf, content: &str) -> Result<PathBuf, Error> {
    fs::write(&path, content).map_err(Error::io_error("write", &path))?;
    Ok(path)
}
