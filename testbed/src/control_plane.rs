//! One control plane: started, asked, stopped, started again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::{Mutex, MutexGuard, atomic::AtomicU32},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{
    AuditEntry, AuditMark, Binaries, Builder, Error, PodRef, Program, audit,
    brood::Brood,
    identity,
    kubectl::{Kubectl, token_arguments, write_kubeconfig},
    ports,
    readiness::MARKER,
};

/// A port that was free can be taken before etcd or the API server listens on it; then other ports are tried.
const ATTEMPTS: usize = 3;

/// A running control plane. Dropped, it is gone: processes and files.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order: processes, then the guard, then the folder.
    processes: Mutex<Processes>,
    brood: Brood,
    folder: TempDir,
    binaries: Binaries,
    pub(crate) builder: Builder,
    pub(crate) ports: Ports,
    admin: Kubectl,
    pub(crate) markers: AtomicU32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api: u16,
    pub(crate) controllers: u16,
}

#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub(crate) etcd: Option<Child>,
    pub(crate) api: Option<Child>,
    pub(crate) controllers: Option<Child>,
    frozen: bool,
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in [&mut self.controllers, &mut self.api, &mut self.etcd]
            .into_iter()
            .flatten()
        {
            end(child);
        }
    }
}

/// Kills and reaps. Both can only fail for a child that is reaped already.
pub(crate) fn end(child: &mut Child) {
    let _: std::io::Result<()> = child.kill();
    let _: std::io::Result<ExitStatus> = child.wait();
}

fn url(ports: Ports) -> String {
    format!("https://127.0.0.1:{}", ports.api)
}

impl ControlPlane {
    /// Starts one with [`WORKLOAD_CONTROLLERS`](crate::WORKLOAD_CONTROLLERS). The programs are built first where they
    /// are not at hand. Ready when this returns: `default` is there, objects can be made.
    pub async fn start() -> Result<Self, Error> {
        Self::builder().start().await
    }

    /// To choose controllers, users and flags.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) async fn start_with(builder: Builder) -> Result<Self, Error> {
        let binaries = tokio::task::spawn_blocking(Binaries::find_or_build)
            .await
            .expect("finding does not panic")?;
        let mut attempt = 1;
        loop {
            match Self::start_once(builder.clone(), binaries.clone()).await {
                Err(Error::Died { log, .. })
                    if attempt < ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn start_once(builder: Builder, binaries: Binaries) -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix("dogwatch-testbed-")
            .tempdir()
            .map_err(Error::io("make a folder in", std::env::temp_dir()))?;
        let brood = Brood::new(folder.path())?;
        identity::write(folder.path(), &builder.users)?;
        let policy = folder.path().join("audit-policy.json");
        fs::write(&policy, audit::POLICY).map_err(Error::io("write", policy))?;
        let ports = Ports {
            etcd: ports::free()?,
            etcd_peer: ports::free()?,
            api: ports::free()?,
            controllers: ports::free()?,
        };
        let admin = Kubectl {
            program: binaries.path(Program::Kubectl).to_owned(),
            kubeconfig: write_kubeconfig(folder.path(), &url(ports), identity::ADMIN_TOKEN)?,
            cache: folder.path().join("kubectl-cache"),
        };
        let processes = Mutex::default();
        let markers = AtomicU32::new(0);
        let this = Self {
            processes,
            brood,
            folder,
            binaries,
            builder,
            ports,
            admin,
            markers,
        };
        let etcd = this.spawn(Program::Etcd, &this.etcd_flags())?;
        this.processes().etcd = Some(etcd);
        this.start_api().await?;
        if !this.builder.controllers.is_empty() {
            let controllers =
                this.spawn(Program::KubeControllerManager, &this.controller_flags())?;
            this.processes().controllers = Some(controllers);
            this.wait_until_controllers_listen().await?;
        }
        Ok(this)
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        url(self.ports)
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.admin.kubeconfig
    }

    /// A kubeconfig for the holder of `token`.
    pub fn kubeconfig_for(&self, token: &str) -> Result<PathBuf, Error> {
        write_kubeconfig(self.folder.path(), &self.url(), token)
    }

    /// A client certificate that the API server accepts, and its key, as PEM. A kubelet's is of user
    /// `system:node:NAME` in group `system:nodes`.
    pub fn client_certificate(&self, user: &str, groups: &[&str]) -> Result<String, Error> {
        identity::client_certificate(self.folder.path(), user, groups)
    }

    /// The same, signed by an authority that the API server does not know.
    pub fn foreign_certificate(user: &str, groups: &[&str]) -> Result<String, Error> {
        identity::foreign_certificate(user, groups)
    }

    /// A folder of this control plane's own, for what a test wants gone with it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The kubectl that belongs to this API server.
    pub fn kubectl(&self) -> &Path {
        &self.admin.program
    }

    /// Runs kubectl as the administrator, with `input` on standard input; what it printed.
    pub async fn run_kubectl(&self, arguments: &[&str], input: &str) -> Result<String, Error> {
        self.admin.run(arguments, input).await
    }

    /// A service account's token, bound to a pod where one is given (the pod must exist).
    pub async fn service_account_token(
        &self,
        namespace: &str,
        account: &str,
        pod: Option<PodRef<'_>>,
    ) -> Result<String, Error> {
        let arguments = token_arguments(namespace, account, pod);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Ok(self.run_kubectl(&arguments, "").await?.trim().to_owned())
    }

    /// A kubeconfig for a service account, once the rights that it has by now are in force.
    pub async fn kubeconfig_of(&self, namespace: &str, account: &str) -> Result<PathBuf, Error> {
        self.wait_until_rights_are_in_force().await?;
        let token = self.service_account_token(namespace, account, None).await?;
        self.kubeconfig_for(&token)
    }

    /// Applies these manifests, and waits until the kinds in them that are named (`PLURAL.GROUP`) can be used.
    pub async fn install(&self, manifests: &str, kinds: &[&str]) -> Result<(), Error> {
        // A test by another hand may have made some of it.
        let ours = ["--server-side", "--force-conflicts", "--validate=strict"];
        let apply = [&["apply"], &ours[..], &["-f", "-"]].concat();
        self.run_kubectl(&apply, manifests).await?;
        for kind in kinds {
            let definition = format!("crd/{kind}");
            let established = ["wait", "--for=condition=established", "--timeout=2m"];
            let words = [&established[..], &[definition.as_str()]].concat();
            self.run_kubectl(&words, "").await?;
            // A new kind answers 429 until its storage is there; kubectl waits for it.
            self.run_kubectl(&["get", kind, "--all-namespaces"], "")
                .await?;
        }
        Ok(())
    }

    /// Everything the API server was asked so far, in the order of the answers. Every request that was answered before
    /// this call is in it.
    pub async fn audit(&self) -> Result<Vec<AuditEntry>, Error> {
        self.audit_since(AuditMark(0)).await
    }

    /// The same of one user.
    pub async fn audit_of(&self, user: &str) -> Result<Vec<AuditEntry>, Error> {
        let mut entries = self.audit().await?;
        entries.retain(|entry| entry.user == user);
        Ok(entries)
    }

    /// What came after `mark`.
    pub async fn audit_since(&self, mark: AuditMark) -> Result<Vec<AuditEntry>, Error> {
        self.flush_audit().await?;
        let mut entries = audit::read(&self.audit_log(), mark)?;
        entries.retain(|entry| !entry.uri.contains(MARKER));
        Ok(entries)
    }

    /// The place in the audit log after all that was answered so far.
    pub async fn audit_mark(&self) -> Result<AuditMark, Error> {
        self.flush_audit().await?;
        audit::end(&self.audit_log())
    }

    /// Kills the API server: connections break, new ones are refused.
    pub fn stop_api(&self) {
        let mut processes = self.processes();
        processes.frozen = false;
        if let Some(mut api) = processes.api.take() {
            end(&mut api);
        }
    }

    /// Starts the API server, on the same port; ready when this returns. Nothing happens to one that runs.
    pub async fn start_api(&self) -> Result<(), Error> {
        if self.processes().api.is_none() {
            let api = self.spawn(Program::KubeApiserver, &self.api_flags())?;
            self.processes().api = Some(api);
        }
        self.wait_until_ready().await
    }

    /// Freezes the API server: connections stay open and nobody answers.
    pub fn freeze_api(&self) -> Result<(), Error> {
        self.signal_api(Signal::STOP, true)
    }

    /// Lets a frozen API server go on; it answers what was asked meanwhile.
    pub fn thaw_api(&self) -> Result<(), Error> {
        self.signal_api(Signal::CONT, false)
    }

    fn signal_api(&self, signal: Signal, frozen: bool) -> Result<(), Error> {
        let mut processes = self.processes();
        let api = processes.api.as_ref().ok_or(Error::Stopped)?;
        kill_process(Pid::from_child(api), signal)
            .map_err(|errno| Error::io("signal", Program::KubeApiserver.name())(errno.into()))?;
        processes.frozen = frozen;
        Ok(())
    }

    /// Whether there is an API server that is not frozen.
    pub(crate) fn answers(&self) -> bool {
        let processes = self.processes();
        processes.api.is_some() && !processes.frozen
    }

    pub(crate) fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes
            .lock()
            .expect("nobody panics with the lock held")
    }

    fn spawn(&self, program: Program, flags: &[String]) -> Result<Child, Error> {
        self.brood.spawn(
            Command::new(self.binaries.path(program)).args(flags),
            &self.log_of(program),
        )
    }

    pub(crate) fn log_of(&self, program: Program) -> PathBuf {
        self.folder.path().join(format!("{}.log", program.name()))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }
}
