//! Makes the templates of the Helm chart (`deploy/chart/templates`) from the manifests in `deploy/`, so that both install the
//! same objects. A test of the CLI renders the chart with the real helm and compares it with `dogwatch manifests`.

mod dashboards;
mod overlays;

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::source_tree;

const CHART_FOLDER: &str = "deploy/chart";
/// The namespace in the manifests.
const NAMESPACE: &str = "dogwatch";
const RELEASE_NAMESPACE: &str = "{{ .Release.Namespace }}";
/// By which the policies about locks find Dogwatch's namespace. Helm does not label the namespace
/// that it makes, so the chart names it.
const NAMESPACE_LABEL: &str = "\
    namespaceSelector:
      matchLabels:
        app.kubernetes.io/part-of: dogwatch
";
const NAMED_NAMESPACE: &str = "\
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: {{ .Release.Namespace | quote }}
";
/// The line that overlay `deploy/policies-deny` changes.
const WARN_ACTIONS: &str = "validationActions: [Warn, Audit]";
const CHOSEN_ACTIONS: &str = r#"validationActions: {{ if eq .Values.admissionPolicies "deny" }}[Deny]{{ else }}[Warn, Audit]{{ end }}"#;

const WITH_POLICIES: &str = r#"ne .Values.admissionPolicies "off""#;
/// Remediation always has the policies that say who may request it.
const WITH_GUARDS: &str = r#"or .Values.remediation (ne .Values.admissionPolicies "off")"#;

/// Each folder or file of `deploy/`, and the condition under which it is installed; empty: always.
const SOURCES: [(&str, &str); 26] = [
    ("crds", ".Values.crds"),
    ("crds-hosts", ".Values.hostCrd"),
    ("base/quota.yaml", ""),
    ("base/rbac.yaml", ""),
    ("base/daemonset.yaml", ""),
    ("base/controller-rbac.yaml", ""),
    ("base/controller.yaml", ""),
    ("base/people-rbac.yaml", ".Values.peopleRoles"),
    ("delete-pods/rbac.yaml", ".Values.deletePods"),
    ("roll-first", ".Values.rollFirst"),
    ("machine-drain-rules/rbac.yaml", ".Values.machineDrainRules"),
    ("power/rbac.yaml", "or .Values.power .Values.remediation"),
    ("cluster-api/rbac.yaml", ".Values.clusterApi"),
    ("remediation", ".Values.remediation"),
    ("medik8s/rbac.yaml", ".Values.medik8s"),
    ("lock", ".Values.lock"),
    ("web", ".Values.web"),
    ("policies/rbac.yaml", WITH_GUARDS),
    ("policies/others.yaml", WITH_GUARDS),
    ("policies/requests.yaml", WITH_GUARDS),
    ("policies/remediation.yaml", WITH_GUARDS),
    ("policies/bmcs.yaml", WITH_GUARDS),
    ("policies", WITH_POLICIES),
    (
        "network-policies/network-policies.yaml",
        ".Values.networkPolicies",
    ),
    ("monitoring/pod-monitors.yaml", ".Values.podMonitors"),
    ("monitoring/prometheus-rule.yaml", ".Values.prometheusRule"),
];

/// A program's settings in `values.yaml`.
struct ChartWorkload {
    /// The line of its kind, and of its name.
    head: [&'static str; 2],
    /// The beginning of the names of its values: `coordinator` of `coordinatorImage`.
    values: &'static str,
    image_values: &'static str,
}

const WORKLOADS: [ChartWorkload; 4] = [
    ChartWorkload {
        head: ["kind: DaemonSet", "  name: dogwatch-coordinator"],
        values: "coordinator",
        image_values: "coordinator",
    },
    ChartWorkload {
        head: ["kind: Deployment", "  name: dogwatch-controller"],
        values: "controller",
        image_values: "controller",
    },
    ChartWorkload {
        head: ["kind: Deployment", "  name: dogwatch-lock"],
        values: "lock",
        image_values: "controller",
    },
    ChartWorkload {
        head: ["kind: Deployment", "  name: dogwatch-web"],
        values: "web",
        image_values: "controller",
    },
];

/// Writes the templates; returns the names of those that have changed.
pub fn write_templates() -> Result<Vec<String>> {
    let (current, wanted) = (read_templates()?, render_templates()?);
    let folder = templates_folder();
    fs::create_dir_all(&folder)?;
    let mut changed = Vec::new();
    for (name, text) in &wanted {
        if current.get(name) != Some(text) {
            fs::write(folder.join(name), text)?;
            changed.push(name.clone());
        }
    }
    for name in current.keys().filter(|name| !wanted.contains_key(*name)) {
        fs::remove_file(folder.join(name))?;
        changed.push(name.clone());
    }
    Ok(changed)
}

/// Fails if a template is not what `deploy/` makes it.
pub fn check_templates() -> Result<()> {
    let (current, wanted) = (read_templates()?, render_templates()?);
    let names = current.keys().chain(wanted.keys());
    let stale: Vec<&String> = names
        .filter(|name| current.get(*name) != wanted.get(*name))
        .collect();
    ensure!(
        stale.is_empty(),
        "stale in {CHART_FOLDER}/templates: {stale:?} (cargo xtask generate writes them)"
    );
    Ok(())
}

fn templates_folder() -> std::path::PathBuf {
    source_tree::workspace_root()
        .join(CHART_FOLDER)
        .join("templates")
}

/// The generated templates; those that are written by hand begin with an underscore, or are the notes.
fn read_templates() -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let Ok(folder) = fs::read_dir(templates_folder()) else {
        return Ok(found);
    };
    for entry in folder {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.context("the name of a template is no text")?;
        if is_manifest(name) && !name.starts_with('_') {
            found.insert(name.to_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(found)
}

fn render_templates() -> Result<BTreeMap<String, String>> {
    let mut templates = BTreeMap::new();
    for (source, condition) in SOURCES {
        for file in manifest_files(source)? {
            let name = file.replace('/', "-");
            // A file that is named by itself comes before the rest of its folder.
            if templates.contains_key(&name) {
                continue;
            }
            let path = source_tree::workspace_root().join("deploy").join(&file);
            let text = fs::read_to_string(&path)
                .with_context(|| format!("failed to read {}", path.display()))?;
            templates.insert(
                name,
                render_template(&file, &escape_braces(&text), condition),
            );
        }
    }
    templates.extend(dashboards::render_templates()?);
    Ok(templates)
}

/// Braces of the manifest are not helm's: alerts have templates of their own.
fn escape_braces(text: &str) -> String {
    text.replace("{{", r#"{{ "{{" }}"#)
}

fn is_manifest(name: &str) -> bool {
    Path::new(name).extension() == Some("yaml".as_ref())
}

/// The manifests of a folder of `deploy/`, without its kustomization; or the one file.
fn manifest_files(source: &str) -> Result<Vec<String>> {
    if is_manifest(source) {
        return Ok(vec![source.to_owned()]);
    }
    let folder = source_tree::workspace_root().join("deploy").join(source);
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("failed to list {source}"))? {
        let name = entry?.file_name();
        let name = name.to_str().context("the name of a manifest is no text")?;
        if is_manifest(name) && name != "kustomization.yaml" {
            files.push(format!("{source}/{name}"));
        }
    }
    files.sort();
    Ok(files)
}

fn render_template(file: &str, text: &str, condition: &str) -> String {
    let render = |document: &str| render_document(&overlays::add_overlays(document));
    let documents: Vec<String> = text.split("\n---\n").map(render).collect();
    let body = documents.join("---\n");
    let head = format!("# Generated from deploy/{file} by cargo xtask generate.\n");
    if condition.is_empty() {
        return format!("{head}{{{{- include \"dogwatch.checks\" . }}}}\n{body}");
    }
    format!("{head}{{{{- if {condition} }}}}\n{body}{{{{- end }}}}\n")
}

fn render_document(document: &str) -> String {
    let lines: Vec<&str> = document.trim_end().lines().collect();
    let is_in = |line: &&str| lines.contains(line);
    let workload = WORKLOADS.iter().find(|it| it.head.iter().all(is_in));
    let mut text: Vec<String> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        match workload {
            Some(workload) => workload.render_line(&lines, index, &mut text),
            None => text.push(render_line(line)),
        }
        if *line == "kind: CustomResourceDefinition" {
            // Helm would delete every object of the kind with it.
            let keep = "metadata:\n  annotations:\n    helm.sh/resource-policy: keep";
            text.push(keep.to_owned());
        }
    }
    let text = (text.join("\n") + "\n").replace(NAMESPACE_LABEL, NAMED_NAMESPACE);
    // The manifest's own line, after ours.
    text.replacen(
        "resource-policy: keep\nmetadata:\n",
        "resource-policy: keep\n",
        1,
    )
}

fn render_line(line: &str) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    match line.trim_start().split_once(": ") {
        Some((key @ ("namespace" | "name"), NAMESPACE)) => {
            format!("{indent}{key}: {RELEASE_NAMESPACE}")
        }
        Some(_) | None => line.replace(WARN_ACTIONS, CHOSEN_ACTIONS),
    }
}

impl ChartWorkload {
    fn render_line(&self, lines: &[&str], index: usize, text: &mut Vec<String>) {
        let line = lines[index];
        let (values, image) = (self.values, self.image_values);
        let indent = &line[..line.len() - line.trim_start().len()];
        match line.trim_start() {
            trimmed if trimmed.starts_with("image: ") => {
                text.push(format!(
                    "{indent}image: {{{{ .Values.{image}Image | quote }}}}"
                ));
                text.push(format!(
                    "{indent}{{{{- with .Values.imagePullPolicy }}}}\n{indent}imagePullPolicy: {{{{ . }}}}\n{indent}{{{{- end }}}}"
                ));
            }
            trimmed if trimmed.starts_with("serviceAccountName: ") => {
                text.push(line.to_owned());
                text.push(list_value(indent, "imagePullSecrets", "imagePullSecrets"));
                if values == "coordinator" {
                    text.push(list_value(
                        indent,
                        "nodeSelector",
                        "coordinatorNodeSelector",
                    ));
                }
            }
            "- controller" if values == "controller" => {
                text.push(line.to_owned());
                text.push(format!(
                    "{indent}{{{{- if .Values.remediation }}}}\n{indent}- --components=power,remediation,healer\n{indent}{{{{- end }}}}"
                ));
            }
            _ => text.push(render_line(line)),
        }
        for (block, name) in [("args:", "Args"), ("env:", "Env")] {
            if is_block_end(lines, index, block) {
                text.push(format!(
                    "            {{{{- with .Values.{values}{name} }}}}\n            {{{{- toYaml . | nindent 12 }}}}\n            {{{{- end }}}}"
                ));
            }
        }
    }
}

fn list_value(indent: &str, field: &str, value: &str) -> String {
    format!(
        "{indent}{{{{- with .Values.{value} }}}}\n{indent}{field}:\n{indent}  {{{{- toYaml . | nindent {} }}}}\n{indent}{{{{- end }}}}",
        indent.len() + 2
    )
}

/// Whether this is the last line of the container's block with this head.
fn is_block_end(lines: &[&str], index: usize, head: &str) -> bool {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let begin = lines[..=index].iter().rposition(|line| line.trim() == head);
    let Some(begin) = begin.filter(|begin| *begin < index) else {
        return false;
    };
    let is_inside = |line: &&str| depth(line) > depth(lines[begin]);
    let ends = lines.get(index + 1).is_none_or(|next| !is_inside(next));
    ends && lines[begin + 1..=index].iter().all(is_inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_variables_are_added_at_the_end_of_their_lists() {
        let manifest = "kind: DaemonSet\nmetadata:\n  name: dogwatch-coordinator\n  namespace: dogwatch\n          args:\n            - --a\n          env:\n            - name: X\n              value: y\n          ports: []";
        let text = render_document(manifest);
        let at = |word: &str| text.find(word).unwrap();
        assert!(at("- --a") < at(".Values.coordinatorArgs"), "{text}");
        assert!(at(".Values.coordinatorArgs") < at("env:"), "{text}");
        assert!(at("value: y") < at(".Values.coordinatorEnv"), "{text}");
        assert!(at(".Values.coordinatorEnv") < at("ports:"), "{text}");
        assert!(
            text.contains("  namespace: {{ .Release.Namespace }}\n"),
            "{text}"
        );
    }

    #[test]
    fn the_policies_about_locks_select_the_namespace_of_the_release_by_its_name() {
        let locks = include_str!("../../deploy/policies/locks.yaml");
        let text = render_template("policies/locks.yaml", locks, "");
        assert_eq!(text.matches(NAMED_NAMESPACE).count(), 2, "{text}");
        assert!(!text.contains(NAMESPACE_LABEL), "{text}");
    }

    #[test]
    fn a_definition_stays_when_the_release_is_removed() {
        let manifest = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: a\n";
        let text = render_document(manifest);
        let expected = "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n  name: a\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
