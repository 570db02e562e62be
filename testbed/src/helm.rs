//! The real helm, built from its Go module into the project's cache, like the control plane.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use crate::{Error, go_program::GoProgramRecipe};

const GO_MOD: &str = include_str!("../helm/go.mod");
const GO_MODULE_SOURCES: [&str; 3] = [
    GO_MOD,
    include_str!("../helm/go.sum"),
    include_str!("../helm/cmd/helm/main.go"),
];

/// What one call of helm printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelmOutput {
    pub is_success: bool,
    pub stdout: String,
    pub stderr: String,
}

/// The program; builds it first if it is missing. Blocks for minutes.
pub fn find_or_build() -> Result<PathBuf, Error> {
    let recipe = GoProgramRecipe {
        name: "helm",
        module: concat!(env!("CARGO_MANIFEST_DIR"), "/helm"),
        folder: format!("helm-{}", helm_version()),
        go_mod_file: "go.mod",
        sources: GO_MODULE_SOURCES.to_vec(),
        usual_build_time: "about 2 minutes",
        linker_flags: "-s -w".to_owned(),
    };
    recipe.find_or_build()
}

/// The version that the Go module builds, for example `v4.3.1`.
pub fn helm_version() -> &'static str {
    GO_MOD
        .lines()
        .find_map(|line| line.trim().split_once("helm.sh/helm/v4 "))
        .expect("go.mod requires helm.sh/helm/v4")
        .1
}

/// Runs helm with these arguments. It keeps its files in `home`, and reads none of the user's.
pub async fn run_helm(
    arguments: &[&str],
    kubeconfig: &Path,
    home: &Path,
) -> Result<HelmOutput, Error> {
    let program = tokio::task::spawn_blocking(find_or_build)
        .await
        .expect("building does not panic")?;
    let output = Command::new(&program)
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(Error::io_error("run", &program))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(HelmOutput {
        is_success: output.status.success(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}
