//! What the healer says: Events about Nodes and about Dogwatch's Leases.

use dogwatch_api::CONTROLLER;
use dogwatch_api::event::NODE_EVENT_NAMESPACE;
use dogwatch_core::Now;
use dogwatch_core::decision::{Event, Severity};
use dogwatch_core::lock::digest;
use k8s_openapi::api::core::v1::Event as EventObject;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::HealClient;
use crate::error::{Error, Kind, ask};
use crate::node::{seconds, shortened};

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
        let namespace = self.namespace_of(about);
        let events: Api<EventObject> = Api::namespaced(self.client.clone(), namespace);
        let object = self.object(about, event, now);
        match ask(events.create(&PostParams::default(), &object)).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == Kind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn namespace_of(&self, about: &About) -> &str {
        if about.kind == "Node" {
            NODE_EVENT_NAMESPACE
        } else {
            &self.namespace
        }
    }

    fn object(&self, about: &About, event: &Event, now: Now) -> EventObject {
        let severity = match event.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        let (version, namespace) = match about.kind {
            "Node" => ("v1", None),
            _ => ("coordination.k8s.io/v1", Some(&self.namespace)),
        };
        let at = seconds(now.wall);
        let json = json!({
            "metadata": { "name": name(about, event), "namespace": self.namespace_of(about) },
            "involvedObject": {
                "kind": about.kind, "apiVersion": version, "name": about.name, "uid": about.uid, "namespace": namespace,
            },
            "reason": event.reason,
            "message": shortened(&event.message),
            "type": severity,
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": { "component": CONTROLLER },
            "reportingComponent": CONTROLLER,
            "reportingInstance": CONTROLLER,
        });
        serde_json::from_value(json).expect("the JSON above is an Event")
    }
}

fn name(about: &About, event: &Event) -> String {
    let (uid, episode) = (&about.uid, &about.episode);
    let digest = digest(&format!(
        "{uid}\n{episode}\n{}\n{}",
        event.reason, event.message
    ));
    let object: String = about.name.chars().take(200).collect();
    format!("{}.{digest}", object.trim_end_matches(['.', '-']))
}
