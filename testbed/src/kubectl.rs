//! kubectl, kubeconfigs and tokens of the tests.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
};

use tokio::{io::AsyncWriteExt, process::Command};

use crate::Error;

/// The pod that a token is bound to.
#[derive(Clone, Copy, Debug)]
pub struct TokenPodRef<'a> {
    /// The pod's name, in the service account's namespace.
    pub name: &'a str,
    /// Its UID, to end the token with this very pod; without it the API server looks it up.
    pub uid: Option<&'a str>,
}

#[derive(Clone, Debug)]
pub(crate) struct KubectlClient {
    pub(crate) program: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// kubectl's discovery cache, so that it never reads the user's own.
    pub(crate) cache: PathBuf,
}

impl KubectlClient {
    /// Runs kubectl with `input` on standard input, and returns its standard output.
    pub(crate) async fn run_command(
        &self,
        arguments: &[&str],
        input: &str,
    ) -> Result<String, Error> {
        let failed = |what| Error::io_error(what, &self.program);
        let mut child = Command::new(&self.program)
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", &self.cache)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed("start"))?;
        let mut stdin = child.stdin.take().expect("asked for above");
        // A kubectl that does not read its input closes it early; its own message then says what
        // was wrong.
        let _: std::io::Result<()> = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = child.wait_with_output().await.map_err(failed("wait for"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::Kubectl {
            arguments: arguments.join(" "),
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

/// The arguments of `kubectl create token`.
pub(crate) fn token_arguments(
    namespace: &str,
    account: &str,
    pod: Option<TokenPodRef<'_>>,
) -> Vec<String> {
    let mut arguments = ["create", "token", account, "--namespace", namespace]
        .map(str::to_owned)
        .to_vec();
    if let Some(TokenPodRef { name, uid }) = pod {
        arguments.push("--bound-object-kind=Pod".to_owned());
        arguments.push(format!("--bound-object-name={name}"));
        arguments.extend(uid.map(|uid| format!("--bound-object-uid={uid}")));
    }
    arguments
}

/// Writes a kubeconfig for `token` into `folder`, to a new file at each call.
pub(crate) fn write_kubeconfig(folder: &Path, server: &str, token: &str) -> Result<PathBuf, Error> {
    static KUBECONFIG_COUNT: AtomicU32 = AtomicU32::new(0);
    let path = folder.join(format!(
        "kubeconfig-{}",
        KUBECONFIG_COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    let authority = folder.join("ca.crt");
    let content = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": {"server": server, "certificate-authority": authority}}],
        "users": [{"name": "testbed", "user": {"token": token}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
        "current-context": "testbed",
    });
    // JSON is YAML: every reader of a kubeconfig accepts it.
    fs::write(&path, format!("{content:#}")).map_err(Error::io_error("write", &path))?;
    Ok(path)
}
