//! Events about our Node that do not repeat themselves.

use std::collections::VecDeque;

use dogwatch_api::COORDINATOR;
use dogwatch_api::event::NODE_EVENT_NAMESPACE;
use dogwatch_core::Now;
use dogwatch_core::decision::{Event, Severity};
use k8s_openapi::api::core::v1::Event as EventObject;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use super::patch::seconds;
use crate::Error;
use crate::error::ask;

/// How many different things are remembered as said. A reboot says about ten.
const REMEMBERED: usize = 64;

/// The longest message an API server accepts for an Event is 1024 bytes.
const LONGEST_MESSAGE: usize = 1000;

/// Writes Events about one Node; the same reason and message is said once.
pub struct EventWriter {
    client: Client,
    node: String,
    said: VecDeque<Event>,
}

impl EventWriter {
    /// A writer that has said nothing yet.
    pub fn new(client: Client, node: impl Into<String>) -> Self {
        Self {
            client,
            node: node.into(),
            said: VecDeque::new(),
        }
    }

    /// Those that were not said yet, in order.
    pub fn unsaid(&self, events: &[Event]) -> Vec<Event> {
        events
            .iter()
            .filter(|event| !self.said.contains(event))
            .cloned()
            .collect()
    }

    /// Says it, unless it was said. What could not be said is said the next time.
    pub async fn say(&mut self, event: &Event, node_uid: &str, now: Now) -> Result<(), Error> {
        if self.said.contains(event) {
            return Ok(());
        }
        let events: Api<EventObject> = Api::namespaced(self.client.clone(), NODE_EVENT_NAMESPACE);
        let object = self.object(event, node_uid, now);
        ask(events.create(&PostParams::default(), &object)).await?;
        self.remember(event.clone());
        Ok(())
    }

    /// A new reboot begins: everything may be said again.
    pub fn forget(&mut self) {
        self.said.clear();
    }

    fn remember(&mut self, event: Event) {
        self.said.push_back(event);
        if self.said.len() > REMEMBERED {
            self.said.pop_front();
        }
    }

    fn object(&self, event: &Event, node_uid: &str, now: Now) -> EventObject {
        let severity = match event.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        let at = seconds(now.wall);
        let json = json!({
            "metadata": { "generateName": format!("{}.", self.node), "namespace": NODE_EVENT_NAMESPACE },
            "involvedObject": { "kind": "Node", "apiVersion": "v1", "name": self.node, "uid": node_uid },
            "reason": event.reason,
            "message": shortened(&event.message),
            "type": severity,
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": { "component": COORDINATOR, "host": self.node },
            "reportingComponent": COORDINATOR,
            "reportingInstance": self.node,
        });
        serde_json::from_value(json).expect("the JSON above is an Event")
    }
}

fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let mut end = LONGEST_MESSAGE;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &message[..end])
}
