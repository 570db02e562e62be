//! The object that the page about NVSentinel shows is one that Dogwatch takes.

use dogwatch_api::node_reboot::{NodeReboot, RebootMethod};

const PAGE: &str = include_str!("../../../../docs/nvsentinel.md");

/// The template, as NVSentinel fills it in.
fn rendered_template() -> String {
    let template = PAGE.split("dogwatch-reboot.yaml: |\n").nth(1).unwrap();
    let template = template.split("```").next().unwrap();
    let values = [
        ("{{ .NodeName }}", "gpu-1"),
        ("{{ .HealthEventID }}", "0b5c"),
        ("{{ .RecommendedActionName }}", "RESTART_BM"),
    ];
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(name, value);
    }
    assert!(!text.contains("{{"), "{text}");
    text
}

#[test]
fn the_template_for_nvsentinel_is_a_node_reboot() {
    let asked: NodeReboot = serde_saphyr::from_str(&rendered_template()).unwrap();
    assert_eq!(
        asked.metadata.name.as_deref(),
        Some("maintenance-gpu-1-0b5c")
    );
    assert_eq!(asked.spec.node_name, "gpu-1");
    assert_eq!(asked.spec.reason.as_deref(), Some("RESTART_BM"));
    assert_eq!(asked.spec.method.unwrap_or_default(), RebootMethod::Reboot);
    let success = asked.spec.success.unwrap();
    assert_eq!(success.conditions[0].kind, "GpuPcieWatch");
}
