//! What a person asks of a host: `spec.online`, and reboot annotations.

use std::collections::BTreeMap;

use dogwatch_api::bare_metal_host::{API_VERSION, KIND};
use dogwatch_core::Now;
use dogwatch_core::decision::{Event, Severity};
use dogwatch_core::power::{Host, HostName};
use kube::api::Patch;
use serde_json::{Value, json};

use super::HostFound;
use crate::error::{Error, Kind, ask};
use crate::event::{Name, Said};
use crate::fleet::FleetClient;
use crate::fleet::request::{MANAGER, TRIES};
use crate::host::convert;
use crate::manager::patched_by;

/// One change to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostChange {
    /// `spec.online`.
    Online(bool),
    /// An annotation is written.
    Annotate {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Several are written at once: none of them means anything without the others.
    AnnotateAll(BTreeMap<String, String>),
    /// An annotation is removed.
    Remove {
        /// Its name.
        name: String,
    },
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum HostChanged<No> {
    /// It stands: the host as it was judged, and as it is now.
    Written {
        /// Before.
        before: Box<Host>,
        /// After.
        after: Box<Host>,
    },
    /// The caller wanted nothing written.
    Not(Box<Host>, No),
    /// There is no such host.
    NoHost,
    /// The kind BareMetalHost is not installed.
    NoKind,
}

impl FleetClient {
    /// Reads the host and writes what `judge` makes of it; it holds only for the host as it was judged.
    ///
    /// # Errors
    /// A call that failed, or a host that changed under each of several tries.
    pub async fn change_host<No>(
        &self,
        name: &HostName,
        judge: impl Fn(&Host) -> Result<HostChange, No>,
    ) -> Result<HostChanged<No>, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let host = match self.host(name).await? {
                HostFound::There(host) => host,
                HostFound::NoHost => return Ok(HostChanged::NoHost),
                HostFound::NoKind => return Ok(HostChanged::NoKind),
            };
            let change = match judge(&host) {
                Ok(change) => change,
                Err(no) => return Ok(HostChanged::Not(host, no)),
            };
            match self.write_host(&host, &change).await {
                Ok(after) => {
                    let (before, after) = (host, Box::new(after));
                    return Ok(HostChanged::Written { before, after });
                }
                Err(error) if error.kind() == Kind::NotFound => return Ok(HostChanged::NoHost),
                Err(error) if error.kind() == Kind::Conflict && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn write_host(&self, host: &Host, change: &HostChange) -> Result<Host, Error> {
        let params = patched_by(MANAGER);
        let api = self.hosts_in(Some(&host.name.namespace));
        let patch = Patch::Merge(body(host, change));
        let written = ask(api.patch(&host.name.name, &params, &patch)).await?;
        Ok(convert(&written))
    }

    /// Says on the host what a person asked of it.
    pub async fn say_of_host(
        &self,
        host: &Host,
        reason: &'static str,
        message: &str,
        now: Now,
    ) -> Result<(), Error> {
        let event = Event {
            severity: Severity::Normal,
            reason,
            message: message.to_owned(),
        };
        let (namespace, name) = (&host.name.namespace, &host.name.name);
        let said = Said {
            namespace,
            name: Name::from(name),
            about: json!({
                "kind": KIND, "apiVersion": API_VERSION,
                "namespace": namespace, "name": name, "uid": host.uid,
                "resourceVersion": host.resource_version,
            }),
            component: MANAGER,
            host: None,
            event: &event,
        };
        said.say(&self.client, now).await
    }
}

fn body(host: &Host, change: &HostChange) -> Value {
    let mut body = json!({ "metadata": {
        "uid": host.uid,
        "resourceVersion": host.resource_version,
    }});
    match change {
        HostChange::Online(online) => body["spec"] = json!({ "online": online }),
        HostChange::Annotate { name, value } => {
            body["metadata"]["annotations"] = json!({ name: value });
        }
        HostChange::AnnotateAll(all) => body["metadata"]["annotations"] = json!(all),
        HostChange::Remove { name } => body["metadata"]["annotations"] = json!({ name: null }),
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::convert;

    #[test]
    fn each_change_relies_on_the_host_as_it_was_judged_and_touches_one_thing() {
        let object = json!({
            "metadata": { "namespace": "metal", "name": "h1", "uid": "u", "resourceVersion": "7" },
            "spec": { "online": true },
        });
        let host = convert(&serde_json::from_value(object).unwrap());
        let name = || "reboot.metal3.io/k".to_owned();
        let value = String::from("v");
        let metadata = json!({ "uid": "u", "resourceVersion": "7" });
        let with = |annotation: Value| {
            let mut metadata = metadata.clone();
            metadata["annotations"] = json!({ "reboot.metal3.io/k": annotation });
            json!({ "metadata": metadata })
        };
        for (change, expected) in [
            (
                HostChange::Online(false),
                json!({ "metadata": metadata, "spec": { "online": false } }),
            ),
            (
                HostChange::Annotate {
                    name: name(),
                    value,
                },
                with(json!("v")),
            ),
            (
                HostChange::AnnotateAll([(name(), "v".to_owned())].into()),
                with(json!("v")),
            ),
            (HostChange::Remove { name: name() }, with(Value::Null)),
        ] {
            assert_eq!(body(&host, &change), expected);
        }
    }
}
