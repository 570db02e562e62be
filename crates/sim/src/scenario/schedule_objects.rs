//! The RebootSchedules of a script.

use std::time::Duration;

use dogwatch_api::DEFAULT_NAMESPACE;
use dogwatch_api::reboot_schedule::{API_VERSION, KIND, PLURAL};
use http::Method;
use serde_json::{Value, json};

use super::command::UserCommand;
use super::line_words::LineWords;
use super::scenario_cluster::{ScenarioCluster, UserRequestError};

/// A schedule that a script creates.
#[derive(Debug, Clone)]
pub struct ScriptedSchedule {
    name: String,
    nodes: Value,
    at: Duration,
    deadline: Option<String>,
}

/// `schedule NAME nodes=all|NODE,NODE at=TIME [deadline=TIME]`.
pub(super) fn parse_schedule(words: &mut LineWords) -> Result<UserCommand, String> {
    let name = words.next_word("the schedule's name")?;
    let nodes = words.take_option("nodes").ok_or("write nodes=")?;
    let nodes = match nodes.as_str() {
        "all" => json!({ "selector": {} }),
        names => json!({ "names": names.split(',').collect::<Vec<_>>() }),
    };
    Ok(UserCommand::Schedule(ScriptedSchedule {
        name,
        nodes,
        at: words.duration_option("at")?.ok_or("write at=")?,
        deadline: words.take_option("deadline"),
    }))
}

/// The path of the schedule of this name.
pub(super) fn schedule_path(name: &str) -> String {
    format!("{}/{name}", all_path())
}

fn all_path() -> String {
    format!("/apis/{API_VERSION}/namespaces/{DEFAULT_NAMESPACE}/{PLURAL}")
}

impl ScenarioCluster {
    pub(super) fn create_schedule(&self, asked: &ScriptedSchedule) -> Result<(), UserRequestError> {
        let mut spec = json!({ "at": self.time_after(asked.at).to_string(), "nodes": asked.nodes });
        if let Some(deadline) = &asked.deadline {
            spec["startingDeadline"] = deadline.as_str().into();
        }
        // A time in a schedule has no fraction of a second.
        if let Some((seconds, _)) = spec["at"].as_str().and_then(|at| at.split_once('.')) {
            spec["at"] = format!("{seconds}Z").into();
        }
        let object = json!({ "apiVersion": API_VERSION, "kind": KIND,
            "metadata": { "name": asked.name }, "spec": spec });
        self.send_user_request(Method::POST, &all_path(), &object)
    }

    /// The reasons of the schedule's conditions; empty if there is no such schedule.
    pub(super) fn schedule_reasons(&self, name: &str) -> Vec<String> {
        let schedule = self.read_object(&schedule_path(name)).unwrap_or_default();
        let conditions = schedule["status"]["conditions"].as_array();
        let reasons = conditions.into_iter().flatten();
        let reasons = reasons.filter_map(|one| one["reason"].as_str());
        reasons.map(str::to_owned).collect()
    }
}
