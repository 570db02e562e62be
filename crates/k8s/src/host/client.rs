//! Hosts read and written one at a time.

use dogwatch_api::CONTROLLER;
use dogwatch_api::bare_metal_host::{API_VERSION, KIND};
use dogwatch_core::Now;
use dogwatch_core::condition::Write;
use dogwatch_core::decision::Event;
use dogwatch_core::power::{Host, HostName, StatusWrite};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::convert::convert;
use super::object::HostObject;
use super::secret::{self, Secret, SecretTrouble};
use super::write::{self, WriteError};
use crate::error::{Error, ask};
use crate::event::{Name, Said};
use crate::manager::patched_by;

/// A hand on the hosts.
#[derive(Clone)]
pub struct HostClient {
    pub(super) client: Client,
}

impl HostClient {
    /// For the cluster behind `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// All hosts, by one list.
    ///
    /// # Errors
    /// [`Kind::NotFound`](crate::Kind::NotFound) where the kind is not installed, and whatever else may
    /// go wrong.
    pub async fn list(&self) -> Result<Vec<Host>, Error> {
        let all: Api<HostObject> = Api::all(self.client.clone());
        let list = ask(all.list(&ListParams::default())).await?;
        Ok(list.items.iter().map(convert).collect())
    }

    /// One host, read afresh; `None`: there is none of that name.
    ///
    /// # Errors
    /// When there is no answer to go by.
    pub async fn read(&self, name: &HostName) -> Result<Option<Host>, Error> {
        let object = ask(self.hosts(name).get_opt(&name.name)).await?;
        Ok(object.as_ref().map(convert))
    }

    /// Writes the status and these conditions, on the host as it was seen; the answer is the host as it
    /// stands then. Conditions of others, and what else metal3 keeps in a status, stay.
    ///
    /// # Errors
    /// [`WriteError`]: only after [`WriteError::Changed`] is it certain that nothing was written.
    pub async fn write_status(
        &self,
        host: &Host,
        write: &StatusWrite,
        conditions: &[Write],
    ) -> Result<Host, WriteError> {
        let object = if write::needs_object(host, conditions) {
            Some(self.as_seen(host).await?)
        } else {
            None
        };
        let body = write::patch(host, write, conditions, object.as_ref());
        let hosts = self.hosts(&host.name);
        let (params, patch) = (params(), Patch::Merge(&body));
        let call = hosts.patch_status(&host.name.name, &params, &patch);
        let answer = convert(&ask(call).await.map_err(WriteError::of)?);
        match write::dropped(&answer, write, conditions) {
            dropped if dropped.is_empty() => Ok(answer),
            dropped => Err(WriteError::Pruned(dropped)),
        }
    }

    /// Removes annotations, on the host as it was seen; the answer is the host as it stands then.
    ///
    /// # Errors
    /// As [`Self::write_status`].
    pub async fn remove_annotations(
        &self,
        host: &Host,
        names: &[String],
    ) -> Result<Host, WriteError> {
        let gone = names.iter().map(|name| (name.clone(), Value::Null));
        let mut metadata = write::precondition(host);
        metadata["annotations"] = Value::Object(gone.collect::<Map<_, _>>());
        let body = json!({ "metadata": metadata });
        let hosts = self.hosts(&host.name);
        let (params, patch) = (params(), Patch::Merge(&body));
        let call = hosts.patch(&host.name.name, &params, &patch);
        Ok(convert(&ask(call).await.map_err(WriteError::of)?))
    }

    /// The credentials in a Secret of this namespace, read by its name.
    ///
    /// # Errors
    /// Why there are none, with what a person does about it.
    pub async fn secret(&self, namespace: &str, name: &str) -> Result<Secret, SecretTrouble> {
        secret::read(&self.client, namespace, name).await
    }

    /// Says it in the host's namespace, unless the same was said about the same reboot.
    ///
    /// # Errors
    /// When it could not be said.
    pub async fn say(&self, host: &Host, event: &Event, now: Now) -> Result<(), Error> {
        let HostName { namespace, name } = &host.name;
        let said = Said {
            namespace,
            name: Name::of(name, &host.uid, &episode(host), event),
            about: json!({
                "kind": KIND, "apiVersion": API_VERSION, "namespace": namespace, "name": name,
                "uid": host.uid,
            }),
            component: CONTROLLER,
            host: None,
            event,
        };
        said.say(&self.client, now).await
    }

    fn hosts(&self, name: &HostName) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), &name.namespace)
    }

    /// The object of this very version.
    async fn as_seen(&self, host: &Host) -> Result<HostObject, WriteError> {
        let hosts = self.hosts(&host.name);
        let object = ask(hosts.get_opt(&host.name.name)).await?;
        object
            .filter(|object| {
                object.uid().as_ref() == Some(&host.uid)
                    && object.resource_version().as_ref() == Some(&host.resource_version)
            })
            .ok_or(WriteError::Changed)
    }
}

/// Which reboot it is.
fn episode(host: &Host) -> String {
    let status = &host.status;
    format!(
        "{:?} {:?}",
        status.pending_reboot_since, status.last_powered_on
    )
}

fn params() -> PatchParams {
    patched_by(CONTROLLER)
}
