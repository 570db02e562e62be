//! Writes Events about the objects of a remediation.

use dogwatch_api::CONTROLLER;
use dogwatch_api::event::NODE_EVENT_NAMESPACE;
use dogwatch_api::{bare_metal_host, power_remediation};
use dogwatch_core::Now;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{ObjectName, ObservedMachine, PowerRequest};
use serde_json::json;

use super::RemediationClient;
use crate::error::Error;
use crate::event::{EventDraft, EventName};

#[derive(Debug, Clone, Copy)]
pub enum RemediationEventSubject<'a> {
    Machine(&'a ObservedMachine),
    Host(&'a HostSnapshot),
    Node(&'a ObservedNode),
    Request(&'a PowerRequest),
}

struct InvolvedObject<'a> {
    kind: &'static str,
    api_version: String,
    namespace: Option<&'a str>,
    name: &'a str,
    uid: &'a str,
}

impl RemediationClient {
    /// Writes the Event in the object's namespace, unless the same Event exists for this `episode`
    /// (one remediation, for example).
    ///
    /// # Errors
    /// When the Event could not be written.
    pub async fn write_event(
        &self,
        about: RemediationEventSubject<'_>,
        episode: &str,
        event: &DecisionEvent,
        now: Now,
    ) -> Result<(), Error> {
        let it = self.involved_object(about).await?;
        let said = EventDraft {
            namespace: it.namespace.unwrap_or(NODE_EVENT_NAMESPACE),
            name: EventName::of_episode(it.name, it.uid, episode, event),
            involved_object: json!({
                "kind": it.kind, "apiVersion": it.api_version, "namespace": it.namespace, "name": it.name,
                "uid": it.uid,
            }),
            component: CONTROLLER,
            host: None,
            event,
        };
        said.write_event(&self.client, now).await
    }

    async fn involved_object<'a>(
        &self,
        about: RemediationEventSubject<'a>,
    ) -> Result<InvolvedObject<'a>, Error> {
        Ok(match about {
            RemediationEventSubject::Machine(machine) => {
                let version = self
                    .find_machine_version(machine.name.api)
                    .await?
                    .api_version;
                namespaced_object("Machine", version, &machine.name.object, &machine.uid)
            }
            RemediationEventSubject::Request(request) => {
                let version = power_remediation::API_VERSION.to_owned();
                namespaced_object(
                    power_remediation::KIND,
                    version,
                    &request.name,
                    &request.uid,
                )
            }
            RemediationEventSubject::Host(host) => InvolvedObject {
                kind: bare_metal_host::KIND,
                api_version: bare_metal_host::API_VERSION.to_owned(),
                namespace: Some(&host.name.namespace),
                name: &host.name.name,
                uid: &host.uid,
            },
            RemediationEventSubject::Node(node) => InvolvedObject {
                kind: "Node",
                api_version: "v1".to_owned(),
                namespace: None,
                name: node.name.as_str(),
                uid: &node.uid,
            },
        })
    }
}

fn namespaced_object<'a>(
    kind: &'static str,
    api_version: String,
    name: &'a ObjectName,
    uid: &'a str,
) -> InvolvedObject<'a> {
    InvolvedObject {
        kind,
        api_version,
        namespace: Some(&name.namespace),
        name: &name.name,
        uid,
    }
}
