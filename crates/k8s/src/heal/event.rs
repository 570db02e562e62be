//! What the healer says: Events about Nodes and about Dogwatch's Leases.

use dogwatch_api::CONTROLLER;
use dogwatch_api::event::NODE_EVENT_NAMESPACE;
use dogwatch_core::Now;
use dogwatch_core::decision::Event;
use serde_json::json;

use super::HealClient;
use crate::Error;
use crate::event::{Name, Said};

/// What an Event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// `Node` or `Lease`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Which time this is: the same words about the same object in the same episode are said once,
    /// whoever leads.
    pub episode: String,
}

impl HealClient {
    /// Says it, unless it was said before.
    pub async fn say(&self, about: &About, event: &Event, now: Now) -> Result<(), Error> {
        let (version, namespace) = match about.kind {
            "Node" => ("v1", None),
            _ => ("coordination.k8s.io/v1", Some(&self.namespace)),
        };
        let (name, uid) = (&about.name, &about.uid);
        let said = Said {
            namespace: namespace.map_or(NODE_EVENT_NAMESPACE, String::as_str),
            name: Name::of(name, uid, &about.episode, event),
            about: json!({
                "kind": about.kind, "apiVersion": version, "name": name, "uid": uid, "namespace": namespace,
            }),
            component: CONTROLLER,
            host: None,
            event,
        };
        said.say(&self.client, now).await
    }
}
