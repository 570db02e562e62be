//! The program and the manifests that are shipped.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use dogwatch_testbed::ControlPlane;
use serde_json::Value;

/// Builds the shipped binary. The binary that cargo builds beside a bench would differ: the
/// tests' dependencies enable features of shared dependencies.
pub fn build_coordinator() -> PathBuf {
    let cargo = Command::new(env!("CARGO"))
        .args(["build", "--release"])
        .args(["--package", "dogwatch-coordinator"])
        .args(["--bin", "dogwatch-coordinator"])
        .args(["--quiet", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs");
    assert!(cargo.status.success(), "cargo ended with {}", cargo.status);
    let messages = String::from_utf8(cargo.stdout).expect("cargo writes UTF-8");
    let built = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "dogwatch-coordinator")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    built.expect("cargo names what it has built")
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
