//! Reads and writes single hosts.

use dogwatch_api::CONTROLLER;
use dogwatch_api::bare_metal_host::{API_VERSION, KIND};
use dogwatch_core::Now;
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::power::{HostName, HostSnapshot, StatusWrite};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::convert::convert_host;
use super::object::HostObject;
use super::secret::{self, BmcSecret, BmcSecretError};
use super::write::{self, HostWriteError};
use crate::error::{Error, with_timeout};
use crate::event::{EventDraft, EventName};
use crate::field_manager::patch_params_for;
use crate::readable_dates::ReadableApi as _;

#[derive(Clone)]
pub struct HostClient {
    pub(super) client: Client,
    /// Machines of Cluster API are Nodes of other clusters.
    pub(super) has_workload_clusters: bool,
}

impl HostClient {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            has_workload_clusters: false,
        }
    }

    /// Nodes of Machines of Cluster API are in workload clusters: a Node of that name here is
    /// another one.
    #[must_use]
    pub fn with_workload_clusters(self, has_workload_clusters: bool) -> Self {
        Self {
            has_workload_clusters,
            ..self
        }
    }

    /// All hosts, in one list.
    ///
    /// # Errors
    /// [`ApiErrorKind::NotFound`](crate::ApiErrorKind::NotFound) if the kind is not installed, or
    /// any other failure.
    pub async fn list_hosts(&self) -> Result<Vec<HostSnapshot>, Error> {
        let all: Api<HostObject> = Api::all(self.client.clone());
        let list = with_timeout(all.list(&ListParams::default())).await?;
        Ok(list.items.iter().map(convert_host).collect())
    }

    /// Reads one host; `None`: no host of this name.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn read_host(&self, name: &HostName) -> Result<Option<HostSnapshot>, Error> {
        let object = with_timeout(self.host_api(name).get_readable_opt(&name.name)).await?;
        Ok(object.as_ref().map(convert_host))
    }

    /// Writes the status and these conditions, unless the host has changed since it was read.
    /// Returns the written host. Conditions of others, and other fields that metal3 keeps in the
    /// status, stay.
    ///
    /// # Errors
    /// [`HostWriteError`]: only [`HostWriteError::Changed`] guarantees that nothing was written.
    pub async fn write_status(
        &self,
        host: &HostSnapshot,
        write: &StatusWrite,
        conditions: &[ConditionWrite],
    ) -> Result<HostSnapshot, HostWriteError> {
        let object = if write::needs_object(host, conditions) {
            Some(self.read_unchanged(host).await?)
        } else {
            None
        };
        let body = write::status_patch_body(host, write, conditions, object.as_ref());
        let hosts = self.host_api(&host.name);
        let (params, patch) = (patch_params(), Patch::Merge(&body));
        let call = hosts.patch_status(&host.name.name, &params, &patch);
        let answer = convert_host(
            &with_timeout(call)
                .await
                .map_err(HostWriteError::from_api_error)?,
        );
        match write::dropped_fields(&answer, write, conditions) {
            dropped if dropped.is_empty() => Ok(answer),
            dropped => Err(HostWriteError::Pruned(dropped)),
        }
    }

    /// Removes annotations, unless the host has changed since it was read. Returns the written
    /// host.
    ///
    /// # Errors
    /// As [`Self::write_status`].
    pub async fn remove_annotations(
        &self,
        host: &HostSnapshot,
        names: &[String],
    ) -> Result<HostSnapshot, HostWriteError> {
        let gone = names.iter().map(|name| (name.clone(), Value::Null));
        let mut metadata = write::patch_precondition(host);
        metadata["annotations"] = Value::Object(gone.collect::<Map<_, _>>());
        let body = json!({ "metadata": metadata });
        let hosts = self.host_api(&host.name);
        let (params, patch) = (patch_params(), Patch::Merge(&body));
        let call = hosts.patch(&host.name.name, &params, &patch);
        Ok(convert_host(
            &with_timeout(call)
                .await
                .map_err(HostWriteError::from_api_error)?,
        ))
    }

    /// The credentials in a Secret of this namespace, read by its name.
    ///
    /// # Errors
    /// Why there are none, and what a person should do.
    pub async fn read_secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<BmcSecret, BmcSecretError> {
        secret::read_bmc_secret(&self.client, namespace, name).await
    }

    /// Writes the Event in the host's namespace, unless the same Event exists for the same reboot.
    ///
    /// # Errors
    /// When the Event could not be written.
    pub async fn write_event(
        &self,
        host: &HostSnapshot,
        event: &DecisionEvent,
        now: Now,
    ) -> Result<(), Error> {
        let HostName { namespace, name } = &host.name;
        let said = EventDraft {
            namespace,
            name: EventName::of_episode(name, &host.uid, &event_episode(host), event),
            involved_object: json!({
                "kind": KIND, "apiVersion": API_VERSION, "namespace": namespace, "name": name,
                "uid": host.uid,
            }),
            component: CONTROLLER,
            host: None,
            event,
        };
        said.write_event(&self.client, now).await
    }

    fn host_api(&self, name: &HostName) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), &name.namespace)
    }

    /// Reads the host; an error if it is not this version.
    async fn read_unchanged(&self, host: &HostSnapshot) -> Result<HostObject, HostWriteError> {
        let hosts = self.host_api(&host.name);
        let object = with_timeout(hosts.get_readable_opt(&host.name.name)).await?;
        object
            .filter(|object| {
                object.uid().as_ref() == Some(&host.uid)
                    && object.resource_version().as_ref() == Some(&host.resource_version)
            })
            .ok_or(HostWriteError::Changed { answer: None })
    }
}

/// Identifies the reboot that the Event belongs to.
fn event_episode(host: &HostSnapshot) -> String {
    let status = &host.status;
    format!(
        "{:?} {:?}",
        status.pending_reboot_since, status.last_powered_on
    )
}

fn patch_params() -> PatchParams {
    patch_params_for(CONTROLLER)
}
