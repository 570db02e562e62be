//! Validation (422), limited to what Dogwatch can run into: names, labels, required and immutable
//! fields.

use serde_json::Value;

use super::kinds::{ServedResource, Subresource, schema_of_version};
use super::selector::ApiLabelSelector;
use super::status::{ApiError, ApiResult, FieldError};
use super::structural::CheckedPart;
use super::value::{list_at, meta_text, number_at, object_mut, text_at, value_at};

/// The longest name of a field manager, in bytes.
const MAX_FIELD_MANAGER_BYTES: usize = 128;

/// Checks a field manager; `options` is the kind of options that the refusal names.
pub(crate) fn validate_field_manager(options: &str, manager: &str) -> ApiResult<()> {
    if manager.len() <= MAX_FIELD_MANAGER_BYTES {
        return Ok(());
    }
    let field = FieldError::too_long("fieldManager", MAX_FIELD_MANAGER_BYTES);
    Err(ApiError::invalid("meta.k8s.io", options, "", &[field]))
}

pub(crate) fn validate_create(resource: &ServedResource, object: &Value) -> ApiResult<()> {
    let mut wrong = Vec::new();
    let name = meta_text(object, "name");
    if name.is_empty() {
        wrong.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if let Some(why) = name_error(resource, name) {
        wrong.push(FieldError::invalid("metadata.name", &name.into(), why));
    }
    validate_labels(object, &mut wrong);
    if resource.custom.is_none() {
        validate_required_fields(resource, object, &mut wrong);
    }
    if let Some(schema) = &resource.schema {
        wrong.extend(schema.validate_object(object, None, CheckedPart::WholeObject));
    }
    reject_invalid(resource, name, &wrong)
}

pub(crate) fn validate_update(
    resource: &ServedResource,
    subresource: Option<Subresource>,
    live: &Value,
    object: &Value,
) -> ApiResult<()> {
    let mut wrong = Vec::new();
    if meta_text(live, "uid") != meta_text(object, "uid") {
        // Two of the real server's checks report it.
        let fault = FieldError::invalid(
            "metadata.uid",
            &meta_text(object, "uid").into(),
            "field is immutable",
        );
        wrong.extend([fault.clone(), fault]);
    }
    validate_labels(object, &mut wrong);
    if resource.custom.is_none() {
        validate_required_fields(resource, object, &mut wrong);
        validate_immutable_fields(resource, live, object, &mut wrong);
        if resource.is_built_in_kind("", "nodes") {
            // The real server validates a Node twice on an update.
            validate_taints(object, &mut wrong);
        }
    }
    validate_finalizers(live, object, &mut wrong);
    if let Some(schema) = &resource.schema {
        let part = match subresource {
            Some(Subresource::Status) => CheckedPart::Status,
            Some(Subresource::Eviction | Subresource::Binding) | None => CheckedPart::WholeObject,
        };
        wrong.extend(schema.validate_object(object, Some(live), part));
    }
    reject_invalid(resource, meta_text(live, "name"), &wrong)
}

fn reject_invalid(resource: &ServedResource, name: &str, wrong: &[FieldError]) -> ApiResult<()> {
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

const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_MESSAGE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

fn name_error(resource: &ServedResource, name: &str) -> Option<&'static str> {
    let is_label = |part: &str| {
        !part.is_empty()
            && part.chars().all(|letter| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
            })
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    if resource.is_built_in_kind("", "namespaces") || resource.is_built_in_kind("", "services") {
        return (!is_label(name) || name.len() > 63).then_some(LABEL_MESSAGE);
    }
    if name.len() > 253 {
        return Some("must be no more than 253 bytes");
    }
    (!name.split('.').all(is_label)).then_some(SUBDOMAIN_MESSAGE)
}

fn validate_labels(object: &Value, wrong: &mut Vec<FieldError>) {
    let labels = value_at(object, &["metadata", "labels"]).and_then(Value::as_object);
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

/// Checks the fields that a kind requires.
fn validate_required_fields(
    resource: &ServedResource,
    object: &Value,
    wrong: &mut Vec<FieldError>,
) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") if list_at(object, &["spec", "containers"]).is_empty() => {
            wrong.push(FieldError::required("spec.containers", ""));
        }
        ("", "nodes") => validate_taints(object, wrong),
        ("apiextensions.k8s.io", _) => validate_schemas(object, wrong),
        ("apps", _) => validate_workload_selector(object, wrong),
        ("coordination.k8s.io", "leases") => validate_lease(object, wrong),
        ("policy", "poddisruptionbudgets") => {
            let both = ["minAvailable", "maxUnavailable"]
                .iter()
                .all(|field| value_at(object, &["spec", field]).is_some());
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

fn validate_taints(object: &Value, wrong: &mut Vec<FieldError>) {
    for (index, taint) in list_at(object, &["spec", "taints"]).iter().enumerate() {
        if text_at(taint, &["effect"]).is_empty() {
            wrong.push(FieldError::required(
                format!("metadata.taints[{index}].effect"),
                "",
            ));
        }
    }
}

fn validate_lease(object: &Value, wrong: &mut Vec<FieldError>) {
    for (field, least) in [("leaseDurationSeconds", 1), ("leaseTransitions", 0)] {
        if value_at(object, &["spec", field]).is_some()
            && number_at(object, &["spec", field]) < least
        {
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

/// Checks the fields that never change.
fn validate_immutable_fields(
    resource: &ServedResource,
    live: &Value,
    object: &Value,
    wrong: &mut Vec<FieldError>,
) {
    let mut freeze = |path: &[&str]| {
        if value_at(live, path) != value_at(object, path) {
            let value = value_at(object, path).cloned().unwrap_or_default();
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

/// Whether a pod's spec differs in a field that may not change.
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

/// A workload's selector must match its pod template.
fn validate_workload_selector(object: &Value, wrong: &mut Vec<FieldError>) {
    let template = &object["spec"]["template"];
    let selector = ApiLabelSelector::from_object(value_at(object, &["spec", "selector"]));
    if !selector.is_some_and(|selector| selector.matches_object(template)) {
        let labels = value_at(template, &["metadata", "labels"])
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

/// Checks that the schemas of a CustomResourceDefinition compile.
fn validate_schemas(object: &Value, wrong: &mut Vec<FieldError>) {
    for version in list_at(object, &["spec", "versions"]) {
        if let Some(Err(faults)) = schema_of_version(version) {
            wrong.extend(faults);
        }
    }
}

/// An object that is being deleted accepts no new finalizers.
fn validate_finalizers(live: &Value, object: &Value, wrong: &mut Vec<FieldError>) {
    if meta_text(live, "deletionTimestamp").is_empty() {
        return;
    }
    let old = list_at(live, &["metadata", "finalizers"]);
    let new: Vec<&str> = list_at(object, &["metadata", "finalizers"])
        .iter()
        .filter(|name| !old.contains(name))
        .filter_map(Value::as_str)
        .collect();
    if !new.is_empty() {
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{\"{}\"}}",
            new.join("\", \"")
        );
        // Two of the real server's checks report it.
        let fault = FieldError::forbidden("metadata.finalizers", &why);
        wrong.extend([fault.clone(), fault]);
    }
}
