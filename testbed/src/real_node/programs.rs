//! The kubelet of the node, and the scheduler that binds its pods.

use std::path::PathBuf;

use crate::{
    Error, binaries::GO_MODULE_FOLDER, go_program::GoProgramRecipe,
    kubernetes_release::KubernetesRelease,
};

const KUBELET_SOURCE: &str = include_str!("../../control-plane/cmd/kubelet/main.go");
const SCHEDULER_SOURCE: &str = include_str!("../../control-plane/cmd/kube-scheduler/main.go");

/// Paths of the programs; each file exists.
#[derive(Clone, Debug)]
pub struct NodePrograms {
    pub kubelet: PathBuf,
    pub kube_scheduler: PathBuf,
}

/// Builds what is missing, from the Go module of the control plane and of the same release. Blocks
/// for minutes.
pub fn find_or_build_programs() -> Result<NodePrograms, Error> {
    let release = KubernetesRelease::selected()?;
    let build = |name, source| {
        let recipe = GoProgramRecipe {
            name,
            module: GO_MODULE_FOLDER,
            go_mod_file: release.mod_file_name,
            folder: format!("real-node-{}", release.version()),
            sources: [&release.module_files()[..], &[source]].concat(),
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
