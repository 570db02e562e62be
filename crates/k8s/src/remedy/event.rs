//! Events about what a remediation is about.

use dogwatch_api::CONTROLLER;
use dogwatch_api::event::NODE_EVENT_NAMESPACE;
use dogwatch_api::{bare_metal_host, power_remediation};
use dogwatch_core::Now;
use dogwatch_core::decision::Event;
use dogwatch_core::power::Host;
use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::{Machine, ObjectName, PowerRequest};
use serde_json::json;

use super::RemedyClient;
use crate::error::Error;
use crate::event::{Name, Said};

/// What an Event is about.
#[derive(Debug, Clone, Copy)]
pub enum About<'a> {
    /// A Machine.
    Machine(&'a Machine),
    /// A host.
    Host(&'a Host),
    /// A Node.
    Node(&'a NodeSeen),
    /// A request.
    Request(&'a PowerRequest),
}

/// `involvedObject`.
struct Involved<'a> {
    kind: &'static str,
    api_version: String,
    namespace: Option<&'a str>,
    name: &'a str,
    uid: &'a str,
}

impl RemedyClient {
    /// Says it where the object is, unless the same was said about it in this `episode`: one remediation,
    /// say.
    ///
    /// # Errors
    /// When it could not be said.
    pub async fn say(
        &self,
        about: About<'_>,
        episode: &str,
        event: &Event,
        now: Now,
    ) -> Result<(), Error> {
        let it = self.involved(about).await?;
        let said = Said {
            namespace: it.namespace.unwrap_or(NODE_EVENT_NAMESPACE),
            name: Name::of(it.name, it.uid, episode, event),
            about: json!({
                "kind": it.kind, "apiVersion": it.api_version, "namespace": it.namespace, "name": it.name,
                "uid": it.uid,
            }),
            component: CONTROLLER,
            host: None,
            event,
        };
        said.say(&self.client, now).await
    }

    async fn involved<'a>(&self, about: About<'a>) -> Result<Involved<'a>, Error> {
        Ok(match about {
            About::Machine(machine) => {
                let version = self.machine_version(machine.name.api).await?.api_version;
                named("Machine", version, &machine.name.object, &machine.uid)
            }
            About::Request(request) => {
                let version = power_remediation::API_VERSION.to_owned();
                named(
                    power_remediation::KIND,
                    version,
                    &request.name,
                    &request.uid,
                )
            }
            About::Host(host) => Involved {
                kind: bare_metal_host::KIND,
                api_version: bare_metal_host::API_VERSION.to_owned(),
                namespace: Some(&host.name.namespace),
                name: &host.name.name,
                uid: &host.uid,
            },
            About::Node(node) => Involved {
                kind: "Node",
                api_version: "v1".to_owned(),
                namespace: None,
                name: node.name.as_str(),
                uid: &node.uid,
            },
        })
    }
}

fn named<'a>(
    kind: &'static str,
    api_version: String,
    name: &'a ObjectName,
    uid: &'a str,
) -> Involved<'a> {
    Involved {
        kind,
        api_version,
        namespace: Some(&name.namespace),
        name: &name.name,
        uid,
    }
}
