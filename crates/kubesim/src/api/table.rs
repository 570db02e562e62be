//! Rows of `kubectl get` tables.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::columns::additional_printer_columns;
use super::kinds::ServedResource;
use super::value::{bool_at, find_condition, list_at, meta_text, number_at, text_at, value_at};

/// The `cells` of one object.
pub(crate) fn row_cells(resource: &ServedResource, object: &Value, now: Timestamp) -> Value {
    let name = meta_text(object, "name");
    let age = format_age(meta_text(object, "creationTimestamp"), now);
    if let Some(printed) = additional_printer_columns(resource) {
        let custom = printed
            .iter()
            .map(|column| custom_cell(column, object, now));
        return [name.into()].into_iter().chain(custom).collect();
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "nodes") => node_cells(object, name, &age),
        ("", "pods") => pod_cells(object, name, &age),
        ("", "namespaces") => json!([name, text_at(object, &["status", "phase"]), age]),
        ("", "configmaps") => json!([name, count_data_entries(object), age]),
        ("", "secrets") => json!([
            name,
            text_at(object, &["type"]),
            count_data_entries(object),
            age
        ]),
        ("" | "events.k8s.io", "events") => event_cells(object, name, now),
        ("apps", plural) => workload_cells(plural, object, name, &age),
        ("coordination.k8s.io", "leases") => {
            json!([name, text_at(object, &["spec", "holderIdentity"]), age])
        }
        ("policy", "poddisruptionbudgets") => {
            let limit = |field: &str| {
                value_at(object, &["spec", field]).map_or_else(|| "N/A".to_owned(), plain_text)
            };
            json!([
                name,
                limit("minAvailable"),
                limit("maxUnavailable"),
                number_at(object, &["status", "disruptionsAllowed"]),
                age
            ])
        }
        ("storage.k8s.io", "volumeattachments") => {
            let spec = |path: &[&str]| text_at(&object["spec"], path).to_owned();
            let volume = spec(&["source", "persistentVolumeName"]);
            json!([
                name,
                spec(&["attacher"]),
                volume,
                spec(&["nodeName"]),
                bool_at(object, &["status", "attached"]),
                age
            ])
        }
        ("apiextensions.k8s.io", _) => json!([name, meta_text(object, "creationTimestamp")]),
        _ => json!([name, age]),
    }
}

/// Number of entries of a ConfigMap or a Secret.
fn count_data_entries(object: &Value) -> usize {
    let maps = ["data", "binaryData"]
        .iter()
        .filter_map(|field| object.get(field)?.as_object());
    maps.map(serde_json::Map::len).sum()
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

fn node_cells(object: &Value, name: &str, age: &str) -> Value {
    let mut status = match find_condition(object, "Ready").map(|ready| text_at(ready, &["status"]))
    {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if bool_at(object, &["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = value_at(object, &["metadata", "labels"]).and_then(Value::as_object);
    let roles = labels
        .into_iter()
        .flat_map(|labels| labels.keys())
        .filter_map(|key| key.strip_prefix("node-role.kubernetes.io/"));
    let roles: Vec<&str> = roles.collect();
    let address = |kind: &str| {
        let found = list_at(object, &["status", "addresses"])
            .iter()
            .find(|address| text_at(address, &["type"]) == kind);
        found
            .map_or("<none>", |address| text_at(address, &["address"]))
            .to_owned()
    };
    let info = |field: &str| text_at(object, &["status", "nodeInfo", field]);
    let unknown = |text: &str| {
        if text.is_empty() {
            "<unknown>".to_owned()
        } else {
            text.to_owned()
        }
    };
    json!([
        name,
        status,
        or_none(&roles.join(",")),
        age,
        info("kubeletVersion"),
        address("InternalIP"),
        address("ExternalIP"),
        unknown(info("osImage")),
        unknown(info("kernelVersion")),
        unknown(info("containerRuntimeVersion")),
    ])
}

fn pod_cells(object: &Value, name: &str, age: &str) -> Value {
    let containers = list_at(object, &["spec", "containers"]).len();
    let statuses = list_at(object, &["status", "containerStatuses"]);
    let ready = statuses
        .iter()
        .filter(|status| bool_at(status, &["ready"]))
        .count();
    let restarts: i64 = statuses
        .iter()
        .map(|status| number_at(status, &["restartCount"]))
        .sum();
    let reason = text_at(object, &["status", "reason"]);
    let phase = if reason.is_empty() {
        text_at(object, &["status", "phase"])
    } else {
        reason
    };
    let finished = matches!(phase, "Succeeded" | "Failed");
    let status = match phase {
        _ if !meta_text(object, "deletionTimestamp").is_empty() && !finished => "Terminating",
        "Succeeded" => "Completed",
        other => other,
    };
    let field = |path: &[&str]| or_none(text_at(object, path)).to_owned();
    json!([
        name,
        format!("{ready}/{containers}"),
        status,
        restarts.to_string(),
        age,
        field(&["status", "podIP"]),
        field(&["spec", "nodeName"]),
        field(&["status", "nominatedNodeName"]),
        "<none>",
    ])
}

fn event_cells(object: &Value, name: &str, now: Timestamp) -> Value {
    let first_of = |fields: &[&str]| {
        fields
            .iter()
            .map(|field| text_at(object, &[field]).to_owned())
            .find(|time| !time.is_empty())
            .unwrap_or_default()
    };
    let last = match text_at(object, &["series", "lastObservedTime"]) {
        "" => first_of(&["lastTimestamp", "eventTime", "firstTimestamp"]),
        time => time.to_owned(),
    };
    let about = |field: &str| text_at(object, &["involvedObject", field]);
    let who = match text_at(object, &["source", "component"]) {
        "" => text_at(object, &["reportingComponent"]),
        component => component,
    };
    json!([
        format_age(&last, now),
        text_at(object, &["type"]),
        text_at(object, &["reason"]),
        format!("{}/{}", about("kind").to_lowercase(), about("name")),
        about("fieldPath"),
        who,
        text_at(object, &["message"]).trim(),
        format_age(&first_of(&["firstTimestamp", "eventTime"]), now),
        number_at(object, &["count"]).max(1),
        name,
    ])
}

fn workload_cells(plural: &str, object: &Value, name: &str, age: &str) -> Value {
    let status = |field: &str| number_at(object, &["status", field]);
    let wanted = number_at(object, &["spec", "replicas"]);
    let containers = list_at(object, &["spec", "template", "spec", "containers"]);
    let list = |field: &str| {
        containers
            .iter()
            .map(|container| text_at(container, &[field]))
            .collect::<Vec<_>>()
            .join(",")
    };
    let (names, images) = (list("name"), list("image"));
    let selector = format_label_pairs(value_at(object, &["spec", "selector", "matchLabels"]));
    match plural {
        "daemonsets" => json!([
            name,
            status("desiredNumberScheduled"),
            status("currentNumberScheduled"),
            status("numberReady"),
            status("updatedNumberScheduled"),
            status("numberAvailable"),
            format_label_pairs(value_at(
                object,
                &["spec", "template", "spec", "nodeSelector"]
            )),
            age,
            names,
            images,
            selector,
        ]),
        "replicasets" => json!([
            name,
            wanted,
            status("replicas"),
            status("readyReplicas"),
            age,
            names,
            images,
            selector
        ]),
        "deployments" => json!([
            name,
            format!("{}/{wanted}", status("readyReplicas")),
            status("updatedReplicas"),
            status("availableReplicas"),
            age,
            names,
            images,
            selector,
        ]),
        _ => json!([name, format!("{}/{wanted}", status("readyReplicas")), age]),
    }
}

fn format_label_pairs(map: Option<&Value>) -> String {
    let map = map.and_then(Value::as_object);
    let pairs: Vec<String> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", plain_text(value)))
        .collect();
    or_none(&pairs.join(",")).to_owned()
}

/// A cell of a custom column: simple paths, and `[?(@.type=="Ready")]` as for conditions.
fn custom_cell(column: &Value, object: &Value, now: Timestamp) -> Value {
    let path = text_at(column, &["jsonPath"]).trim_start_matches('.');
    let mut here = Some(object);
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(filter) = rest.strip_prefix("[?(@.") {
            let Some((test, after)) = filter.split_once(")]") else {
                return Value::Null;
            };
            let (field, wanted) = test.split_once("==").unwrap_or((test, ""));
            let wanted = wanted.trim_matches(['"', '\'', ' ']);
            let list = here.and_then(Value::as_array);
            here = list.and_then(|list| {
                list.iter()
                    .find(|item| text_at(item, &[field.trim()]) == wanted)
            });
            rest = after.trim_start_matches('.');
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        here = here.and_then(|value| value.get(&rest[..end]));
        rest = rest[end..].trim_start_matches('.');
    }
    match here {
        Some(Value::String(time)) if text_at(column, &["type"]) == "date" => {
            format_age(time, now).into()
        }
        Some(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => value.clone(),
        Some(value @ (Value::Array(_) | Value::Object(_))) => value.to_string().into(),
        Some(Value::Null) | None => Value::Null,
    }
}

/// An age in kubectl's format: two units while the larger one is small.
fn format_age(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return "<unknown>".into();
    };
    let seconds = now.as_second() - time.as_second();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{unit}")
        } else {
            format!("{big}{unit}{small}{small_unit}")
        }
    };
    match seconds {
        ..=-2 => "<invalid>".into(),
        -1..=0 => "0s".into(),
        1..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_writes_them() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (660, "11m"),
            (10_860, "3h1m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
        ];
        for (seconds, expected) in cases {
            let now = Timestamp::from_second(seconds).unwrap();
            assert_eq!(format_age("1970-01-01T00:00:00Z", now), expected);
        }
    }
}
