//! Tables, as `kubectl get` shows them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::columns::printed;
use super::kinds::Resource;
use super::value::{at, condition, flag, items, meta, number, text};

/// `cells` of one object.
pub(crate) fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Value {
    let name = meta(object, "name");
    let age = age(meta(object, "creationTimestamp"), now);
    if let Some(printed) = printed(resource) {
        let custom = printed
            .iter()
            .map(|column| custom_cell(column, object, now));
        return [name.into()].into_iter().chain(custom).collect();
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "nodes") => node(object, name, &age),
        ("", "pods") => pod(object, name, &age),
        ("", "namespaces") => json!([name, text(object, &["status", "phase"]), age]),
        ("", "configmaps") => json!([name, entries(object), age]),
        ("", "secrets") => json!([name, text(object, &["type"]), entries(object), age]),
        ("" | "events.k8s.io", "events") => event(object, name, now),
        ("apps", plural) => workload(plural, object, name, &age),
        ("coordination.k8s.io", "leases") => {
            json!([name, text(object, &["spec", "holderIdentity"]), age])
        }
        ("policy", "poddisruptionbudgets") => {
            let limit =
                |field: &str| at(object, &["spec", field]).map_or_else(|| "N/A".to_owned(), plain);
            json!([
                name,
                limit("minAvailable"),
                limit("maxUnavailable"),
                number(object, &["status", "disruptionsAllowed"]),
                age
            ])
        }
        ("storage.k8s.io", "volumeattachments") => {
            let spec = |path: &[&str]| text(&object["spec"], path).to_owned();
            let volume = spec(&["source", "persistentVolumeName"]);
            json!([
                name,
                spec(&["attacher"]),
                volume,
                spec(&["nodeName"]),
                flag(object, &["status", "attached"]),
                age
            ])
        }
        ("apiextensions.k8s.io", _) => json!([name, meta(object, "creationTimestamp")]),
        _ => json!([name, age]),
    }
}

/// How many entries a ConfigMap or a Secret has.
fn entries(object: &Value) -> usize {
    let maps = ["data", "binaryData"]
        .iter()
        .filter_map(|field| object.get(field)?.as_object());
    maps.map(serde_json::Map::len).sum()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

fn node(object: &Value, name: &str, age: &str) -> Value {
    let mut status = match condition(object, "Ready").map(|ready| text(ready, &["status"])) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if flag(object, &["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = at(object, &["metadata", "labels"]).and_then(Value::as_object);
    let roles = labels
        .into_iter()
        .flat_map(|labels| labels.keys())
        .filter_map(|key| key.strip_prefix("node-role.kubernetes.io/"));
    let roles: Vec<&str> = roles.collect();
    let address = |kind: &str| {
        let found = items(object, &["status", "addresses"])
            .iter()
            .find(|address| text(address, &["type"]) == kind);
        found
            .map_or("<none>", |address| text(address, &["address"]))
            .to_owned()
    };
    let info = |field: &str| text(object, &["status", "nodeInfo", field]);
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

fn pod(object: &Value, name: &str, age: &str) -> Value {
    let containers = items(object, &["spec", "containers"]).len();
    let statuses = items(object, &["status", "containerStatuses"]);
    let ready = statuses
        .iter()
        .filter(|status| flag(status, &["ready"]))
        .count();
    let restarts: i64 = statuses
        .iter()
        .map(|status| number(status, &["restartCount"]))
        .sum();
    let reason = text(object, &["status", "reason"]);
    let phase = if reason.is_empty() {
        text(object, &["status", "phase"])
    } else {
        reason
    };
    let finished = matches!(phase, "Succeeded" | "Failed");
    let status = match phase {
        _ if !meta(object, "deletionTimestamp").is_empty() && !finished => "Terminating",
        "Succeeded" => "Completed",
        other => other,
    };
    let field = |path: &[&str]| or_none(text(object, path)).to_owned();
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

fn event(object: &Value, name: &str, now: Timestamp) -> Value {
    let first_of = |fields: &[&str]| {
        fields
            .iter()
            .map(|field| text(object, &[field]).to_owned())
            .find(|time| !time.is_empty())
            .unwrap_or_default()
    };
    let last = match text(object, &["series", "lastObservedTime"]) {
        "" => first_of(&["lastTimestamp", "eventTime", "firstTimestamp"]),
        time => time.to_owned(),
    };
    let about = |field: &str| text(object, &["involvedObject", field]);
    let who = match text(object, &["source", "component"]) {
        "" => text(object, &["reportingComponent"]),
        component => component,
    };
    json!([
        age(&last, now),
        text(object, &["type"]),
        text(object, &["reason"]),
        format!("{}/{}", about("kind").to_lowercase(), about("name")),
        about("fieldPath"),
        who,
        text(object, &["message"]).trim(),
        age(&first_of(&["firstTimestamp", "eventTime"]), now),
        number(object, &["count"]).max(1),
        name,
    ])
}

fn workload(plural: &str, object: &Value, name: &str, age: &str) -> Value {
    let status = |field: &str| number(object, &["status", field]);
    let wanted = number(object, &["spec", "replicas"]);
    let containers = items(object, &["spec", "template", "spec", "containers"]);
    let list = |field: &str| {
        containers
            .iter()
            .map(|container| text(container, &[field]))
            .collect::<Vec<_>>()
            .join(",")
    };
    let (names, images) = (list("name"), list("image"));
    let selector = pairs(at(object, &["spec", "selector", "matchLabels"]));
    match plural {
        "daemonsets" => json!([
            name,
            status("desiredNumberScheduled"),
            status("currentNumberScheduled"),
            status("numberReady"),
            status("updatedNumberScheduled"),
            status("numberAvailable"),
            pairs(at(object, &["spec", "template", "spec", "nodeSelector"])),
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

fn pairs(map: Option<&Value>) -> String {
    let map = map.and_then(Value::as_object);
    let pairs: Vec<String> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", plain(value)))
        .collect();
    or_none(&pairs.join(",")).to_owned()
}

/// A cell of a custom column: simple paths, and `[?(@.type=="Ready")]` as conditions use it.
fn custom_cell(column: &Value, object: &Value, now: Timestamp) -> Value {
    let path = text(column, &["jsonPath"]).trim_start_matches('.');
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
                    .find(|item| text(item, &[field.trim()]) == wanted)
            });
            rest = after.trim_start_matches('.');
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        here = here.and_then(|value| value.get(&rest[..end]));
        rest = rest[end..].trim_start_matches('.');
    }
    match here {
        Some(Value::String(time)) if text(column, &["type"]) == "date" => age(time, now).into(),
        Some(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => value.clone(),
        Some(value @ (Value::Array(_) | Value::Object(_))) => value.to_string().into(),
        Some(Value::Null) | None => Value::Null,
    }
}

/// How long ago, in kubectl's words: two units while they are few.
fn age(time: &str, now: Timestamp) -> String {
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
            assert_eq!(age("1970-01-01T00:00:00Z", now), expected);
        }
    }
}
