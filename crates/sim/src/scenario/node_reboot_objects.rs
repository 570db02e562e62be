//! The NodeReboots of a script.

use std::time::Duration;

use dogwatch_api::node_reboot::{API_VERSION, KIND, PLURAL};
use http::Method;
use serde_json::{Value, json};

use super::command::UserCommand;
use super::line_words::LineWords;
use super::scenario_cluster::{ScenarioCluster, UserRequestError};

/// A NodeReboot that a script asks for.
#[derive(Debug, Clone)]
pub struct ScriptedNodeReboot {
    name: String,
    spec: Value,
    not_before: Option<Duration>,
    deadline: Option<Duration>,
}

/// `node-reboot NAME of NODE [method=Reboot|PowerCycle|Hold] [not-before=TIME] [deadline=TIME]
/// [success=TYPE:STATUS within=TIME escalation=METHOD,METHOD]`.
pub(super) fn parse_node_reboot(words: &mut LineWords) -> Result<UserCommand, String> {
    let name = words.next_word("the request's name")?;
    words.expect_word("of")?;
    let mut spec = json!({ "nodeName": words.next_word("the node")?, "requester": "admin" });
    if let Some(method) = words.take_option("method") {
        spec["method"] = method.into();
    }
    if let Some(success) = words.take_option("success") {
        let (kind, status) = success.split_once(':').ok_or("write success=TYPE:STATUS")?;
        spec["success"] = json!({ "conditions": [{ "type": kind, "status": status }] });
    }
    if let Some(within) = words.take_option("within") {
        spec["success"]["within"] = within.into();
    }
    if let Some(methods) = words.take_option("escalation") {
        spec["escalation"] = methods.split(',').collect();
    }
    Ok(UserCommand::NodeReboot(ScriptedNodeReboot {
        name,
        spec,
        not_before: words.duration_option("not-before")?,
        deadline: words.duration_option("deadline")?,
    }))
}

/// The path of the NodeReboot of this name.
pub(super) fn node_reboot_path(name: &str) -> String {
    format!("{}/{name}", all_path())
}

fn all_path() -> String {
    format!("/apis/{API_VERSION}/{PLURAL}")
}

impl ScenarioCluster {
    pub(super) fn create_node_reboot(
        &self,
        asked: &ScriptedNodeReboot,
    ) -> Result<(), UserRequestError> {
        let mut spec = asked.spec.clone();
        let times = [
            ("notBefore", asked.not_before),
            ("deadline", asked.deadline),
        ];
        for (field, time) in times {
            if let Some(time) = time {
                spec[field] = self.time_after(time).to_string().into();
            }
        }
        let object = json!({ "apiVersion": API_VERSION, "kind": KIND,
            "metadata": { "name": asked.name }, "spec": spec });
        self.send_user_request(Method::POST, &all_path(), &object)
    }
}
