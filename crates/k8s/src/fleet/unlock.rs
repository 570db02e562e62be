//! Breaking a lock by a person's word, or on proof. Source: specification §2.2.

use dogwatch_api::event::{LOCK_BROKEN, NODE_EVENT_NAMESPACE};
use dogwatch_core::Now;
use dogwatch_core::check::HolderFound;
use dogwatch_core::decision::{Event, Severity};
use dogwatch_core::explain::LeaseRow;
use dogwatch_core::lock::{self, HolderId, LeaseSeen};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::FleetClient;
use super::read::lease_row;
use super::request::MANAGER;
use crate::error::{Error, ask};
use crate::event::{Name, Said};
use crate::lock::{LockClient, ReleaseOutcome};

impl FleetClient {
    /// One slot's Lease; `None`: there is none of that name.
    pub async fn lease(&self, name: &str) -> Result<Option<LeaseRow>, Error> {
        let lease = ask(self.leases().get_opt(name)).await?;
        Ok(lease.as_ref().and_then(lease_row))
    }

    /// The Node that a held Lease stands for, read afresh; `None`: its holder names none.
    pub async fn holder_found(&self, lease: &LeaseSeen) -> Result<Option<HolderFound>, Error> {
        let Some(name) = lock::holder_node_name(lease) else {
            return Ok(None);
        };
        let node = self.node(&name).await?;
        Ok(Some(node.map_or(HolderFound::Gone, |node| {
            HolderFound::There(Box::new(node))
        })))
    }

    /// Frees a held Lease, holder and record in one write, if it still is as it was seen.
    pub async fn break_lock(&self, lease: &LeaseSeen) -> ReleaseOutcome {
        let hand = HolderId::new(MANAGER).expect("eight bytes");
        let client = LockClient::new(self.client.clone(), &self.namespace, hand);
        client.break_lock(lease).await
    }

    /// Whom the API server takes us for; `None` where it does not say.
    pub async fn who_am_i(&self) -> Option<String> {
        let api: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let (params, review) = (PostParams::default(), SelfSubjectReview::default());
        let user = ask(api.create(&params, &review))
            .await
            .ok()?
            .status?
            .user_info?;
        user.username.filter(|name| !name.is_empty())
    }

    /// Says on the Lease, and on the Node that it is held for where that is there, who breaks it
    /// and why. Before it is done: what cannot be told is not done.
    pub async fn audit_break(
        &self,
        lease: &LeaseSeen,
        holder: Option<&HolderFound>,
        message: &str,
        now: Now,
    ) -> Result<(), Error> {
        let about = json!({
            "kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "namespace": self.namespace,
            "name": lease.name, "uid": lease.uid, "resourceVersion": lease.resource_version,
        });
        self.say(&self.namespace, &lease.name, about, message, now)
            .await?;
        if let Some(HolderFound::There(node)) = holder {
            let name = node.name.as_str();
            let about =
                json!({ "kind": "Node", "apiVersion": "v1", "name": name, "uid": node.uid });
            self.say(NODE_EVENT_NAMESPACE, name, about, message, now)
                .await?;
        }
        Ok(())
    }

    async fn say(
        &self,
        namespace: &str,
        name: &str,
        about: serde_json::Value,
        message: &str,
        now: Now,
    ) -> Result<(), Error> {
        let event = Event {
            severity: Severity::Warning,
            reason: LOCK_BROKEN,
            message: message.to_owned(),
        };
        let said = Said {
            namespace,
            name: Name::from(name),
            about,
            component: MANAGER,
            host: None,
            event: &event,
        };
        said.say(&self.client, now).await
    }
}
