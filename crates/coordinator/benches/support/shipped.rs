//! The program and the manifests that are shipped.

use std::path::PathBuf;

use dogwatch_testbed::ControlPlane;
use dogwatch_testbed::bench::build_program;

pub fn build_coordinator() -> PathBuf {
    build_program("release", "dogwatch-coordinator", "dogwatch-coordinator")
}

/// Installs the account of the coordinators, with its rights.
pub async fn install_rights(plane: &ControlPlane) {
    let manifests = [
        include_str!("../../../../deploy/base/namespace.yaml"),
        include_str!("../../../../deploy/base/rbac.yaml"),
    ]
    .join("\n---\n");
    let installed = plane.install_manifests(&manifests, &[]);
    installed.await.expect("the shipped manifests");
    let in_force = plane.wait_until_rights_are_in_force();
    in_force.await.expect("the rights are in force");
}
