//! Changes that a person makes to a host: `spec.online` and reboot annotations.

use std::collections::BTreeMap;

use dogwatch_api::bare_metal_host::{API_VERSION, KIND};
use dogwatch_core::Now;
use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::power::{HostName, HostSnapshot};
use kube::api::Patch;
use serde_json::{Value, json};

use super::HostFound;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::event::{EventDraft, EventName};
use crate::field_manager::patch_params_for;
use crate::fleet::FleetClient;
use crate::fleet::request::{FIELD_MANAGER, MAX_TRIES};
use crate::host::convert_host;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostChange {
    Online(bool),
    Annotate {
        name: String,
        value: String,
    },
    /// Several annotations in one write: none has a meaning without the others.
    AnnotateAll(BTreeMap<String, String>),
    Remove {
        name: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum HostChangeOutcome<No> {
    /// The change was written.
    Written {
        before: Box<HostSnapshot>,
        after: Box<HostSnapshot>,
    },
    /// The caller decided to write nothing.
    Not(Box<HostSnapshot>, No),
    NoHost,
    /// The kind BareMetalHost is not installed.
    NoKind,
}

impl FleetClient {
    /// Reads the host and writes the change that `judge` returns, with the read host's UID and
    /// resourceVersion as preconditions.
    ///
    /// # Errors
    /// A failed request, or a host that changed during each of several tries.
    pub async fn change_host<No>(
        &self,
        name: &HostName,
        judge: impl Fn(&HostSnapshot) -> Result<HostChange, No>,
    ) -> Result<HostChangeOutcome<No>, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let host = match self.read_host(name).await? {
                HostFound::There(host) => host,
                HostFound::NoHost => return Ok(HostChangeOutcome::NoHost),
                HostFound::NoKind => return Ok(HostChangeOutcome::NoKind),
            };
            let change = match judge(&host) {
                Ok(change) => change,
                Err(no) => return Ok(HostChangeOutcome::Not(host, no)),
            };
            match self.write_host(&host, &change).await {
                Ok(after) => {
                    let (before, after) = (host, Box::new(after));
                    return Ok(HostChangeOutcome::Written { before, after });
                }
                Err(error) if error.kind() == ApiErrorKind::NotFound => {
                    return Ok(HostChangeOutcome::NoHost);
                }
                Err(error) if error.kind() == ApiErrorKind::Conflict && tries < MAX_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn write_host(
        &self,
        host: &HostSnapshot,
        change: &HostChange,
    ) -> Result<HostSnapshot, Error> {
        let params = patch_params_for(FIELD_MANAGER);
        let api = self.host_api(Some(&host.name.namespace));
        let patch = Patch::Merge(patch_body(host, change));
        let written = with_timeout(api.patch(&host.name.name, &params, &patch)).await?;
        Ok(convert_host(&written))
    }

    /// Writes an Event about a person's request to the host.
    pub async fn write_host_event(
        &self,
        host: &HostSnapshot,
        reason: &'static str,
        message: &str,
        now: Now,
    ) -> Result<(), Error> {
        let event = DecisionEvent {
            severity: EventSeverity::Normal,
            reason,
            message: message.to_owned(),
        };
        let (namespace, name) = (&host.name.namespace, &host.name.name);
        let said = EventDraft {
            namespace,
            name: EventName::with_random_suffix(name),
            involved_object: json!({
                "kind": KIND, "apiVersion": API_VERSION,
                "namespace": namespace, "name": name, "uid": host.uid,
                "resourceVersion": host.resource_version,
            }),
            component: FIELD_MANAGER,
            host: None,
            event: &event,
        };
        said.write_event(&self.client, now).await
    }
}

fn patch_body(host: &HostSnapshot, change: &HostChange) -> Value {
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
    use crate::host::convert_host;

    #[test]
    fn each_change_relies_on_the_host_as_it_was_judged_and_touches_one_thing() {
        let object = json!({
            "metadata": { "namespace": "metal", "name": "h1", "uid": "u", "resourceVersion": "7" },
            "spec": { "online": true },
        });
        let host = convert_host(&serde_json::from_value(object).unwrap());
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
            assert_eq!(patch_body(&host, &change), expected);
        }
    }
}
