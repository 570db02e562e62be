//! Waiting for the API server: until it is ready, until its audit log is written. Each wait has a deadline and looks at
//! the thing itself.

use std::{fs, path::Path, process::ExitStatus, sync::atomic::Ordering, time::Duration};

use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::{AuditMark, Error, Program, audit, control_plane::ControlPlane};

/// Measured: 3 s alone on 2 cores. The rest is for a machine that compiles beside it.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// The audit log is written as the answer is sent.
const AUDITED_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);
const LOG_LINES: usize = 20;

/// In the URI of the requests that flush the audit log.
pub(crate) const MARKER: &str = "/version?dogwatch-testbed-marker=";

impl ControlPlane {
    pub(crate) async fn wait_until_ready(&self) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        let mut last = String::from("connection refused");
        while Instant::now() < deadline {
            self.check_alive()?;
            match self.ask_readiness().await {
                Ok(()) => return Ok(()),
                Err(answer) => last = answer,
            }
            sleep(POLL).await;
        }
        let log = tail(&self.log_of(Program::KubeApiserver));
        Err(Error::NotReady {
            seconds: READY_WITHIN.as_secs(),
            last,
            log,
        })
    }

    /// kube-controller-manager listens once it has understood its flags; a controller's name that it does not know ends it
    /// before that.
    pub(crate) async fn wait_until_controllers_listen(&self) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        while TcpStream::connect(("127.0.0.1", self.ports.controllers))
            .await
            .is_err()
        {
            self.check_alive()?;
            if Instant::now() > deadline {
                let log = tail(&self.log_of(Program::KubeControllerManager));
                let last = "connection refused by kube-controller-manager".to_owned();
                return Err(Error::NotReady {
                    seconds: READY_WITHIN.as_secs(),
                    last,
                    log,
                });
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// The connection is tried first because a kubectl costs 50 ms of a busy core.
    async fn ask_readiness(&self) -> Result<(), String> {
        TcpStream::connect(("127.0.0.1", self.ports.api))
            .await
            .map_err(|error| error.to_string())?;
        self.ask("/readyz").await?;
        // Namespaces are made in the background, after the server calls itself ready.
        self.ask("/api/v1/namespaces/default").await
    }

    async fn ask(&self, path: &str) -> Result<(), String> {
        let answer = self
            .run_kubectl(&["get", "--request-timeout=5s", "--raw", path], "")
            .await;
        answer.map(drop).map_err(|error| error.to_string())
    }

    /// The first part that ended by itself, as an error.
    fn check_alive(&self) -> Result<(), Error> {
        let mut processes = self.processes();
        let ended = |child: &mut Option<std::process::Child>| -> Option<ExitStatus> {
            child
                .as_mut()?
                .try_wait()
                .expect("a child of ours can be waited for")
        };
        for (program, status) in [
            (Program::Etcd, ended(&mut processes.etcd)),
            (Program::KubeApiserver, ended(&mut processes.api)),
            (
                Program::KubeControllerManager,
                ended(&mut processes.controllers),
            ),
        ] {
            if let Some(status) = status {
                let log = tail(&self.log_of(program));
                return Err(Error::Died {
                    program: program.name(),
                    status,
                    log,
                });
            }
        }
        Ok(())
    }

    /// Asks for something nobody else asks for, and waits until the log shows it: what was answered before is above it.
    /// A server that does not run writes nothing more, so there is nothing to wait for.
    pub(crate) async fn flush_audit(&self) -> Result<(), Error> {
        if !self.answers() {
            return Ok(());
        }
        let marker = format!("{MARKER}{}", self.markers.fetch_add(1, Ordering::Relaxed));
        let before = audit::end(&self.audit_log())?;
        self.run_kubectl(&["get", "--raw", &marker], "").await?;
        let deadline = Instant::now() + AUDITED_WITHIN;
        while !self.audited(&marker, before)? {
            if Instant::now() > deadline {
                return Err(Error::AuditSilent {
                    seconds: AUDITED_WITHIN.as_secs(),
                });
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    fn audited(&self, marker: &str, since: AuditMark) -> Result<bool, Error> {
        Ok(audit::read(&self.audit_log(), since)?
            .iter()
            .any(|entry| entry.uri == marker))
    }
}

/// The last lines of a log, or why there are none.
pub(crate) fn tail(log: &Path) -> String {
    match fs::read_to_string(log) {
        Ok(text) => {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
        }
        Err(error) => format!("(no log: {error})"),
    }
}
