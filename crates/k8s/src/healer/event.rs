//! Writes the healer's Events about Nodes and Dogwatch's Leases.

use dogwatch_api::CONTROLLER;
use dogwatch_api::event::NODE_EVENT_NAMESPACE;
use dogwatch_core::Now;
use dogwatch_core::decision::DecisionEvent;
use serde_json::json;

use super::HealerClient;
use crate::Error;
use crate::event::{EventDraft, EventName};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealerEventSubject {
    /// `Node` or `Lease`.
    pub kind: &'static str,
    pub name: String,
    pub uid: String,
    /// The same text about the same object in the same episode is written once, whichever replica
    /// leads.
    pub episode: String,
}

impl HealerClient {
    /// Writes the Event, unless it was written before.
    pub async fn write_event(
        &self,
        about: &HealerEventSubject,
        event: &DecisionEvent,
        now: Now,
    ) -> Result<(), Error> {
        let (version, namespace) = match about.kind {
            "Node" => ("v1", None),
            _ => ("coordination.k8s.io/v1", Some(&self.namespace)),
        };
        let (name, uid) = (&about.name, &about.uid);
        let said = EventDraft {
            namespace: namespace.map_or(NODE_EVENT_NAMESPACE, String::as_str),
            name: EventName::of_episode(name, uid, &about.episode, event),
            involved_object: json!({
                "kind": about.kind, "apiVersion": version, "name": name, "uid": uid, "namespace": namespace,
            }),
            component: CONTROLLER,
            host: None,
            event,
        };
        said.write_event(&self.client, now).await
    }
}
