//! Starts a program as a kubelet starts it in a pod.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use dogwatch_testbed::ControlPlane;
use tokio::process::Command;

/// Where a kubelet mounts the files of a pod's service account.
const MOUNTED_ACCOUNT: &str = "/run/secrets/kubernetes.io/serviceaccount";

/// How a program is started: program and first arguments, and what it finds its API server by.
pub struct PodCommand {
    words: Vec<String>,
    environment: Vec<(&'static str, String)>,
    /// Whether the program is a child of the process that is started.
    has_own_processes: bool,
}

impl PodCommand {
    /// With a service account's files where a kubelet mounts them, in a mount namespace of its own.
    pub async fn with_account(
        plane: &ControlPlane,
        program: &Path,
        [namespace, account]: [&str; 2],
    ) -> Self {
        Self::in_namespaces(plane, program, [namespace, account], &["--mount"]).await
    }

    /// The same for a program that enters the mount namespace of process 1: it sees only its own
    /// processes, of which it is the first.
    pub async fn with_own_processes(
        plane: &ControlPlane,
        program: &Path,
        [namespace, account]: [&str; 2],
    ) -> Self {
        let kinds = ["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"];
        Self::in_namespaces(plane, program, [namespace, account], &kinds).await
    }

    async fn in_namespaces(
        plane: &ControlPlane,
        program: &Path,
        [namespace, account]: [&str; 2],
        kinds: &[&str],
    ) -> Self {
        let token = plane.service_account_token(namespace, account, None);
        let token = token.await.expect("the account is installed");
        let files = plane.folder().join(format!("account-{account}"));
        fs::create_dir_all(&files).expect("a folder");
        fs::copy(plane.folder().join("ca.crt"), files.join("ca.crt")).expect("a file");
        fs::write(files.join("token"), token).expect("a file");
        fs::write(files.join("namespace"), namespace).expect("a file");
        let script = format!(
            "mount -t tmpfs pod /run; mkdir -p {MOUNTED_ACCOUNT}; cp {}/* {MOUNTED_ACCOUNT}; exec \"$@\"",
            files.display()
        );
        let url = plane.api_url();
        let (_, port) = url.rsplit_once(':').expect("https://127.0.0.1:PORT");
        let unshare = [&["unshare", "--map-root-user"], kinds, &["sh", "-ec"]].concat();
        let mut words: Vec<String> = unshare.into_iter().map(String::from).collect();
        words.extend([script, "sh".to_owned(), program.display().to_string()]);
        Self {
            words,
            environment: vec![
                ("KUBERNETES_SERVICE_HOST", "127.0.0.1".to_owned()),
                ("KUBERNETES_SERVICE_PORT", port.to_owned()),
            ],
            has_own_processes: kinds.contains(&"--pid"),
        }
    }

    pub fn with_kubeconfig(plane: &ControlPlane, program: &Path) -> Self {
        let kubeconfig = plane.admin_kubeconfig().display().to_string();
        Self {
            words: vec![program.display().to_string()],
            environment: vec![("KUBECONFIG", kubeconfig)],
            has_own_processes: false,
        }
    }

    /// The program's process, by that which was started.
    pub fn find_process(&self, started: u32) -> u32 {
        if !self.has_own_processes {
            return started;
        }
        let children = fs::read_to_string(format!("/proc/{started}/task/{started}/children"));
        let children = children.expect("a process of ours");
        children.trim().parse().expect("one process")
    }

    /// The command, whose log is piped. The process is killed on drop.
    pub fn to_command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .env_remove("KUBECONFIG")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}
