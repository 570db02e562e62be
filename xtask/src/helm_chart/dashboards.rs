//! Grafana's dashboards as ConfigMaps, which Grafana's sidecar finds by their label.

use std::{fmt::Write as _, fs};

use anyhow::{Context, Result};

use super::{RELEASE_NAMESPACE, escape_braces};
use crate::source_tree;

const DASHBOARDS_FOLDER: &str = "deploy/monitoring/dashboards";

/// A template for each dashboard, by its name.
pub fn render_templates() -> Result<Vec<(String, String)>> {
    let folder = source_tree::workspace_root().join(DASHBOARDS_FOLDER);
    let mut templates = Vec::new();
    let entries =
        fs::read_dir(&folder).with_context(|| format!("failed to list {DASHBOARDS_FOLDER}"))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.context("the name of a dashboard is no text")?;
        let json = fs::read_to_string(&path)
            .with_context(|| format!("failed to read {}", path.display()))?;
        templates.push((
            format!("dashboard-{name}.yaml"),
            render_config_map(name, &json),
        ));
    }
    Ok(templates)
}

fn render_config_map(name: &str, json: &str) -> String {
    let mut text = format!(
        "# Generated from {DASHBOARDS_FOLDER}/{name}.json by cargo xtask generate.\n\
         {{{{- if .Values.dashboards }}}}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dogwatch-dashboard-{name}\n  \
         namespace: {RELEASE_NAMESPACE}\n  labels:\n    app.kubernetes.io/part-of: dogwatch\n    grafana_dashboard: \"1\"\n\
         data:\n  dogwatch-{name}.json: |\n"
    );
    for line in escape_braces(json).lines() {
        writeln!(text, "    {line}").expect("a String takes all");
    }
    text + "{{- end }}\n"
}
