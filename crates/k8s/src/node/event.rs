//! Writes Events about our own Node, each one once.

use dogwatch_api::COORDINATOR;
use dogwatch_api::event::NODE_EVENT_NAMESPACE;
use dogwatch_core::Now;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::reported_events::ReportedEvents;
use kube::Client;
use serde_json::json;

use crate::Error;
use crate::event::{EventDraft, EventName};

/// Writes Events about one Node. The same reason and message is written once.
pub struct EventWriter {
    client: Client,
    node: String,
    component: &'static str,
    written_events: ReportedEvents,
}

impl EventWriter {
    pub fn new(client: Client, node: impl Into<String>) -> Self {
        Self {
            client,
            node: node.into(),
            component: COORDINATOR,
            written_events: ReportedEvents::default(),
        }
    }

    /// Another reporting component: the admission policies let only the coordinator's account
    /// report as the coordinator.
    #[must_use]
    pub fn with_component(self, component: &'static str) -> Self {
        Self { component, ..self }
    }

    /// The Events that were not written yet, in order.
    pub fn list_unwritten(&self, events: &[DecisionEvent]) -> Vec<DecisionEvent> {
        self.written_events.unreported_of(events)
    }

    /// Writes the Event, unless it was written. A failed write is repeated at the next call.
    ///
    /// The Event's name is made from its text and from `episode` (the start of the phase, for
    /// example): a process that is restarted in between finds the name taken, and does not write
    /// the Event again.
    pub async fn write_event(
        &mut self,
        event: &DecisionEvent,
        node_uid: &str,
        episode: &str,
        now: Now,
    ) -> Result<(), Error> {
        if self.written_events.was_reported(event) {
            return Ok(());
        }
        let node = &self.node;
        let said = EventDraft {
            namespace: NODE_EVENT_NAMESPACE,
            name: EventName::of_episode(node, node_uid, episode, event),
            involved_object: json!({ "kind": "Node", "apiVersion": "v1", "name": node, "uid": node_uid }),
            component: self.component,
            host: Some(node),
            event,
        };
        said.write_event(&self.client, now).await?;
        self.written_events.record_event(event.clone());
        Ok(())
    }

    /// Called when a new reboot begins: every Event may be written again.
    pub fn forget_events(&mut self) {
        self.written_events.forget_all();
    }
}
