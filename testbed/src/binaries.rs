//! Finds the control plane's programs in envtest's folder or in our cache, or builds them.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{Error, go_program::GoProgramRecipe, kubernetes_release::KubernetesRelease};

/// The Go module that builds the programs.
const GO_MODULE_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/control-plane");

/// Its programs. With the release's own files, a hash of them names the cache's subfolder, so a
/// change of any of them triggers a new build.
const PROGRAM_SOURCES: [&str; 4] = [
    include_str!("../control-plane/cmd/etcd/main.go"),
    include_str!("../control-plane/cmd/kube-apiserver/main.go"),
    include_str!("../control-plane/cmd/kube-controller-manager/main.go"),
    include_str!("../control-plane/cmd/kubectl/main.go"),
];

/// A program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlPlaneProgram {
    Etcd,
    KubeApiserver,
    /// Runs the controllers for budgets, owners and namespaces.
    KubeControllerManager,
    Kubectl,
}

impl ControlPlaneProgram {
    pub const ALL: [Self; 4] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::Kubectl,
    ];

    /// The program's file name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
        }
    }

    /// Measured on 2 cores with an empty Go build cache; the first build includes the shared
    /// packages.
    fn usual_build_time(self) -> &'static str {
        match self {
            Self::KubeApiserver => "about 4 minutes",
            Self::KubeControllerManager => "about 2 minutes",
            Self::Etcd | Self::Kubectl => "about a minute",
        }
    }
}

/// Paths of the programs; each file exists.
#[derive(Clone, Debug)]
pub struct ControlPlaneBinaries {
    etcd: PathBuf,
    kube_apiserver: PathBuf,
    kube_controller_manager: PathBuf,
    kubectl: PathBuf,
}

impl ControlPlaneBinaries {
    /// Looks in `KUBEBUILDER_ASSETS`, then in the project's cache, and builds there what is
    /// missing, with a message on standard error. If several processes call it at once, one builds
    /// and the others wait. Blocks for minutes.
    pub fn find_or_build() -> Result<Self, Error> {
        let assets = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let release = KubernetesRelease::selected()?;
        let find = |program| find_or_build(program, release, assets.as_deref());
        Ok(Self {
            etcd: find(ControlPlaneProgram::Etcd)?,
            kube_apiserver: find(ControlPlaneProgram::KubeApiserver)?,
            kube_controller_manager: find(ControlPlaneProgram::KubeControllerManager)?,
            kubectl: find(ControlPlaneProgram::Kubectl)?,
        })
    }

    pub fn program_path(&self, program: ControlPlaneProgram) -> &Path {
        match program {
            ControlPlaneProgram::Etcd => &self.etcd,
            ControlPlaneProgram::KubeApiserver => &self.kube_apiserver,
            ControlPlaneProgram::KubeControllerManager => &self.kube_controller_manager,
            ControlPlaneProgram::Kubectl => &self.kubectl,
        }
    }
}

fn find_or_build(
    program: ControlPlaneProgram,
    release: &KubernetesRelease,
    assets: Option<&Path>,
) -> Result<PathBuf, Error> {
    if let Some(found) = assets
        .map(|folder| folder.join(program.name()))
        .filter(|path| path.is_file())
    {
        return Ok(found);
    }
    let recipe = GoProgramRecipe {
        name: program.name(),
        module: GO_MODULE_FOLDER,
        go_mod_file: release.mod_file_name,
        folder: format!("control-plane-{}", release.version()),
        sources: [&release.module_files()[..], &PROGRAM_SOURCES].concat(),
        usual_build_time: program.usual_build_time(),
        linker_flags: release.linker_flags(),
    };
    recipe.find_or_build()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_envtest_users_have_is_taken_before_anything_is_built() {
        let assets = tempfile::tempdir().unwrap();
        let etcd = assets.path().join("etcd");
        fs::write(&etcd, "").unwrap();
        assert_eq!(
            find_or_build(
                ControlPlaneProgram::Etcd,
                KubernetesRelease::selected().unwrap(),
                Some(assets.path())
            )
            .unwrap(),
            etcd
        );
    }
}
