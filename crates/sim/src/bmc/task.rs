//! Redfish tasks: commands that answer 202 and end later.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Response;
use serde_json::json;
use tokio::time::Instant;

use super::bmc_state::BmcState;
use super::responses;

/// The tasks of one BMC, by number.
#[derive(Debug, Default)]
pub(super) struct BmcTasks {
    made: u64,
    tasks: BTreeMap<u64, TaskEnding>,
}

/// How a task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskEnding {
    /// Succeeds at this time.
    Done(Instant),
    /// Fails at this time.
    Fails(Instant),
    NeverEnds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BmcTaskState {
    Running,
    Done,
    Failed,
}

impl TaskEnding {
    fn task_state(self) -> BmcTaskState {
        let now = Instant::now();
        match self {
            TaskEnding::Done(at) if at <= now => BmcTaskState::Done,
            TaskEnding::Fails(at) if at <= now => BmcTaskState::Failed,
            TaskEnding::Done(_) | TaskEnding::Fails(_) | TaskEnding::NeverEnds => {
                BmcTaskState::Running
            }
        }
    }
}

impl BmcTasks {
    /// Begins a task and returns its number.
    pub fn begin_task(&mut self, fate: TaskEnding) -> u64 {
        self.made += 1;
        self.tasks.insert(self.made, fate);
        self.made
    }
}

impl BmcState {
    /// The task's document.
    pub(super) fn task_document(&self, number: u64) -> Response<Bytes> {
        match self.tasks.tasks.get(&number) {
            Some(fate) => task_response(200, number, fate.task_state()),
            None => responses::not_found_response(),
        }
    }

    /// The task monitor's answer: 202 while the task runs, then the answer of the command.
    pub(super) fn task_monitor_response(&self, number: u64) -> Response<Bytes> {
        match self.tasks.tasks.get(&number).map(|fate| fate.task_state()) {
            Some(BmcTaskState::Running) => {
                let path = format!("/redfish/v1/TaskService/TaskMonitors/{number}");
                responses::with_location(
                    task_response(202, number, BmcTaskState::Running),
                    &self.link_to_path(&path),
                )
            }
            Some(BmcTaskState::Done) => responses::empty_response(204),
            Some(BmcTaskState::Failed) => {
                responses::extended_message(500, "Base.1.8.InternalError", "the task failed")
            }
            None => responses::not_found_response(),
        }
    }

    /// The 202 answer that names a new task.
    pub(super) fn task_accepted_response(&self, number: u64, monitor: bool) -> Response<Bytes> {
        let kind = if monitor { "TaskMonitors" } else { "Tasks" };
        let path = format!("/redfish/v1/TaskService/{kind}/{number}");
        responses::with_location(
            task_response(202, number, BmcTaskState::Running),
            &self.link_to_path(&path),
        )
    }
}

fn task_response(code: u16, number: u64, standing: BmcTaskState) -> Response<Bytes> {
    let (state, status) = match standing {
        BmcTaskState::Running => ("Running", "OK"),
        BmcTaskState::Done => ("Completed", "OK"),
        BmcTaskState::Failed => ("Exception", "Critical"),
    };
    let body = json!({
        "@odata.id": format!("/redfish/v1/TaskService/Tasks/{number}"),
        "@odata.type": "#Task.v1_5_0.Task",
        "Id": number.to_string(),
        "Name": "Task",
        "TaskState": state,
        "TaskStatus": status,
    });
    responses::json_document(code, &body)
}
