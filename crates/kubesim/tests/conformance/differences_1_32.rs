//! What Kubernetes 1.32 answers otherwise than 1.36, which the embedded server follows. Used only
//! with `DOGWATCH_KUBERNETES=1.32`; Dogwatch relies on none of it.

use serde_json::Value;

use super::differences::each_field;
use super::servers::Answer;

/// Requests whose answers are not compared, by their titles.
const UNCOMPARED_REQUESTS: [&str; 1] = [
    // 1.32 answers 500 and no reason, 1.36 answers 400.
    "resourceVersion=nonsense",
];

/// Whether the answers to this request are not compared.
pub fn is_uncompared(title: &str) -> bool {
    UNCOMPARED_REQUESTS
        .iter()
        .any(|request| title.contains(request))
}

/// Removes what differs between the releases from an answer.
pub fn forgive_older_release(answer: &mut Answer) {
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

/// 1.32 prints times that are not set, and shows an empty list in the bookmark that ends the
/// initial events.
fn remove_printed_defaults(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| !(key == "creationTimestamp" && value.is_null()));
            map.remove("kubernetes.io/initial-events-list-blueprint");
            map.values_mut().for_each(remove_printed_defaults);
        }
        Value::Array(list) => list.iter_mut().for_each(remove_printed_defaults),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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
        cause["message"] = if is_type || message.starts_with("The disruption budget ") {
            Value::Null
        } else if message.starts_with("Duplicate value: ") {
            "Duplicate value".into()
        } else {
            let end = message.rsplit(": ").next().unwrap_or_default();
            end.into()
        };
    }
    causes.sort_by_key(Value::to_string);
    causes.dedup();
}
