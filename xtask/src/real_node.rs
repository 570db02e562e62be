//! `cargo xtask test --real-node`: a virtual machine with a real kubelet runs the image of the coordinator.

use anyhow::Result;

use crate::{debian_packages, packaging::PACKAGE, source_tree, testbed};

/// Everything that the node is made of, and then the tests. They run one after the other: each emulates a machine.
pub fn run_real_node_tests() -> Result<()> {
    debian_packages::install_missing()?;
    testbed::prepare_parts(&["control-plane", "helm", "real-node"], None)?;
    // The images are made of them.
    let mut build = source_tree::test_cargo_command();
    build.args(["build", "-p", "dogwatch-cli", "-p", "dogwatch-coordinator"]);
    source_tree::run_command(&mut build)?;
    let mut tests = source_tree::test_cargo_command();
    tests
        .args(["test", "--package", PACKAGE, "--test=real_node"])
        .args(["--no-fail-fast", "--", "--ignored", "--test-threads=1"])
        .arg("--nocapture");
    source_tree::run_command(&mut tests)
}
