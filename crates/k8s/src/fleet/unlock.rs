//! Breaks a lock because a person decided it or because the holder is proved gone. Source:
//! specification §2.2.

use dogwatch_api::event::{LOCK_BROKEN, NODE_EVENT_NAMESPACE};
use dogwatch_core::Now;
use dogwatch_core::check::ObservedHolder;
use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::explain::LeaseRow;
use dogwatch_core::lock::{self, HolderId, ObservedLease};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::FleetClient;
use super::read::lease_row;
use super::request::FIELD_MANAGER;
use crate::error::{Error, with_timeout};
use crate::event::{EventDraft, EventName};
use crate::lock::{LockClient, ReleaseOutcome};
use crate::readable_dates::ReadableApi as _;

impl FleetClient {
    /// `None`: no Lease of this name.
    pub async fn read_lease(&self, name: &str) -> Result<Option<LeaseRow>, Error> {
        let lease = with_timeout(self.lease_api().get_readable_opt(name)).await?;
        Ok(lease.as_ref().and_then(lease_row))
    }

    /// Reads the Node that a held Lease names as its holder. `None`: the holder is no Node.
    pub async fn read_holder(
        &self,
        lease: &ObservedLease,
    ) -> Result<Option<ObservedHolder>, Error> {
        let Some(name) = lock::holder_node_name(lease) else {
            return Ok(None);
        };
        let node = self.read_node(&name).await?;
        Ok(Some(node.map_or(ObservedHolder::Gone, |node| {
            ObservedHolder::There(Box::new(node))
        })))
    }

    /// Frees a held Lease, holder and record in one write, unless it has changed since it was read.
    pub async fn break_lock(&self, lease: &ObservedLease) -> ReleaseOutcome {
        let hand = HolderId::new(FIELD_MANAGER).expect("eight bytes");
        let client = LockClient::new(self.client.clone(), &self.namespace, hand);
        client.break_lock(lease).await
    }

    /// Our user name at the API server; `None` if it returns none.
    pub async fn try_read_caller(&self) -> Option<String> {
        let api: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let (params, review) = (PostParams::default(), SelfSubjectReview::default());
        let user = with_timeout(api.create(&params, &review))
            .await
            .ok()?
            .status?
            .user_info?;
        user.username.filter(|name| !name.is_empty())
    }

    /// Writes Events about who breaks the lock and why: on the Lease, and on the holder's Node if
    /// it exists. Called before the lock is broken: if the Events cannot be written, the lock is
    /// not broken.
    pub async fn record_lock_break(
        &self,
        lease: &ObservedLease,
        holder: Option<&ObservedHolder>,
        message: &str,
        now: Now,
    ) -> Result<(), Error> {
        let about = json!({
            "kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "namespace": self.namespace,
            "name": lease.name, "uid": lease.uid, "resourceVersion": lease.resource_version,
        });
        self.write_event(&self.namespace, &lease.name, about, message, now)
            .await?;
        if let Some(ObservedHolder::There(node)) = holder {
            let name = node.name.as_str();
            let about =
                json!({ "kind": "Node", "apiVersion": "v1", "name": name, "uid": node.uid });
            self.write_event(NODE_EVENT_NAMESPACE, name, about, message, now)
                .await?;
        }
        Ok(())
    }

    async fn write_event(
        &self,
        namespace: &str,
        name: &str,
        about: serde_json::Value,
        message: &str,
        now: Now,
    ) -> Result<(), Error> {
        let event = DecisionEvent {
            severity: EventSeverity::Warning,
            reason: LOCK_BROKEN,
            message: message.to_owned(),
        };
        let said = EventDraft {
            namespace,
            name: EventName::with_random_suffix(name),
            involved_object: about,
            component: FIELD_MANAGER,
            host: None,
            event: &event,
        };
        said.write_event(&self.client, now).await
    }
}
