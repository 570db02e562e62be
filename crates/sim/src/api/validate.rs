//! What is refused with 422. Only what Dogwatch can run into: names, labels, required fields, and
//! what may never change.

use serde_json::Value;

use super::kinds::Resource;
use super::selector::LabelSelector;
use super::status::{ApiError, FieldError, Result};
use super::value::{at, items, meta, number, object_mut, text};

/// The longest field manager, in bytes.
const MAX_MANAGER: usize = 128;

/// Checks a field manager; `options` is where the refusal says it stood.
pub(crate) fn manager(options: &str, manager: &str) -> Result<()> {
    if manager.len() <= MAX_MANAGER {
        return Ok(());
    }
    let field = FieldError::too_long("fieldManager", MAX_MANAGER);
    Err(ApiError::invalid("meta.k8s.io", options, "", &[field]))
}

/// Checks a new object.
pub(crate) fn created(resource: &Resource, object: &Value) -> Result<()> {
    let mut wrong = Vec::new();
    let name = meta(object, "name");
    if name.is_empty() {
        wrong.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if let Some(why) = name_fault(resource, name) {
        wrong.push(FieldError::invalid("metadata.name", &name.into(), why));
    }
    common(object, &mut wrong);
    if resource.custom.is_none() {
        fields(resource, object, &mut wrong);
    }
    refuse(resource, name, &wrong)
}

/// Checks a changed object.
pub(crate) fn updated(resource: &Resource, live: &Value, object: &Value) -> Result<()> {
    let mut wrong = Vec::new();
    if meta(live, "uid") != meta(object, "uid") {
        // Two of the real server's checks find it.
        let fault = FieldError::invalid(
            "metadata.uid",
            &meta(object, "uid").into(),
            "field is immutable",
        );
        wrong.extend([fault.clone(), fault]);
    }
    common(object, &mut wrong);
    if resource.custom.is_none() {
        fields(resource, object, &mut wrong);
        frozen(resource, live, object, &mut wrong);
        if resource.is("", "nodes") {
            // The real server looks at a Node twice when it changes.
            taints(object, &mut wrong);
        }
    }
    new_finalizers(live, object, &mut wrong);
    refuse(resource, meta(live, "name"), &wrong)
}

fn refuse(resource: &Resource, name: &str, wrong: &[FieldError]) -> Result<()> {
    if wrong.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(
        &resource.group,
        &resource.kind,
        name,
        wrong,
    ))
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// What is wrong with a name.
fn name_fault(resource: &Resource, name: &str) -> Option<&'static str> {
    let is_label = |part: &str| {
        !part.is_empty()
            && part.chars().all(|letter| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
            })
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    if resource.is("", "namespaces") || resource.is("", "services") {
        return (!is_label(name) || name.len() > 63).then_some(LABEL);
    }
    if name.len() > 253 {
        return Some("must be no more than 253 bytes");
    }
    (!name.split('.').all(is_label)).then_some(SUBDOMAIN)
}

fn common(object: &Value, wrong: &mut Vec<FieldError>) {
    let labels = at(object, &["metadata", "labels"]).and_then(Value::as_object);
    for (_, value) in labels.into_iter().flatten() {
        let sound = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let text = value.as_str().unwrap_or_default();
        let edge =
            |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
        if text.len() > 63 {
            wrong.push(FieldError {
                reason: "FieldValueInvalid",
                field: "metadata.labels".into(),
                message: format!("Invalid value: {value}: must be no more than 63 bytes"),
            });
        } else if !text.chars().all(sound)
            || !edge(text.chars().next())
            || !edge(text.chars().last())
        {
            let why = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
            wrong.push(FieldError::invalid("metadata.labels", value, why));
        }
    }
}

/// Fields that a kind cannot do without.
fn fields(resource: &Resource, object: &Value, wrong: &mut Vec<FieldError>) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") if items(object, &["spec", "containers"]).is_empty() => {
            wrong.push(FieldError::required("spec.containers", ""));
        }
        ("", "nodes") => taints(object, wrong),
        ("apps", _) => selects_its_own(object, wrong),
        ("coordination.k8s.io", "leases") => lease(object, wrong),
        ("policy", "poddisruptionbudgets") => {
            let both = ["minAvailable", "maxUnavailable"]
                .iter()
                .all(|field| at(object, &["spec", field]).is_some());
            if both {
                let spec = object["spec"].clone();
                wrong.push(FieldError::invalid(
                    "spec",
                    &spec,
                    "minAvailable and maxUnavailable cannot be both set",
                ));
            }
        }
        _ => {}
    }
}

fn taints(object: &Value, wrong: &mut Vec<FieldError>) {
    for (index, taint) in items(object, &["spec", "taints"]).iter().enumerate() {
        if text(taint, &["effect"]).is_empty() {
            wrong.push(FieldError::required(
                format!("metadata.taints[{index}].effect"),
                "",
            ));
        }
    }
}

fn lease(object: &Value, wrong: &mut Vec<FieldError>) {
    for (field, least) in [("leaseDurationSeconds", 1), ("leaseTransitions", 0)] {
        if at(object, &["spec", field]).is_some() && number(object, &["spec", field]) < least {
            let value = object["spec"][field].clone();
            let why = if least == 1 {
                "must be greater than 0"
            } else {
                "must be greater than or equal to 0"
            };
            wrong.push(FieldError::invalid(format!("spec.{field}"), &value, why));
        }
    }
}

/// Fields that never change.
fn frozen(resource: &Resource, live: &Value, object: &Value, wrong: &mut Vec<FieldError>) {
    let mut freeze = |path: &[&str]| {
        if at(live, path) != at(object, path) {
            let value = at(object, path).cloned().unwrap_or_default();
            wrong.push(FieldError::invalid(
                path.join("."),
                &value,
                "field is immutable",
            ));
        }
    };
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("apps", "daemonsets" | "deployments" | "replicasets") => freeze(&["spec", "selector"]),
        ("", "pods") if pod_spec_differs(live, object) => {
            let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
            wrong.push(FieldError::forbidden("spec", why));
        }
        _ => {}
    }
}

/// Whether more of a pod's spec differs than may change.
fn pod_spec_differs(live: &Value, object: &Value) -> bool {
    let fixed = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        for field in [
            "activeDeadlineSeconds",
            "tolerations",
            "terminationGracePeriodSeconds",
        ] {
            object_mut(&mut spec).remove(field);
        }
        for list in ["containers", "initContainers"] {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                object_mut(container).remove("image");
            }
        }
        spec
    };
    live["spec"] != object["spec"] && fixed(live) != fixed(object)
}

/// A workload must select the pods that it makes.
fn selects_its_own(object: &Value, wrong: &mut Vec<FieldError>) {
    let template = &object["spec"]["template"];
    let selector = LabelSelector::from_object(at(object, &["spec", "selector"]));
    if !selector.is_some_and(|selector| selector.matches(template)) {
        let labels = at(template, &["metadata", "labels"])
            .cloned()
            .unwrap_or_default();
        let why = "`selector` does not match template `labels`";
        wrong.push(FieldError::invalid(
            "spec.template.metadata.labels",
            &labels,
            why,
        ));
    }
}

/// What is being deleted takes no new finalizers.
fn new_finalizers(live: &Value, object: &Value, wrong: &mut Vec<FieldError>) {
    if meta(live, "deletionTimestamp").is_empty() {
        return;
    }
    let old = items(live, &["metadata", "finalizers"]);
    let new: Vec<&str> = items(object, &["metadata", "finalizers"])
        .iter()
        .filter(|name| !old.contains(name))
        .filter_map(Value::as_str)
        .collect();
    if !new.is_empty() {
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{\"{}\"}}",
            new.join("\", \"")
        );
        // Two of the real server's checks find it.
        let fault = FieldError::forbidden("metadata.finalizers", &why);
        wrong.extend([fault.clone(), fault]);
    }
}
