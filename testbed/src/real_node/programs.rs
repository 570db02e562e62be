//! The kubelet of the node, and the scheduler that binds its pods.

use std::path::PathBuf;

use crate::{Error, go_program::GoProgramRecipe, kubernetes_release::KubernetesRelease};

/// A module of its own, because the kubelet needs more modules than the control plane.
const GO_MODULE_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/real-node/programs");
const REQUIRED_MODULES: &str = include_str!("../../real-node/programs/go.mod");
const MODULE_CHECKSUMS: &str = include_str!("../../real-node/programs/go.sum");
const KUBELET_SOURCE: &str = include_str!("../../real-node/programs/cmd/kubelet/main.go");
const SCHEDULER_SOURCE: &str = include_str!("../../real-node/programs/cmd/kube-scheduler/main.go");

/// Paths of the programs; each file exists.
#[derive(Clone, Debug)]
pub struct NodePrograms {
    pub kubelet: PathBuf,
    pub kube_scheduler: PathBuf,
}

/// Builds what is missing, of the newest release that the control plane has. Blocks for minutes.
pub fn find_or_build_programs() -> Result<NodePrograms, Error> {
    let release = KubernetesRelease::newest();
    let build = |name, source| {
        let recipe = GoProgramRecipe {
            name,
            module: GO_MODULE_FOLDER,
            go_mod_file: "go.mod",
            folder: format!("real-node-{}", release.version()),
            sources: vec![REQUIRED_MODULES, MODULE_CHECKSUMS, source],
            usual_build_time: "about 2 minutes",
            linker_flags: release.linker_flags(),
        };
        recipe.find_or_build()
    };
    Ok(NodePrograms {
        kubelet: build("kubelet", KUBELET_SOURCE)?,
        kube_scheduler: build("kube-scheduler", SCHEDULER_SOURCE)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelet_is_of_the_control_planes_release() {
        let version = KubernetesRelease::newest().version();
        let line = format!("k8s.io/kubernetes {version}\n");
        assert!(REQUIRED_MODULES.contains(&line), "{version}");
    }
}
