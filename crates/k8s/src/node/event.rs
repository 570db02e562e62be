//! Events about our Node that do not repeat themselves.

use std::collections::VecDeque;

use dogwatch_api::COORDINATOR;
use dogwatch_api::event::NODE_EVENT_NAMESPACE;
use dogwatch_core::Now;
use dogwatch_core::decision::{Event, Severity};
use dogwatch_core::lock::digest;
use k8s_openapi::api::core::v1::Event as EventObject;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use super::patch::seconds;
use crate::Error;
use crate::error::Kind;
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
    ///
    /// The Event's name is made from what it says and from `episode` (the phase's beginning, say): a
    /// process that was started anew in the middle does not say it a second time, whose name is
    /// taken.
    pub async fn say(
        &mut self,
        event: &Event,
        node_uid: &str,
        episode: &str,
        now: Now,
    ) -> Result<(), Error> {
        if self.said.contains(event) {
            return Ok(());
        }
        let events: Api<EventObject> = Api::namespaced(self.client.clone(), NODE_EVENT_NAMESPACE);
        let object = self.object(event, node_uid, episode, now);
        match ask(events.create(&PostParams::default(), &object)).await {
            Ok(_) => {}
            Err(error) if error.kind() == Kind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
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

    fn object(&self, event: &Event, node_uid: &str, episode: &str, now: Now) -> EventObject {
        let severity = match event.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        let at = seconds(now.wall);
        let json = json!({
            "metadata": { "name": event_name(&self.node, event, node_uid, episode), "namespace": NODE_EVENT_NAMESPACE },
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

fn event_name(node: &str, event: &Event, node_uid: &str, episode: &str) -> String {
    let (reason, message) = (event.reason, &event.message);
    let digest = digest(&format!("{node_uid}\n{episode}\n{reason}\n{message}"));
    // A name has room for 253 bytes, and a Node's may need them all.
    let node: String = node.chars().take(200).collect();
    format!("{}.{digest}", node.trim_end_matches(['.', '-']))
}

pub(crate) fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let mut end = LONGEST_MESSAGE;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_news_of_one_episode_has_one_name_however_often_a_process_starts() {
        let event = |message: &str| Event {
            severity: Severity::Normal,
            reason: "Rebooting",
            message: message.into(),
        };
        let name =
            |node: &str, message, uid, episode| event_name(node, &event(message), uid, episode);
        let first = name("n1", "attempt 1", "u", "12:00");
        assert_eq!(first, name("n1", "attempt 1", "u", "12:00"));
        for other in [
            name("n1", "attempt 2", "u", "12:00"),
            name("n1", "attempt 1", "v", "12:00"),
            name("n1", "attempt 1", "u", "12:01"),
        ] {
            assert_ne!(first, other);
        }
        let long = name(&format!("{}.x", "n".repeat(199)), "m", "u", "");
        assert!(long.len() <= 253 && !long.contains(".."), "{long}");
    }
}
