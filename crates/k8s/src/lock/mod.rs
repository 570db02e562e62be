//! The reboot lock on Leases. Source: specification §2.2; the measured answers that it relies on
//! are the named tests beside the embedded cluster.
//!
//! Taken by server-side apply, never forced, with the holder's identity as field manager: the API
//! server itself refuses the second one. Every bid and release carries the Lease's UID and
//! resourceVersion, so that a late duplicate does nothing. What to write and when is decided in
//! `dogwatch_core::lock`; this is the hand.
//!
//! Promises: no write here is ever forced; nothing deletes a Lease; an answer that leaves it open
//! whether the write was done comes back as such (`Unknown`) and never as success or failure.

pub mod api_lock;
mod count;
mod group;
mod lease;
mod presence;
mod remedy;
mod slots;
mod trim;
mod write;

use dogwatch_api::{annotation, label, lease as lease_name};
use dogwatch_core::lock::{self, HolderId, HolderNode, LeaseSeen, Waiter};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::{self, Policies};
use dogwatch_core::reboot::group_of_lease;
use futures::Stream;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PartialObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::error::{Error, Kind, ask};
use crate::watch::{Event, Selection, watch};

pub(crate) use count::fenced_by;
pub(crate) use lease::seen as lease_seen;

pub use group::group_selector;
pub use presence::{Presence, WaitingHere};
pub(crate) use presence::{told_by_group, waiting_hosts};
pub use remedy::{Freed, RemedyHeld, RemedyLease, Taken};
pub use slots::Slots;
pub(crate) use trim::{Leases, list as list_leases};
pub use write::{BidOutcome, Leaving, ReleaseOutcome};

/// One holder's hand on the locks of one namespace.
#[derive(Clone)]
pub struct LockClient {
    client: Client,
    leases: Api<Lease>,
    holder: HolderId,
}

impl LockClient {
    /// A hand that writes as `holder` into Dogwatch's `namespace`.
    pub fn new(client: Client, namespace: &str, holder: HolderId) -> Self {
        let leases = Api::namespaced(client.clone(), namespace);
        Self {
            client,
            leases,
            holder,
        }
    }

    /// The same hand for another holder.
    #[must_use]
    pub fn of(&self, holder: HolderId) -> Self {
        Self {
            holder,
            ..self.clone()
        }
    }

    /// The identity it writes as.
    pub fn holder(&self) -> &HolderId {
        &self.holder
    }

    /// Makes the group's Leases below `slots` that are not among `seen`, free, by plain create.
    ///
    /// Somebody else making one at the same time is fine. One that is there but lost its label
    /// (no list would ever show it) gets it back.
    pub async fn ensure(
        &self,
        group: &GroupName,
        slots: u32,
        seen: &[LeaseSeen],
    ) -> Result<(), Error> {
        for slot in
            (0..slots.min(lock::SLOTS)).filter(|slot| seen.iter().all(|lease| lease.slot != *slot))
        {
            let free = lease::free(group, slot);
            match ask(self.leases.create(&PostParams::default(), &free)).await {
                Ok(_) => {}
                Err(error) if error.kind() == Kind::AlreadyExists => {
                    self.label(group, &lease_name::slot_name(group.as_str(), slot))
                        .await?;
                }
                // No more may be made here, by a quota: those that are there do.
                Err(error) if slot > 0 && error.is_over_quota() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The group's slots, read afresh.
    pub async fn list(&self, group: &GroupName) -> Result<Vec<LeaseSeen>, Error> {
        let list = trim::list(&self.leases, of_group(group).list_params()).await?;
        Ok(list
            .iter()
            .filter_map(|lease| lease::seen(lease, group))
            .collect())
    }

    /// Every slot of every group, read afresh.
    pub async fn list_all(&self) -> Result<Vec<LeaseSeen>, Error> {
        let all = ListParams::default().labels(label::GROUP);
        let list = trim::list(&self.leases, all).await?;
        let seen = |lease: &Lease| lease::seen(lease, &group_of_lease(&lease.name_any())?);
        Ok(list.iter().filter_map(seen).collect())
    }

    /// Watches the group's slots; [`Slots`] makes of it what a decision sees.
    pub fn watch<J>(
        &self,
        group: &GroupName,
        jitter: J,
    ) -> impl Stream<Item = Event<Lease>> + Send + use<J>
    where
        J: FnMut() -> f64 + Send + 'static,
    {
        watch(Leases(self.leases.clone()), of_group(group), jitter)
    }

    /// The group's nodes that wait for the lock, and those who wait at a lock API, for the leaver's
    /// hint: two metadata-only lists. Each with its zone, where the group's policy goes by one.
    pub async fn waiting_nodes(
        &self,
        group: &GroupName,
        policies: &Policies,
    ) -> Result<Vec<Waiter>, Error> {
        self.waiting(group, policies, None).await
    }

    /// The same for a lock API: without those who wait at this process itself. It knows them better
    /// than its own Lease, which may name some that were served since.
    pub async fn waiting_elsewhere(
        &self,
        group: &GroupName,
        policies: &Policies,
        process: &str,
    ) -> Result<Vec<Waiter>, Error> {
        self.waiting(group, policies, Some(process)).await
    }

    async fn waiting(
        &self,
        group: &GroupName,
        policies: &Policies,
        not_at: Option<&str>,
    ) -> Result<Vec<Waiter>, Error> {
        let waiting = format!("{}={}", label::REBOOT, label::WAITING);
        let selector = and(&waiting, &group_selector(group, policies));
        let nodes = ask(self
            .nodes()
            .list_metadata(&ListParams::default().labels(&selector)))
        .await?;
        let members = nodes
            .items
            .iter()
            .filter(|node| policy::group(policies, node.labels()) == *group);
        let nodes = members.filter_map(|node| waiter(node, policies));
        let hosts = presence::waiters(&self.leases, group, not_at).await?;
        Ok(nodes.chain(hosts).collect())
    }

    /// What there is under this Node name, read afresh.
    pub async fn holder_node(&self, name: &NodeName) -> Result<HolderNode, Error> {
        match ask(self.nodes().get_metadata_opt(name.as_str())).await? {
            Some(node) => Ok(HolderNode::There {
                uid: node.uid().unwrap_or_default(),
            }),
            None => Ok(HolderNode::Gone),
        }
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    async fn label(&self, group: &GroupName, name: &str) -> Result<(), Error> {
        let Some(lease) = ask(self.leases.get_opt(name)).await? else {
            return Ok(());
        };
        if lease
            .labels()
            .get(label::GROUP)
            .is_some_and(|value| value == group.as_str())
        {
            return Ok(());
        }
        let patch = json!({ "metadata": {
            "resourceVersion": lease.resource_version(),
            "labels": { label::GROUP: group.as_str() },
        }});
        match ask(self
            .leases
            .patch(name, &PatchParams::default(), &Patch::Merge(patch)))
        .await
        {
            Ok(_) => Ok(()),
            // It changed meanwhile: whoever needs it asks again.
            Err(error) if error.kind() == Kind::Conflict => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn of_group(group: &GroupName) -> Selection {
    Selection::labels(format!("{}={group}", label::GROUP))
}

/// Both selectors; an empty one asks nothing.
fn and(first: &str, second: &str) -> String {
    let parts = [first, second].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(",")
}

fn waiter(node: &PartialObjectMeta<Node>, policies: &Policies) -> Option<Waiter> {
    /// The one field of the Node's record that a leaver needs.
    #[derive(serde::Deserialize)]
    struct Since {
        since: jiff::Timestamp,
    }
    let name = NodeName::new(node.name_any()).ok()?;
    let record = node.annotations().get(annotation::REBOOT);
    let since = record.and_then(|text| serde_json::from_str::<Since>(text).ok());
    Some(Waiter {
        holder: HolderId::node(&name),
        control_plane: policy::is_control_plane(node.labels()),
        zone: policy::zone(policies, node.labels()),
        since: since.map(|record| record.since),
    })
}
