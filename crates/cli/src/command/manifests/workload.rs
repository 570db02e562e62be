//! Puts the operator's settings into the text of a DaemonSet or Deployment. Comments stay.

use dogwatch_k8s::fleet::WorkloadContainer;
use serde_json::Value;

/// The controller's components flag, on its command line and, as a variable, in its environment.
const COMPONENTS_FLAG: &str = "--components";
const COMPONENTS_VARIABLE: &str = "DOGWATCH_COMPONENTS";
const REMEDIATION_COMPONENT: &str = "remediation";
/// The default components and remediation, which the program's own default leaves out.
const COMPONENTS_WITH_REMEDIATION: &str = "--components=power,remediation,healer";

/// The settings of the manifest's only container.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct WorkloadSettings {
    pub(super) image: String,
    /// The installed container, if any: its flags and environment are kept.
    pub(super) kept: Option<WorkloadContainer>,
    pub(super) remediates: bool,
}

impl WorkloadSettings {
    pub(super) fn apply_to_manifest(&self, manifest: &str) -> String {
        let mut lines = manifest.lines().peekable();
        let mut text = Vec::new();
        while let Some(line) = lines.next() {
            let indent = leading_indent(line);
            match line.trim() {
                "args:" => {
                    let is_item = |next: &&str| leading_indent(next).len() > indent.len();
                    let block = std::iter::from_fn(|| lines.next_if(is_item));
                    let shipped: Vec<&str> = block
                        .filter_map(|item| item.trim().strip_prefix("- "))
                        .collect();
                    text.push(line.to_owned());
                    text.extend(
                        self.merge_args(&shipped)
                            .iter()
                            .map(|it| format!("{indent}  - {it}")),
                    );
                }
                "env:" => {
                    text.push(line.to_owned());
                    text.extend(
                        self.extra_env_lines(manifest)
                            .iter()
                            .map(|it| format!("{indent}  - {it}")),
                    );
                }
                trimmed if trimmed.starts_with("image: ") => {
                    text.push(format!("{indent}image: {}", self.image));
                }
                _ => text.push(line.to_owned()),
            }
        }
        text.into_iter().map(|line| line + "\n").collect()
    }

    /// The installed arguments, and the shipped flags that they lack.
    fn merge_args(&self, shipped: &[&str]) -> Vec<String> {
        let Some(kept) = &self.kept else {
            let shipped = shipped.iter().map(ToString::to_string).collect();
            return if self.remediates {
                insert_remediation_flag(shipped)
            } else {
                shipped
            };
        };
        let mut args = kept.args.clone();
        let lacks = |it: &&&str| !args.iter().any(|arg| flag_name(arg) == flag_name(it));
        let lacking: Vec<String> = shipped
            .iter()
            .filter(lacks)
            .map(ToString::to_string)
            .collect();
        args.extend(lacking);
        if self.remediates && !self.has_components_variable() {
            args = add_remediation_arg(args);
        }
        args.iter()
            .map(|arg| Value::from(arg.as_str()).to_string())
            .collect()
    }

    /// The installed variables that the manifest lacks, one line each.
    fn extra_env_lines(&self, manifest: &str) -> Vec<String> {
        let kept = self.kept.iter().flat_map(|kept| &kept.env);
        let ours = |it: &&Value| {
            let name = it["name"].as_str().unwrap_or_default();
            !manifest
                .lines()
                .any(|line| line.trim() == format!("- name: {name}"))
        };
        kept.filter(ours)
            .map(|it| self.adapt_variable(it).to_string())
            .collect()
    }

    fn adapt_variable(&self, variable: &Value) -> Value {
        let mut variable = variable.clone();
        if self.remediates
            && self.has_components_variable()
            && variable["name"] == COMPONENTS_VARIABLE
        {
            let parts = variable["value"].as_str().unwrap_or_default();
            variable["value"] = add_remediation(parts).into();
        }
        variable
    }

    /// Whether only the environment selects the components; a flag would override it.
    fn has_components_variable(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| {
            let mut args = kept.args.iter();
            !args.any(|arg| flag_name(arg) == COMPONENTS_FLAG)
                && components_variable(kept).is_some()
        })
    }
}

pub(super) fn runs_remediation(container: &WorkloadContainer) -> bool {
    let mut args = container.args.iter();
    let flag = args.find(|arg| flag_name(arg) == COMPONENTS_FLAG);
    let flag = flag.map(|flag| match flag.split_once('=') {
        Some((_, parts)) => parts,
        None => args.next().map_or("", String::as_str),
    });
    let parts = flag
        .or_else(|| components_variable(container))
        .unwrap_or_default();
    has_remediation(parts)
}

/// Whether the flag or its environment variable has this value.
pub(super) fn has_setting(
    container: &WorkloadContainer,
    flag: &str,
    variable: &str,
    value: &str,
) -> bool {
    let whole = format!("{flag}={value}");
    let mut pairs = container.args.windows(2);
    container.args.contains(&whole)
        || pairs.any(|pair| pair[0] == flag && pair[1] == value)
        || container
            .env
            .iter()
            .any(|it| it["name"] == variable && it["value"] == value)
}

fn components_variable(container: &WorkloadContainer) -> Option<&str> {
    let variable = |it: &&Value| it["name"] == COMPONENTS_VARIABLE;
    container.env.iter().find(variable)?["value"].as_str()
}

fn has_remediation(parts: &str) -> bool {
    parts
        .split(',')
        .any(|part| part.trim() == REMEDIATION_COMPONENT)
}

fn add_remediation(parts: &str) -> String {
    if has_remediation(parts) {
        return parts.to_owned();
    }
    format!("{parts},{REMEDIATION_COMPONENT}")
}

/// Adds remediation to the components of the command line.
fn add_remediation_arg(mut args: Vec<String>) -> Vec<String> {
    let Some(at) = args
        .iter()
        .position(|arg| flag_name(arg) == COMPONENTS_FLAG)
    else {
        return insert_remediation_flag(args);
    };
    match args[at].split_once('=') {
        Some((flag, parts)) => args[at] = format!("{flag}={}", add_remediation(parts)),
        None => {
            if let Some(parts) = args.get_mut(at + 1) {
                *parts = add_remediation(parts);
            }
        }
    }
    args
}

/// Inserts the flag after the subcommand.
fn insert_remediation_flag(mut args: Vec<String>) -> Vec<String> {
    args.insert(args.len().min(1), COMPONENTS_WITH_REMEDIATION.to_owned());
    args
}

/// The `--flag` of `--flag=value`.
fn flag_name(arg: &str) -> &str {
    arg.split('=').next().unwrap_or(arg)
}

fn leading_indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MANIFEST: &str = "\
kind: Deployment
spec:
  containers:
    - name: controller
      # Ours.
      image: dogwatch:0.1.0
      args:
        - controller
        - --log-format=json
      env:
        - name: DOGWATCH_NAMESPACE
          value: here
      ports: []
";

    fn container(text: &str) -> Value {
        let object: Value = serde_saphyr::from_str(text).unwrap();
        object["spec"]["containers"][0].clone()
    }

    fn kept(args: &[&str], env: &[Value]) -> WorkloadContainer {
        WorkloadContainer {
            args: args.iter().map(ToString::to_string).collect(),
            env: env.to_vec(),
            ..WorkloadContainer::default()
        }
    }

    #[test]
    fn flags_and_variables_that_somebody_added_stay_and_what_a_new_version_needs_is_added() {
        let parts = json!({ "name": "DOGWATCH_MAX_FENCED", "value": "2" });
        let namespace = json!({ "name": "DOGWATCH_NAMESPACE", "value": "elsewhere" });
        let args = [
            "controller",
            "--lock-listen",
            "0.0.0.0:8443",
            "--settle=\"1m\"",
        ];
        let chosen = WorkloadSettings {
            image: "registry/dogwatch:2".into(),
            kept: Some(kept(&args, &[namespace, parts.clone()])),
            remediates: false,
        };
        let text = chosen.apply_to_manifest(MANIFEST);
        assert!(text.contains("# Ours."), "{text}");
        let found = container(&text);
        assert_eq!(found["image"], "registry/dogwatch:2");
        let expected = json!([
            "controller",
            "--lock-listen",
            "0.0.0.0:8443",
            "--settle=\"1m\"",
            "--log-format=json"
        ]);
        assert_eq!(found["args"], expected);
        let env = json!([parts, { "name": "DOGWATCH_NAMESPACE", "value": "here" }]);
        assert_eq!(found["env"], env);
        assert_eq!(found["ports"], json!([]));
    }

    #[test]
    fn remediation_is_added_to_the_parts_that_run_wherever_they_are_named() {
        let variable = |value: &str| json!({ "name": COMPONENTS_VARIABLE, "value": value });
        let table: [(Option<WorkloadContainer>, &str, &str); 6] = [
            (None, COMPONENTS_WITH_REMEDIATION, ""),
            (
                Some(kept(&["controller"], &[])),
                COMPONENTS_WITH_REMEDIATION,
                "",
            ),
            (
                Some(kept(&["controller", "--components=power,healer"], &[])),
                "--components=power,healer,remediation",
                "",
            ),
            (
                Some(kept(
                    &["controller", "--components", "power,remediation"],
                    &[],
                )),
                "power,remediation",
                "",
            ),
            (
                Some(kept(&["controller"], &[variable("power")])),
                "controller",
                "power,remediation",
            ),
            // The flag overrides the variable.
            (
                Some(kept(
                    &["controller", "--components=power"],
                    &[variable("healer")],
                )),
                "--components=power,remediation",
                "healer",
            ),
        ];
        for (kept, flag, value) in table {
            let chosen = WorkloadSettings {
                image: "i".into(),
                kept,
                remediates: true,
            };
            let found = container(&chosen.apply_to_manifest(MANIFEST));
            let args = found["args"].as_array().unwrap();
            assert!(args.contains(&flag.into()), "{args:?}");
            let env = found["env"].as_array().unwrap().iter();
            let named = |it: &&Value| it["name"] == COMPONENTS_VARIABLE;
            let found = env.clone().find(named);
            assert_eq!(found.map_or("", |it| it["value"].as_str().unwrap()), value);
            let both = |it: &&Value| it.as_str().unwrap().starts_with(COMPONENTS_FLAG);
            assert!(args.iter().filter(both).count() <= 1, "{args:?}");
        }
    }

    #[test]
    fn whether_a_controller_remediates_is_read_as_the_controller_reads_it() {
        let variable = |value: &str| json!({ "name": COMPONENTS_VARIABLE, "value": value });
        for (container, expected) in [
            (kept(&["controller"], &[]), false),
            (kept(&["--components=power,remediation"], &[]), true),
            (kept(&["--components", "remediation"], &[]), true),
            (
                kept(&["--components=power"], &[variable("remediation")]),
                false,
            ),
            (kept(&[], &[variable("power, remediation")]), true),
        ] {
            assert_eq!(runs_remediation(&container), expected, "{container:?}");
        }
    }
}
