//! What Kubernetes 1.32 answers otherwise than 1.36, which the embedded server follows. Used only
//! with `DOGWATCH_KUBERNETES=1.32`; Dogwatch relies on none of it.

use dogwatch_testbed::KubernetesRelease;
use serde_json::Value;

use super::differences::each_field;
use super::servers::Answer;

fn is_real_server_1_32() -> bool {
    let release = KubernetesRelease::selected().expect("a release that can be built");
    release.minor() == "1.32"
}

/// Requests whose answers are not compared, by their titles.
const UNCOMPARED_REQUESTS: [&str; 1] = [
    // 1.32 answers 500 and no reason, 1.36 answers 400.
    "resourceVersion=nonsense",
];

/// Messages with any of these parts are not compared.
const UNCOMPARED_MESSAGES: [&str; 2] = [
    // 1.32 names its numbers.
    "The disruption budget ",
    // It lists the fields that may be changed, and prints a Go struct.
    "pod updates may not change fields",
];

/// Whether the answers to this request are not compared with those of the real server.
pub fn is_uncompared(title: &str) -> bool {
    let mut requests = UNCOMPARED_REQUESTS.iter();
    is_real_server_1_32() && requests.any(|request| title.contains(request))
}

/// The part of an expected message that both releases say.
pub fn common_part(message: &str) -> &str {
    if is_real_server_1_32() {
        end_of_message(message)
    } else {
        message
    }
}

/// Removes what the real server answers otherwise because it is that release.
pub fn forgive_1_32(answer: &mut Answer) {
    if !is_real_server_1_32() {
        return;
    }
    remove_generation_of_pods(&mut answer.body);
    remove_printed_defaults(&mut answer.body);
    if answer.code == 422 {
        // It joins the messages of the causes.
        answer.body["message"] = Value::Null;
    }
    each_field(&mut answer.body, "causes", |causes| {
        let causes = causes.as_array_mut();
        causes.into_iter().for_each(forgive_causes);
    });
}

/// Pods have counted their generation since 1.33. An item of a list names no kind, so items of all
/// kinds lose it.
fn remove_generation_of_pods(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let kind = map.get("kind").and_then(Value::as_str);
            if matches!(kind, None | Some("Pod" | "PartialObjectMetadata"))
                && let Some(Value::Object(metadata)) = map.get_mut("metadata")
            {
                metadata.remove("generation");
            }
            map.values_mut().for_each(remove_generation_of_pods);
        }
        Value::Array(list) => list.iter_mut().for_each(remove_generation_of_pods),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// 1.32 prints times that are not set, shows an empty list in the bookmark that ends the initial
/// events, and sends another bookmark when the watch ends.
fn remove_printed_defaults(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| !(key == "creationTimestamp" && value.is_null()));
            map.remove("kubernetes.io/initial-events-list-blueprint");
            map.values_mut().for_each(remove_printed_defaults);
        }
        Value::Array(list) => {
            list.retain(|event| {
                event["type"] != "BOOKMARK"
                    || event["object"]["metadata"]["annotations"].is_object()
            });
            list.iter_mut().for_each(remove_printed_defaults);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What follows the refused value in a message.
fn end_of_message(message: &str) -> &str {
    message.rsplit(": ").next().unwrap_or_default()
}

/// 1.32 prints refused values in another way, names the types of numbers otherwise, and explains a
/// spent budget by its numbers. Fields, reasons and the ends of the messages are the same.
fn forgive_causes(causes: &mut Vec<Value>) {
    causes.retain(|cause| cause["field"] != "<nil>");
    for cause in &mut *causes {
        let is_type = cause["reason"] == "FieldValueTypeInvalid";
        let Some(message) = cause["message"].as_str() else {
            continue;
        };
        let is_told_otherwise = UNCOMPARED_MESSAGES
            .iter()
            .any(|part| message.contains(part));
        cause["message"] = if is_type || is_told_otherwise {
            Value::Null
        } else if message.starts_with("Duplicate value: ") {
            "Duplicate value".into()
        } else {
            end_of_message(message).into()
        };
    }
}
