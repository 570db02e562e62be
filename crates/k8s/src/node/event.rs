//! Events about our Node that do not repeat themselves.

use std::collections::VecDeque;

use dogwatch_api::COORDINATOR;
use dogwatch_api::event::NODE_EVENT_NAMESPACE;
use dogwatch_core::Now;
use dogwatch_core::decision::Event;
use kube::Client;
use serde_json::json;

use crate::Error;
use crate::event::{Name, Said};

/// How many different things are remembered as said. A reboot says about ten.
const REMEMBERED: usize = 64;

/// Writes Events about one Node; the same reason and message is said once.
pub struct EventWriter {
    client: Client,
    node: String,
    component: &'static str,
    said: VecDeque<Event>,
}

impl EventWriter {
    /// A writer that has said nothing yet.
    pub fn new(client: Client, node: impl Into<String>) -> Self {
        Self {
            client,
            node: node.into(),
            component: COORDINATOR,
            said: VecDeque::new(),
        }
    }

    /// The same in another name: the admission policies let no account but the coordinator's own write in its name.
    #[must_use]
    pub fn in_the_name_of(self, component: &'static str) -> Self {
        Self { component, ..self }
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
        let node = &self.node;
        let said = Said {
            namespace: NODE_EVENT_NAMESPACE,
            name: Name::of(node, node_uid, episode, event),
            about: json!({ "kind": "Node", "apiVersion": "v1", "name": node, "uid": node_uid }),
            component: self.component,
            host: Some(node),
            event,
        };
        said.say(&self.client, now).await?;
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
}
