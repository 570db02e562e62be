//! What health checkers and device plugins write on a Node: conditions, taints, resources.

use http::Method;
use serde_json::{Value, json};

use super::line_words::LineWords;
use super::scenario_cluster::ScenarioCluster;

/// One fact that a program writes on a Node.
#[derive(Debug, Clone)]
pub enum NodeFact {
    /// A condition, written now.
    Condition {
        kind: String,
        status: String,
    },
    Taint(String),
    /// The taint with this key is gone.
    NoTaint(String),
    /// The allocatable amount of a resource.
    Resource {
        name: String,
        amount: String,
    },
}

pub(super) const NODE_FACT_COMMANDS: [&str; 4] = ["condition", "taint", "untaint", "resource"];

/// Parses the words after the Node's name.
pub(super) fn parse_node_fact(name: &str, words: &mut LineWords) -> Result<NodeFact, String> {
    let word = words.next_word("the condition, taint or resource")?;
    Ok(match name {
        "taint" => NodeFact::Taint(word),
        "untaint" => NodeFact::NoTaint(word),
        _ => {
            let pair = word.split_once('=');
            let (key, value) = pair.ok_or_else(|| format!("{word:?} has no value"))?;
            let (key, value) = (key.to_owned(), value.to_owned());
            if name == "condition" {
                NodeFact::Condition {
                    kind: key,
                    status: value,
                }
            } else {
                NodeFact::Resource {
                    name: key,
                    amount: value,
                }
            }
        }
    })
}

pub(super) fn write_node_fact(
    stage: &ScenarioCluster,
    node: &str,
    fact: &NodeFact,
) -> Result<(), String> {
    let path = format!("/api/v1/nodes/{node}");
    let object = stage.read_object(&path).ok_or("there is no such Node")?;
    let (path, patch) = match fact {
        NodeFact::Condition { kind, status } => {
            let now = format!("{:.0}", stage.time_after(std::time::Duration::ZERO));
            let condition = json!({
                "type": kind, "status": status, "reason": "Scenario", "message": "",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            });
            let conditions = &object["status"]["conditions"];
            let conditions = list_with(conditions, "type", kind, Some(condition));
            let patch = json!({ "status": { "conditions": conditions } });
            (format!("{path}/status"), patch)
        }
        NodeFact::Resource { name, amount } => {
            let amounts = json!({ name: amount });
            let patch = json!({ "status": { "capacity": amounts, "allocatable": amounts } });
            (format!("{path}/status"), patch)
        }
        NodeFact::Taint(key) => (path, taints_patch(&object, key, true)),
        NodeFact::NoTaint(key) => (path, taints_patch(&object, key, false)),
    };
    let done = stage.send_user_request(Method::PATCH, &path, &patch);
    done.map_err(|error| error.to_string())
}

fn taints_patch(node: &Value, key: &str, there: bool) -> Value {
    let taint = there.then(|| json!({ "key": key, "effect": "NoSchedule" }));
    json!({ "spec": { "taints": list_with(&node["spec"]["taints"], "key", key, taint) } })
}

/// The list with this item in the place of the one of the same name.
fn list_with(list: &Value, name_field: &str, name: &str, item: Option<Value>) -> Vec<Value> {
    let others = list.as_array().into_iter().flatten();
    let others = others.filter(|other| other[name_field] != name);
    others.cloned().chain(item).collect()
}
