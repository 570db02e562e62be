//! A real Prometheus on loopback: its rules, its query engine and its HTTP API, served under a path as behind a proxy. It
//! scrapes nothing. Built from the Go module `prometheus` into the project's cache, as the control plane is.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::{
    Error, brood::Brood, control_plane::end, identity, ports, readiness::tail, recipe::Recipe,
};

const GO_MOD: &str = include_str!("../prometheus/go.mod");
const SOURCES: [&str; 3] = [
    GO_MOD,
    include_str!("../prometheus/go.sum"),
    include_str!("../prometheus/cmd/prometheus/main.go"),
];
const PATH: &str = "/prometheus";
const NAME: &str = "prometheus";
/// Measured: 0.2 s alone on 2 cores. The rest is for a machine that compiles beside it.
const READY_WITHIN: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(20);
/// A port that was free can be taken before it is listened on; then another is tried.
const ATTEMPTS: usize = 3;

/// An alert that is active for as long as its rule is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert<'a> {
    /// It fires.
    Firing(&'a str),
    /// It waits for an hour to pass.
    Pending(&'a str),
}

/// A running Prometheus. Dropped, it is gone: process and files.
#[derive(Debug)]
pub struct Prometheus {
    // Dropped in this order: the process, then its guard, then the folder.
    process: Process,
    _brood: Brood,
    folder: TempDir,
    address: String,
}

#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// Where the program is; built first where it is not at hand, which takes a minute or two. Blocks.
pub fn find_or_build() -> Result<PathBuf, Error> {
    let recipe = Recipe {
        name: NAME,
        module: concat!(env!("CARGO_MANIFEST_DIR"), "/prometheus"),
        folder: format!("prometheus-{}", version()),
        sources: &SOURCES,
        usual_build_time: "about 1 minute",
        linker_flags: "-s -w".to_owned(),
    };
    recipe.find_or_build()
}

/// The version that the Go module builds, as Go counts it: `v0.309.1` is Prometheus 3.9.1.
pub fn version() -> &'static str {
    GO_MOD
        .lines()
        .find_map(|line| {
            line.trim()
                .strip_prefix("github.com/prometheus/prometheus ")
        })
        .expect("go.mod requires prometheus")
}

impl Prometheus {
    /// Starts one over plain HTTP; it answers when this returns. Rules are evaluated from then on, once a second.
    pub async fn start(alerts: &[Alert<'_>]) -> Result<Self, Error> {
        Self::start_at("http", alerts).await
    }

    /// The same over TLS, with a certificate that [`Prometheus::ca_file`] vouches for.
    pub async fn start_with_tls(alerts: &[Alert<'_>]) -> Result<Self, Error> {
        Self::start_at("https", alerts).await
    }

    /// `http://127.0.0.1:PORT/prometheus`.
    pub fn url(&self) -> &str {
        &self.address
    }

    /// Who has signed its certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// From now on these alerts are active, and no others. It takes a second or two to show.
    pub fn set_alerts(&self, alerts: &[Alert<'_>]) -> Result<(), Error> {
        write_rules(self.folder.path(), alerts)?;
        kill_process(Pid::from_child(&self.process.0), Signal::HUP)
            .map_err(|errno| Error::io("signal", NAME)(errno.into()))
    }

    async fn start_at(scheme: &str, alerts: &[Alert<'_>]) -> Result<Self, Error> {
        let program = tokio::task::spawn_blocking(find_or_build)
            .await
            .expect("finding does not panic")?;
        let mut attempt = 1;
        loop {
            match Self::start_once(&program, scheme, alerts).await {
                Err(Error::Died { log, .. })
                    if attempt < ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn start_once(program: &Path, scheme: &str, alerts: &[Alert<'_>]) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix("dogwatch-prometheus-")
            .tempdir()
            .map_err(Error::io("make a folder in", std::env::temp_dir()))?;
        let brood = Brood::new(folder.path())?;
        identity::write_certificates(folder.path())?;
        write_rules(folder.path(), alerts)?;
        let port = ports::free()?;
        let address = format!("{scheme}://127.0.0.1:{port}{PATH}");
        let mut command = command(program, folder.path(), port, &address);
        if scheme == "https" {
            command.arg(format!("--web-config={}", write_web_config(folder.path())?));
        }
        let process = Process(brood.spawn(&mut command, &log_of(folder.path()))?);
        let mut this = Self {
            process,
            _brood: brood,
            folder,
            address,
        };
        this.wait_until_it_listens(port).await?;
        Ok(this)
    }

    /// It calls itself ready before it accepts its first connection.
    async fn wait_until_it_listens(&mut self, port: u16) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            let status = self.process.0.try_wait();
            if let Some(status) = status.expect("a child of ours can be waited for") {
                let log = tail(&log_of(self.folder.path()));
                return Err(Error::Died {
                    program: NAME,
                    status,
                    log,
                });
            }
            if Instant::now() > deadline {
                let log = tail(&log_of(self.folder.path()));
                return Err(Error::NotReady {
                    seconds: READY_WITHIN.as_secs(),
                    last: "connection refused by prometheus".to_owned(),
                    log,
                });
            }
            sleep(POLL).await;
        }
        Ok(())
    }
}

fn command(program: &Path, folder: &Path, port: u16, address: &str) -> Command {
    let mut command = Command::new(program);
    command
        .arg(format!("--listen=127.0.0.1:{port}"))
        .arg(format!("--data={}", folder.join("data").display()))
        .arg(format!("--rules={}", folder.join("rules.json").display()))
        .arg(format!("--external-url={address}"));
    command
}

fn log_of(folder: &Path) -> PathBuf {
    folder.join("log")
}

/// One rule is always there: of a group that is gone altogether the alerts stay active for a while.
fn write_rules(folder: &Path, alerts: &[Alert<'_>]) -> Result<(), Error> {
    let mut rules = serde_json::json!([{ "record": "always", "expr": "vector(1)" }]);
    let list = rules.as_array_mut().expect("written above");
    list.extend(alerts.iter().map(|alert| match alert {
        Alert::Firing(name) => serde_json::json!({ "alert": name, "expr": "vector(1)" }),
        Alert::Pending(name) => {
            serde_json::json!({ "alert": name, "expr": "vector(1)", "for": "1h" })
        }
    }));
    let file = serde_json::json!({ "groups": [{ "name": "tests", "rules": rules }] });
    // JSON is YAML.
    write(folder.join("rules.json"), &file.to_string()).map(drop)
}

fn write_web_config(folder: &Path) -> Result<String, Error> {
    let mut text = String::from("tls_server_config:\n");
    for (field, file) in [("cert_file", "server.crt"), ("key_file", "server.key")] {
        let path = folder.join(file);
        writeln!(text, "  {field}: {}", path.display()).expect("a String takes all");
    }
    let path = write(folder.join("web.yaml"), &text)?;
    Ok(path.display().to_string())
}

fn write(path: PathBuf, content: &str) -> Result<PathBuf, Error> {
    fs::write(&path, content).map_err(Error::io("write", &path))?;
    Ok(path)
}
