//! A control plane on loopback: start, stop, restart and requests.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::{Mutex, MutexGuard, atomic::AtomicU32},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{
    AuditEntry, AuditMark, CallTimes, ControlPlaneBinaries, ControlPlaneBuilder,
    ControlPlaneProgram, Error, TokenPodRef, audit, identity,
    kubectl::{KubectlClient, token_arguments, write_kubeconfig},
    ports,
    process_group::GuardedProcessGroup,
    readiness::AUDIT_MARKER_URI,
};

/// Another program can take a free port before etcd or the API server listens on it; then other
/// ports are tried.
const START_ATTEMPTS: usize = 3;

/// A running control plane. Dropping it removes its processes and files.
#[derive(Debug)]
pub struct ControlPlane {
    // Drop order: processes, then the guard, then the folder.
    processes: Mutex<ControlPlaneProcesses>,
    process_group: GuardedProcessGroup,
    folder: TempDir,
    binaries: ControlPlaneBinaries,
    pub(crate) builder: ControlPlaneBuilder,
    pub(crate) ports: ControlPlanePorts,
    admin: KubectlClient,
    pub(crate) markers: AtomicU32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlPlanePorts {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api: u16,
    pub(crate) controllers: u16,
}

#[derive(Debug, Default)]
pub(crate) struct ControlPlaneProcesses {
    pub(crate) etcd: Option<Child>,
    pub(crate) api: Option<Child>,
    pub(crate) controllers: Option<Child>,
    frozen: bool,
}

impl Drop for ControlPlaneProcesses {
    fn drop(&mut self) {
        for child in [&mut self.controllers, &mut self.api, &mut self.etcd]
            .into_iter()
            .flatten()
        {
            kill_and_reap(child);
        }
    }
}

/// Kills and reaps the child. Either can only fail for a child that is already reaped.
pub(crate) fn kill_and_reap(child: &mut Child) {
    let _: std::io::Result<()> = child.kill();
    let _: std::io::Result<ExitStatus> = child.wait();
}

fn url_of_ports(ports: ControlPlanePorts) -> String {
    format!("https://127.0.0.1:{}", ports.api)
}

impl ControlPlane {
    /// Starts a control plane with [`WORKLOAD_CONTROLLERS`](crate::WORKLOAD_CONTROLLERS), after
    /// building the programs if they are missing. It is ready when this returns: namespace
    /// `default` exists and objects can be created.
    pub async fn start() -> Result<Self, Error> {
        Self::builder().start().await
    }

    /// Builder to choose controllers, users and flags.
    pub fn builder() -> ControlPlaneBuilder {
        ControlPlaneBuilder::default()
    }

    pub(crate) async fn start_with(builder: ControlPlaneBuilder) -> Result<Self, Error> {
        let binaries = tokio::task::spawn_blocking(ControlPlaneBinaries::find_or_build)
            .await
            .expect("finding does not panic")?;
        let mut attempt = 1;
        loop {
            match Self::start_once(builder.clone(), binaries.clone()).await {
                Err(Error::Died { log, .. })
                    if attempt < START_ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn start_once(
        builder: ControlPlaneBuilder,
        binaries: ControlPlaneBinaries,
    ) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix("dogwatch-testbed-")
            .tempdir()
            .map_err(Error::io_error("make a folder in", std::env::temp_dir()))?;
        let brood = GuardedProcessGroup::new(folder.path())?;
        identity::write_identity(folder.path(), &builder.users)?;
        let policy = folder.path().join("audit-policy.json");
        fs::write(&policy, audit::AUDIT_POLICY).map_err(Error::io_error("write", policy))?;
        let ports = ControlPlanePorts {
            etcd: ports::find_free_port()?,
            etcd_peer: ports::find_free_port()?,
            api: ports::find_free_port()?,
            controllers: ports::find_free_port()?,
        };
        let admin = KubectlClient {
            program: binaries
                .program_path(ControlPlaneProgram::Kubectl)
                .to_owned(),
            kubeconfig: write_kubeconfig(
                folder.path(),
                &url_of_ports(ports),
                identity::ADMIN_TOKEN,
            )?,
            cache: folder.path().join("kubectl-cache"),
        };
        let processes = Mutex::default();
        let markers = AtomicU32::new(0);
        let this = Self {
            processes,
            process_group: brood,
            folder,
            binaries,
            builder,
            ports,
            admin,
            markers,
        };
        let etcd = this.spawn_program(ControlPlaneProgram::Etcd, &this.etcd_flags())?;
        this.lock_processes().etcd = Some(etcd);
        this.start_api().await?;
        if !this.builder.controllers.is_empty() {
            let controllers = this.spawn_program(
                ControlPlaneProgram::KubeControllerManager,
                &this.controller_flags(),
            )?;
            this.lock_processes().controllers = Some(controllers);
            this.wait_until_controllers_listen().await?;
        }
        Ok(this)
    }

    /// `https://127.0.0.1:PORT`.
    pub fn api_url(&self) -> String {
        url_of_ports(self.ports)
    }

    pub fn admin_kubeconfig(&self) -> &Path {
        &self.admin.kubeconfig
    }

    /// A kubeconfig for the holder of `token`.
    pub fn kubeconfig_for(&self, token: &str) -> Result<PathBuf, Error> {
        write_kubeconfig(self.folder.path(), &self.api_url(), token)
    }

    /// A client certificate that the API server accepts, and its key, as PEM. A kubelet's user is
    /// `system:node:NAME` in group `system:nodes`.
    pub fn client_certificate(&self, user: &str, groups: &[&str]) -> Result<String, Error> {
        identity::client_certificate(self.folder.path(), user, groups)
    }

    /// The same, signed by an authority that the API server does not trust.
    pub fn foreign_certificate(user: &str, groups: &[&str]) -> Result<String, Error> {
        identity::foreign_certificate(user, groups)
    }

    /// This control plane's folder, for a test's files that should be removed with it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The kubectl of the same version as the API server.
    pub fn kubectl_path(&self) -> &Path {
        &self.admin.program
    }

    /// Runs kubectl as the administrator with `input` on standard input, and returns its output.
    pub async fn run_kubectl(&self, arguments: &[&str], input: &str) -> Result<String, Error> {
        self.admin.run_command(arguments, input).await
    }

    /// A token of a service account, bound to a pod if one is given (the pod must exist).
    pub async fn service_account_token(
        &self,
        namespace: &str,
        account: &str,
        pod: Option<TokenPodRef<'_>>,
    ) -> Result<String, Error> {
        let arguments = token_arguments(namespace, account, pod);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Ok(self.run_kubectl(&arguments, "").await?.trim().to_owned())
    }

    /// A kubeconfig of a service account; waits until the account's current rights are in force.
    pub async fn kubeconfig_of(&self, namespace: &str, account: &str) -> Result<PathBuf, Error> {
        self.wait_until_rights_are_in_force().await?;
        let token = self.service_account_token(namespace, account, None).await?;
        self.kubeconfig_for(&token)
    }

    /// Applies these manifests, and waits until the named kinds (`PLURAL.GROUP`) in them can be
    /// used.
    pub async fn install_manifests(&self, manifests: &str, kinds: &[&str]) -> Result<(), Error> {
        // Another field manager may own some of it already.
        let ours = ["--server-side", "--force-conflicts", "--validate=strict"];
        let apply = [&["apply"], &ours[..], &["-f", "-"]].concat();
        self.run_kubectl(&apply, manifests).await?;
        for kind in kinds {
            let definition = format!("crd/{kind}");
            let established = ["wait", "--for=condition=established", "--timeout=2m"];
            let words = [&established[..], &[definition.as_str()]].concat();
            self.run_kubectl(&words, "").await?;
            // A new kind answers 429 until its storage is ready; kubectl waits for that.
            self.run_kubectl(&["get", kind, "--all-namespaces"], "")
                .await?;
        }
        Ok(())
    }

    /// All requests so far, in the order of the answers. Includes every request that was answered
    /// before this call.
    pub async fn audit_entries(&self) -> Result<Vec<AuditEntry>, Error> {
        self.audit_entries_since(AuditMark(0)).await
    }

    /// The same for one user.
    pub async fn audit_entries_of(&self, user: &str) -> Result<Vec<AuditEntry>, Error> {
        let mut entries = self.audit_entries().await?;
        entries.retain(|entry| entry.user == user);
        Ok(entries)
    }

    /// The entries after `mark`.
    pub async fn audit_entries_since(&self, mark: AuditMark) -> Result<Vec<AuditEntry>, Error> {
        self.flush_audit().await?;
        let mut entries = audit::read_entries(&self.audit_log_path(), mark)?;
        entries.retain(|entry| !entry.uri.contains(AUDIT_MARKER_URI));
        Ok(entries)
    }

    /// The audit log's own lines after `mark`, with the bodies of writes of nodes and Leases.
    pub async fn audit_lines_since(&self, mark: AuditMark) -> Result<Vec<String>, Error> {
        self.flush_audit().await?;
        audit::read_lines(&self.audit_log_path(), mark)
    }

    /// How long the API server took for each kind of request after `mark`.
    pub async fn call_times_since(&self, mark: AuditMark) -> Result<CallTimes, Error> {
        CallTimes::of_lines(&self.audit_lines_since(mark).await?)
    }

    /// The same without waiting for the last answers, for the end of a test.
    pub fn audit_lines_so_far(&self, mark: AuditMark) -> Result<Vec<String>, Error> {
        audit::read_lines(&self.audit_log_path(), mark)
    }

    /// The position in the audit log after all requests that were answered so far.
    pub async fn audit_mark(&self) -> Result<AuditMark, Error> {
        self.flush_audit().await?;
        audit::end_mark(&self.audit_log_path())
    }

    /// Kills the API server: connections break, new ones are refused.
    pub fn stop_api(&self) {
        let mut processes = self.lock_processes();
        processes.frozen = false;
        if let Some(mut api) = processes.api.take() {
            kill_and_reap(&mut api);
        }
    }

    /// Starts the API server on the same port; it is ready when this returns. Does nothing if it is
    /// running.
    pub async fn start_api(&self) -> Result<(), Error> {
        if self.lock_processes().api.is_none() {
            let api = self.spawn_program(ControlPlaneProgram::KubeApiserver, &self.api_flags())?;
            self.lock_processes().api = Some(api);
        }
        self.wait_until_ready().await
    }

    /// Freezes the API server: connections stay open without answers.
    pub fn freeze_api(&self) -> Result<(), Error> {
        self.signal_api(Signal::STOP, true)
    }

    /// Resumes a frozen API server; it answers the requests that arrived meanwhile.
    pub fn thaw_api(&self) -> Result<(), Error> {
        self.signal_api(Signal::CONT, false)
    }

    fn signal_api(&self, signal: Signal, frozen: bool) -> Result<(), Error> {
        let mut processes = self.lock_processes();
        let api = processes.api.as_ref().ok_or(Error::Stopped)?;
        kill_process(Pid::from_child(api), signal).map_err(|errno| {
            Error::io_error("signal", ControlPlaneProgram::KubeApiserver.name())(errno.into())
        })?;
        processes.frozen = frozen;
        Ok(())
    }

    /// Whether the API server is running and not frozen.
    pub(crate) fn is_answering(&self) -> bool {
        let processes = self.lock_processes();
        processes.api.is_some() && !processes.frozen
    }

    pub(crate) fn lock_processes(&self) -> MutexGuard<'_, ControlPlaneProcesses> {
        self.processes
            .lock()
            .expect("nobody panics with the lock held")
    }

    fn spawn_program(
        &self,
        program: ControlPlaneProgram,
        flags: &[String],
    ) -> Result<Child, Error> {
        self.process_group.spawn_child(
            Command::new(self.binaries.program_path(program)).args(flags),
            &self.log_path_of(program),
        )
    }

    pub(crate) fn log_path_of(&self, program: ControlPlaneProgram) -> PathBuf {
        self.folder.path().join(format!("{}.log", program.name()))
    }

    pub(crate) fn audit_log_path(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }
}
