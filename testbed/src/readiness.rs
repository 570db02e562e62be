//! Waits for the API server: until it is ready, until its audit log is written. Each wait has a
//! deadline and checks the state itself.

use std::{fs, path::Path, process::ExitStatus, sync::atomic::Ordering, time::Duration};

use tokio::{
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::{AuditMark, ControlPlaneProgram, Error, audit, control_plane::ControlPlane};

/// Measured: 3 s alone on 2 cores. The rest is for a machine that compiles beside it.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// The audit log is written as the answer is sent. The rest is for a machine that compiles beside
/// it.
const AUDITED_WITHIN: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_LOG_LINES: usize = 20;

/// A role and a binding of each kind; the user's name replaces `CANARY`.
const CANARY_MANIFESTS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: CANARY }
rules: [{ apiGroups: [testbed], resources: [everywhere], verbs: [get] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: CANARY }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: CANARY }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: User, name: CANARY }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: CANARY, namespace: default }
rules: [{ apiGroups: [testbed], resources: [here], verbs: [get] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: CANARY, namespace: default }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: CANARY }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: User, name: CANARY }]
";

/// In the URI of the requests that flush the audit log.
pub(crate) const AUDIT_MARKER_URI: &str = "/version?dogwatch-testbed-marker=";

impl ControlPlane {
    pub(crate) async fn wait_until_ready(&self) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        let mut last = String::from("connection refused");
        while Instant::now() < deadline {
            self.check_alive()?;
            match self.check_readiness().await {
                Ok(()) => return Ok(()),
                Err(answer) => last = answer,
            }
            sleep(POLL_INTERVAL).await;
        }
        let log = tail_log(&self.log_path_of(ControlPlaneProgram::KubeApiserver));
        Err(Error::NotReady {
            seconds: READY_WITHIN.as_secs(),
            last,
            log,
        })
    }

    /// kube-controller-manager listens after it has parsed its flags; an unknown controller's name
    /// ends it before that.
    pub(crate) async fn wait_until_controllers_listen(&self) -> Result<(), Error> {
        let deadline = Instant::now() + READY_WITHIN;
        while TcpStream::connect(("127.0.0.1", self.ports.controllers))
            .await
            .is_err()
        {
            self.check_alive()?;
            if Instant::now() > deadline {
                let log = tail_log(&self.log_path_of(ControlPlaneProgram::KubeControllerManager));
                let last = "connection refused by kube-controller-manager".to_owned();
                return Err(Error::NotReady {
                    seconds: READY_WITHIN.as_secs(),
                    last,
                    log,
                });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Waits until the API server applies all roles and bindings that were created before this
    /// call. Its authorizer learns each kind by a watch, in order, and until then refuses what they
    /// allow; so the ones created last, here, are in force last.
    pub async fn wait_until_rights_are_in_force(&self) -> Result<(), Error> {
        let number = self.markers.fetch_add(1, Ordering::Relaxed);
        let canary = format!("testbed-canary-{number}");
        let objects = CANARY_MANIFESTS.replace("CANARY", &canary);
        self.run_kubectl(&["apply", "-f", "-"], &objects).await?;
        let deadline = Instant::now() + READY_WITHIN;
        for (namespace, resource) in [("", "everywhere"), ("default", "here")] {
            while !self.may_get(&canary, namespace, resource).await? {
                if Instant::now() > deadline {
                    return Err(Error::NotReady {
                        seconds: READY_WITHIN.as_secs(),
                        last: format!("{canary} may not get {resource}"),
                        log: tail_log(&self.log_path_of(ControlPlaneProgram::KubeApiserver)),
                    });
                }
                sleep(POLL_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// Asks the authorizer with a SubjectAccessReview.
    async fn may_get(&self, user: &str, namespace: &str, resource: &str) -> Result<bool, Error> {
        let review = format!(
            r#"{{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {{"user": "{user}",
            "resourceAttributes": {{"group": "testbed", "resource": "{resource}", "verb": "get", "namespace": "{namespace}"}}}}}}"#
        );
        let create = ["create", "-f", "-", "-o", "jsonpath={.status.allowed}"];
        Ok(self.run_kubectl(&create, &review).await? == "true")
    }

    /// The connection is tried first because a kubectl costs 50 ms of a busy core.
    async fn check_readiness(&self) -> Result<(), String> {
        TcpStream::connect(("127.0.0.1", self.ports.api))
            .await
            .map_err(|error| error.to_string())?;
        self.get_raw_path("/readyz").await?;
        // Namespaces are created in the background, after the server reports itself as ready.
        self.get_raw_path("/api/v1/namespaces/default").await
    }

    async fn get_raw_path(&self, path: &str) -> Result<(), String> {
        let answer = self
            .run_kubectl(&["get", "--request-timeout=5s", "--raw", path], "")
            .await;
        answer.map(drop).map_err(|error| error.to_string())
    }

    /// An error if a program has exited by itself.
    fn check_alive(&self) -> Result<(), Error> {
        let mut processes = self.lock_processes();
        let ended = |child: &mut Option<std::process::Child>| -> Option<ExitStatus> {
            child
                .as_mut()?
                .try_wait()
                .expect("a child of ours can be waited for")
        };
        for (program, status) in [
            (ControlPlaneProgram::Etcd, ended(&mut processes.etcd)),
            (
                ControlPlaneProgram::KubeApiserver,
                ended(&mut processes.api),
            ),
            (
                ControlPlaneProgram::KubeControllerManager,
                ended(&mut processes.controllers),
            ),
        ] {
            if let Some(status) = status {
                let log = tail_log(&self.log_path_of(program));
                return Err(Error::Died {
                    program: program.name(),
                    status,
                    log,
                });
            }
        }
        Ok(())
    }

    /// Sends a request with a unique URI and waits until the log shows it: every earlier answer is
    /// above it. A stopped server writes nothing more, so there is nothing to wait for.
    pub(crate) async fn flush_audit(&self) -> Result<(), Error> {
        if !self.is_answering() {
            return Ok(());
        }
        let marker = format!(
            "{AUDIT_MARKER_URI}{}",
            self.markers.fetch_add(1, Ordering::Relaxed)
        );
        let before = audit::end_mark(&self.audit_log_path())?;
        self.run_kubectl(&["get", "--raw", &marker], "").await?;
        let deadline = Instant::now() + AUDITED_WITHIN;
        while !self.is_audited(&marker, before)? {
            if Instant::now() > deadline {
                return Err(Error::AuditSilent {
                    seconds: AUDITED_WITHIN.as_secs(),
                });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    fn is_audited(&self, marker: &str, since: AuditMark) -> Result<bool, Error> {
        Ok(audit::read_entries(&self.audit_log_path(), since)?
            .iter()
            .any(|entry| entry.uri == marker))
    }
}

/// The last lines of a log, or why it cannot be read.
pub(crate) fn tail_log(log: &Path) -> String {
    match fs::read_to_string(log) {
        Ok(text) => {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(MAX_LOG_LINES)..].join("\n")
        }
        Err(error) => format!("(no log: {error})"),
    }
}
