//! The manager's watches: one for each cached kind.

use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Api, Client};

use super::perform::CacheUpdate;
use crate::world::cache::CachedKind;
use crate::world::object_watch::{StoredObjectEvent, watch_objects};

/// The watched kinds by their names.
pub const WATCHED_KINDS: [&str; 9] = [
    "nodes",
    "pods",
    "replicasets",
    "daemonsets",
    "deployments",
    "poddisruptionbudgets",
    "volumeattachments",
    "persistentvolumeclaims",
    "leases",
];

/// An update from one watch.
pub struct FeedUpdate {
    pub kind: &'static str,
    /// Whether all objects of the kind are known after this update.
    pub complete: bool,
    /// Applies the update to a cache and returns the changes.
    pub apply: CacheUpdate,
}

pub type KindFeed = BoxStream<'static, FeedUpdate>;

pub fn all_feeds(client: &Client) -> SelectAll<KindFeed> {
    let [
        nodes,
        pods,
        sets,
        daemons,
        deployments,
        budgets,
        attachments,
        claims,
        leases,
    ] = WATCHED_KINDS;
    let api = client.clone();
    futures::stream::select_all([
        kind_feed(nodes, Api::<Node>::all(api.clone())),
        kind_feed(pods, Api::<Pod>::all(api.clone())),
        kind_feed(sets, Api::<ReplicaSet>::all(api.clone())),
        kind_feed(daemons, Api::<DaemonSet>::all(api.clone())),
        kind_feed(deployments, Api::<Deployment>::all(api.clone())),
        kind_feed(budgets, Api::<PodDisruptionBudget>::all(api.clone())),
        kind_feed(attachments, Api::<VolumeAttachment>::all(api.clone())),
        kind_feed(claims, Api::<PersistentVolumeClaim>::all(api.clone())),
        kind_feed(leases, Api::<Lease>::namespaced(api, "kube-node-lease")),
    ])
}

fn kind_feed<K: CachedKind>(kind: &'static str, api: Api<K>) -> KindFeed {
    watch_objects(api, None)
        .map(move |event| {
            let complete = matches!(event, StoredObjectEvent::Listed(_));
            let apply: CacheUpdate = match event {
                StoredObjectEvent::Listed(objects) => {
                    Box::new(move |cache| cache.observe_list(objects))
                }
                StoredObjectEvent::Applied(object) => {
                    Box::new(move |cache| cache.observe_object(object).into_iter().collect())
                }
                StoredObjectEvent::Deleted(object) => {
                    Box::new(move |cache| cache.observe_deleted(&object).into_iter().collect())
                }
            };
            FeedUpdate {
                kind,
                complete,
                apply,
            }
        })
        .boxed()
}
