//! Takes and releases the reboot lock on Leases. Source: specification §2.2; the tests beside the
//! embedded cluster name the measured answers that it relies on.
//!
//! A holder takes a Lease by server-side apply, never forced, with its identity as field manager:
//! the API server itself refuses a second holder. Every bid and release carries the Lease's UID and
//! resourceVersion, so that a late duplicate does nothing. `dogwatch_core::lock` decides what to
//! write and when.
//!
//! **Promises:** no write is forced; nothing here deletes a slot's Lease; an answer that leaves
//! open whether the write was done is returned as `Unknown`, never as success or failure.

pub mod api_lock;
mod count;
mod group;
mod lease;
mod presence;
mod remediation;
mod slots;
mod trim;
mod write;

use dogwatch_api::{annotation, label, lease as lease_name};
use dogwatch_core::lock::{self, HolderId, HolderNode, LockWaiter, ObservedLease};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::{self, ClusterPolicies};
use dogwatch_core::reboot::group_of_lease;
use futures::Stream;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PartialObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::readable_dates::ReadableApi as _;
use crate::watch::{ObjectEvent, ObjectSelection, list_and_watch};

pub(crate) use count::remediation_hold;
pub(crate) use lease::observed_lease;

pub use group::group_selector;
pub use presence::{LocalWaiter, PresenceLease};
pub(crate) use presence::{parse_group_waiters, parse_waiting_hosts, waiters_by_group};
pub use remediation::{
    LeaseFreeOutcome, LeaseTakeOutcome, RemediationLeaseClient, RemediationLeaseHold,
};
pub use slots::GroupSlots;
pub(crate) use trim::{TrimmedLeases, list_trimmed_leases as list_leases};
pub use write::{BidOutcome, LeaveReason, ReleaseOutcome};

/// Lock client of one holder in one namespace.
#[derive(Clone)]
pub struct LockClient {
    client: Client,
    leases: Api<Lease>,
    holder: HolderId,
}

impl LockClient {
    /// `namespace`: where Dogwatch runs.
    pub fn new(client: Client, namespace: &str, holder: HolderId) -> Self {
        let leases = Api::namespaced(client.clone(), namespace);
        Self {
            client,
            leases,
            holder,
        }
    }

    #[must_use]
    pub fn for_holder(&self, holder: HolderId) -> Self {
        Self {
            holder,
            ..self.clone()
        }
    }

    pub fn holder_id(&self) -> &HolderId {
        &self.holder
    }

    /// Creates the group's Leases below `slots` that are not among `seen`, as free Leases.
    ///
    /// Another coordinator may create one at the same time. A Lease that exists but lost its label
    /// (so no list shows it) gets the label back.
    pub async fn ensure_leases(
        &self,
        group: &GroupName,
        slots: u32,
        seen: &[ObservedLease],
    ) -> Result<(), Error> {
        for slot in (0..slots.min(lock::MAX_SLOTS))
            .filter(|slot| seen.iter().all(|lease| lease.slot != *slot))
        {
            let free = lease::free_lease(group, slot);
            match with_timeout(self.leases.create(&PostParams::default(), &free)).await {
                Ok(_) => {}
                Err(error) if error.kind() == ApiErrorKind::AlreadyExists => {
                    self.restore_label(group, &lease_name::slot_name(group.as_str(), slot))
                        .await?;
                }
                // A quota forbids more Leases: the existing ones are enough.
                Err(error) if slot > 0 && error.is_over_quota() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub async fn list_slots(&self, group: &GroupName) -> Result<Vec<ObservedLease>, Error> {
        let list =
            trim::list_trimmed_leases(&self.leases, group_selection(group).list_params()).await?;
        Ok(list
            .iter()
            .filter_map(|lease| lease::observed_lease(lease, group))
            .collect())
    }

    pub async fn list_all_slots(&self) -> Result<Vec<ObservedLease>, Error> {
        let all = ListParams::default().labels(label::GROUP);
        let list = trim::list_trimmed_leases(&self.leases, all).await?;
        let seen =
            |lease: &Lease| lease::observed_lease(lease, &group_of_lease(&lease.name_any())?);
        Ok(list.iter().filter_map(seen).collect())
    }

    /// Watches the group's slots; [`GroupSlots`] turns the events into a snapshot.
    pub fn watch_slots<J>(
        &self,
        group: &GroupName,
        jitter: J,
    ) -> impl Stream<Item = ObjectEvent<Lease>> + Send + use<J>
    where
        J: FnMut() -> f64 + Send + 'static,
    {
        list_and_watch(
            TrimmedLeases(self.leases.clone()),
            group_selection(group),
            jitter,
        )
    }

    /// The group's waiting nodes and the hosts that wait at a lock API, for the hint on release:
    /// two metadata-only lists. Each waiter has its zone if the group's policy uses zones.
    pub async fn list_waiters(
        &self,
        group: &GroupName,
        policies: &ClusterPolicies,
    ) -> Result<Vec<LockWaiter>, Error> {
        self.list_waiters_except(group, policies, None).await
    }

    /// Like [`Self::list_waiters`], for a lock API: without those who wait at this process. The
    /// process knows its own waiters better than its Lease, which may still name some that were
    /// served.
    pub async fn list_waiters_elsewhere(
        &self,
        group: &GroupName,
        policies: &ClusterPolicies,
        process: &str,
    ) -> Result<Vec<LockWaiter>, Error> {
        self.list_waiters_except(group, policies, Some(process))
            .await
    }

    async fn list_waiters_except(
        &self,
        group: &GroupName,
        policies: &ClusterPolicies,
        not_at: Option<&str>,
    ) -> Result<Vec<LockWaiter>, Error> {
        let waiting = format!("{}={}", label::REBOOT, label::WAITING);
        let selector = join_selectors(&waiting, &group_selector(group, policies));
        // The names are a hint, so the API server's cache will do. A list that must be fresh would use
        // up the one time in 100 ms that the API server asks etcd how new its cache of Nodes is, and
        // the next holder's count of the budget would wait for that long.
        let any_version = ListParams::default().labels(&selector).match_any();
        let nodes = with_timeout(self.node_api().list_readable_metadata(&any_version)).await?;
        let members = nodes
            .items
            .iter()
            .filter(|node| policy::group_of_labels(policies, node.labels()) == *group);
        let nodes = members.filter_map(|node| node_waiter(node, policies));
        let hosts = presence::list_remote_waiters(&self.leases, group, not_at).await?;
        Ok(nodes.chain(hosts).collect())
    }

    /// Reads the Node of this name.
    pub async fn read_holder_node(&self, name: &NodeName) -> Result<HolderNode, Error> {
        match with_timeout(self.node_api().get_metadata_opt(name.as_str())).await? {
            Some(node) => Ok(HolderNode::There {
                uid: node.uid().unwrap_or_default(),
            }),
            None => Ok(HolderNode::Gone),
        }
    }

    fn node_api(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    async fn restore_label(&self, group: &GroupName, name: &str) -> Result<(), Error> {
        let Some(lease) = with_timeout(self.leases.get_readable_opt(name)).await? else {
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
        match with_timeout(self.leases.patch_readable(
            name,
            &PatchParams::default(),
            &Patch::Merge(patch),
        ))
        .await
        {
            Ok(_) => Ok(()),
            // The Lease was changed meanwhile; a caller that needs the label tries again.
            Err(error) if error.kind() == ApiErrorKind::Conflict => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn group_selection(group: &GroupName) -> ObjectSelection {
    ObjectSelection::by_labels(format!("{}={group}", label::GROUP))
}

/// Joins two selectors; an empty one selects everything.
fn join_selectors(first: &str, second: &str) -> String {
    let parts = [first, second].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(",")
}

fn node_waiter(node: &PartialObjectMeta<Node>, policies: &ClusterPolicies) -> Option<LockWaiter> {
    /// The only field of the Node's record that a releasing holder needs.
    #[derive(serde::Deserialize)]
    struct WaitingSince {
        since: jiff::Timestamp,
    }
    let name = NodeName::new(node.name_any()).ok()?;
    let record = node.annotations().get(annotation::REBOOT);
    let since = record.and_then(|text| serde_json::from_str::<WaitingSince>(text).ok());
    Some(LockWaiter {
        holder: HolderId::for_node(&name),
        control_plane: policy::is_control_plane(node.labels()),
        zone: policy::zone_of_labels(policies, node.labels()),
        since: since.map(|record| record.since),
    })
}
