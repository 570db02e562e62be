//! Compares the definitions in `deploy/` and their pages in `docs/reference` with the code. `cargo xtask generate` writes them; without
//! its variable this test only lists the stale files.

use std::{env, fs, path::Path};

use serde_json::Value;

use super::reference_page::render_reference_page;
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

/// The page that explains each kind, in the order of the definitions.
const GUIDES: [&str; 6] = [
    "ask-for-a-reboot",
    "remediation",
    "remediation",
    "reboot-policy",
    "schedules",
    "hosts",
];

/// Every generated file, by its path from the workspace's folder.
fn generated_files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for ((path, definition), guide) in generated_manifests().into_iter().zip(GUIDES) {
        let yaml = serde_saphyr::to_string(&definition).expect("a definition is YAML");
        let text = format!("# Made from code: cargo xtask generate\n{yaml}");
        files.push((format!("deploy/{path}"), text));
        let kind = definition["spec"]["names"]["singular"].as_str();
        let kind = kind.expect("a definition names its kind");
        let page = render_reference_page(&definition, guide);
        files.push((format!("docs/reference/{kind}.md"), page));
    }
    files
}

#[test]
fn every_shipped_definition_and_its_page_is_what_the_code_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut stale = Vec::new();
    for (path, wanted) in generated_files() {
        let file = root.join(&path);
        if fs::read_to_string(&file).is_ok_and(|text| text == wanted) {
            continue;
        }
        if env::var_os(WRITE_VARIABLE).is_some() {
            fs::write(&file, wanted).expect("the tree can be written");
            println!("wrote {path}");
        } else {
            stale.push(path);
        }
    }
    assert!(
        stale.is_empty(),
        "stale: {stale:?} (cargo xtask generate writes them)"
    );
}
