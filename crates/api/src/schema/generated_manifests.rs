//! Compares the definitions in `deploy/` with the code. `cargo xtask generate` writes them; without
//! its variable this test only lists the stale files.

use std::{env, fs, path::Path};

use serde_json::Value;

use crate::{
    bare_metal_host, node_reboot, power_remediation, power_remediation_template, reboot_policy,
    reboot_schedule,
};

/// `cargo xtask generate` sets this variable, so that stale files are written.
const WRITE_VARIABLE: &str = "DOGWATCH_WRITE_GENERATED";

fn generated_manifests() -> [(&'static str, Value); 6] {
    [
        ("crds/nodereboots.yaml", node_reboot::crd::derived_crd()),
        (
            "crds/powerremediations.yaml",
            power_remediation::crd::derived_crd(),
        ),
        (
            "crds/powerremediationtemplates.yaml",
            power_remediation_template::crd::derived_crd(),
        ),
        (
            "crds/rebootpolicies.yaml",
            reboot_policy::crd::derived_crd(),
        ),
        (
            "crds/rebootschedules.yaml",
            reboot_schedule::crd::derived_crd(),
        ),
        (
            "crds-hosts/baremetalhosts.yaml",
            bare_metal_host::crd::derived_crd(),
        ),
    ]
}

#[test]
fn every_shipped_definition_is_what_the_code_makes() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let mut stale = Vec::new();
    for (path, definition) in generated_manifests() {
        let yaml = serde_saphyr::to_string(&definition).expect("a definition is YAML");
        let wanted = format!("# Made from code: cargo xtask generate\n{yaml}");
        let file = deploy.join(path);
        if fs::read_to_string(&file).is_ok_and(|text| text == wanted) {
            continue;
        }
        if env::var_os(WRITE_VARIABLE).is_some() {
            fs::write(&file, wanted).expect("deploy/ can be written");
            println!("wrote deploy/{path}");
        } else {
            stale.push(path);
        }
    }
    assert!(
        stale.is_empty(),
        "stale: {stale:?} (cargo xtask generate writes them)"
    );
}
