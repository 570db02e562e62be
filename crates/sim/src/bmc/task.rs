//! Commands that take their time.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Response;
use serde_json::json;
use tokio::time::Instant;

use super::answer;
use super::held::Held;

/// The tasks of one BMC, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    made: u64,
    tasks: BTreeMap<u64, Fate>,
}

/// What becomes of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It ends well, then.
    Done(Instant),
    /// It fails, then.
    Fails(Instant),
    /// It runs for ever.
    Never,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Running,
    Done,
    Failed,
}

impl Fate {
    fn standing(self) -> Standing {
        let now = Instant::now();
        match self {
            Fate::Done(at) if at <= now => Standing::Done,
            Fate::Fails(at) if at <= now => Standing::Failed,
            Fate::Done(_) | Fate::Fails(_) | Fate::Never => Standing::Running,
        }
    }
}

impl Tasks {
    /// A new one; its number.
    pub fn begin(&mut self, fate: Fate) -> u64 {
        self.made += 1;
        self.tasks.insert(self.made, fate);
        self.made
    }
}

impl Held {
    /// What a task's document says.
    pub(super) fn task(&self, number: u64) -> Response<Bytes> {
        match self.tasks.tasks.get(&number) {
            Some(fate) => described(200, number, fate.standing()),
            None => answer::nothing_there(),
        }
    }

    /// What a task monitor says: 202 while the task runs, then what the command would have said.
    pub(super) fn monitor(&self, number: u64) -> Response<Bytes> {
        match self.tasks.tasks.get(&number).map(|fate| fate.standing()) {
            Some(Standing::Running) => {
                let path = format!("/redfish/v1/TaskService/TaskMonitors/{number}");
                answer::at(described(202, number, Standing::Running), &self.link(&path))
            }
            Some(Standing::Done) => answer::empty(204),
            Some(Standing::Failed) => {
                answer::message(500, "Base.1.8.InternalError", "the task failed")
            }
            None => answer::nothing_there(),
        }
    }

    /// The 202 that names a new task.
    pub(super) fn accepted(&self, number: u64, monitor: bool) -> Response<Bytes> {
        let kind = if monitor { "TaskMonitors" } else { "Tasks" };
        let path = format!("/redfish/v1/TaskService/{kind}/{number}");
        answer::at(described(202, number, Standing::Running), &self.link(&path))
    }
}

fn described(code: u16, number: u64, standing: Standing) -> Response<Bytes> {
    let (state, status) = match standing {
        Standing::Running => ("Running", "OK"),
        Standing::Done => ("Completed", "OK"),
        Standing::Failed => ("Exception", "Critical"),
    };
    let body = json!({
        "@odata.id": format!("/redfish/v1/TaskService/Tasks/{number}"),
        "@odata.type": "#Task.v1_5_0.Task",
        "Id": number.to_string(),
        "Name": "Task",
        "TaskState": state,
        "TaskStatus": status,
    });
    answer::document(code, &body)
}
