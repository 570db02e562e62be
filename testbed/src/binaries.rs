//! Where the control plane's programs are: with envtest's users, in our cache, or still to be built.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{Error, recipe::Recipe};

/// The Go module that builds the programs.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/control-plane");

/// Its files, which name the cache's sub-folder: a change of any of them builds anew.
const GO_MOD: &str = include_str!("../control-plane/go.mod");
const SOURCES: [&str; 6] = [
    GO_MOD,
    include_str!("../control-plane/go.sum"),
    include_str!("../control-plane/cmd/etcd/main.go"),
    include_str!("../control-plane/cmd/kube-apiserver/main.go"),
    include_str!("../control-plane/cmd/kube-controller-manager/main.go"),
    include_str!("../control-plane/cmd/kubectl/main.go"),
];

/// One program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The API server's store.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// The controllers that keep budgets, owners and namespaces real.
    KubeControllerManager,
    /// The client that people use.
    Kubectl,
}

impl Program {
    /// All of them, in the order in which they are built.
    pub const ALL: [Self; 4] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::Kubectl,
    ];

    /// The file's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
        }
    }

    /// Measured on 2 cores with nothing in Go's build cache; what is built first pays for what they share.
    fn usual_build_time(self) -> &'static str {
        match self {
            Self::KubeApiserver => "about 4 minutes",
            Self::KubeControllerManager => "about 2 minutes",
            Self::Etcd | Self::Kubectl => "about a minute",
        }
    }
}

/// The programs' paths; each exists.
#[derive(Clone, Debug)]
pub struct Binaries {
    etcd: PathBuf,
    kube_apiserver: PathBuf,
    kube_controller_manager: PathBuf,
    kubectl: PathBuf,
}

impl Binaries {
    /// Looks in `KUBEBUILDER_ASSETS`, then in the project's cache, and builds there what is still missing, with a word
    /// on standard error. Of several processes that come at once, one builds and the others wait. Blocks for minutes.
    pub fn find_or_build() -> Result<Self, Error> {
        let assets = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let find = |program| find_or_build(program, assets.as_deref());
        Ok(Self {
            etcd: find(Program::Etcd)?,
            kube_apiserver: find(Program::KubeApiserver)?,
            kube_controller_manager: find(Program::KubeControllerManager)?,
            kubectl: find(Program::Kubectl)?,
        })
    }

    /// Where a program is.
    pub fn path(&self, program: Program) -> &Path {
        match program {
            Program::Etcd => &self.etcd,
            Program::KubeApiserver => &self.kube_apiserver,
            Program::KubeControllerManager => &self.kube_controller_manager,
            Program::Kubectl => &self.kubectl,
        }
    }
}

/// The Kubernetes version that the Go module builds, as `v1.36.1`.
pub fn kubernetes_version() -> &'static str {
    GO_MOD
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
        .expect("go.mod requires k8s.io/kubernetes")
}

fn find_or_build(program: Program, assets: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(found) = assets
        .map(|folder| folder.join(program.name()))
        .filter(|path| path.is_file())
    {
        return Ok(found);
    }
    let recipe = Recipe {
        name: program.name(),
        module: MODULE,
        folder: format!("control-plane-{}", kubernetes_version()),
        sources: &SOURCES,
        usual_build_time: program.usual_build_time(),
        linker_flags: linker_flags(),
    };
    recipe.find_or_build()
}

/// Clients read the version, and a few decide by it.
fn linker_flags() -> String {
    let version = kubernetes_version();
    let (major, minor) = version
        .trim_start_matches('v')
        .split_once('.')
        .and_then(|(major, rest)| Some((major, rest.split_once('.')?.0)))
        .expect("a Kubernetes version has three parts");
    let package = "k8s.io/component-base/version";
    format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_version_that_clients_read_is_the_one_in_go_mod() {
        assert!(linker_flags().contains(&format!("gitVersion={} ", kubernetes_version())));
        assert!(linker_flags().ends_with("gitMinor=36"));
    }

    #[test]
    fn what_envtest_users_have_is_taken_before_anything_is_built() {
        let assets = tempfile::tempdir().unwrap();
        let etcd = assets.path().join("etcd");
        fs::write(&etcd, "").unwrap();
        assert_eq!(
            find_or_build(Program::Etcd, Some(assets.path())).unwrap(),
            etcd
        );
    }
}
