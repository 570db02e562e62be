//! One watch for each kind that the cache keeps.

use dogwatch_k8s::watch::{Event, Full, Selection, watch};
use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Api, Client};

use super::perform::Effect;
use crate::world::cache::Kept;

/// The kinds, as the feeds call them.
pub const KINDS: [&str; 9] = [
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

/// What one watch tells.
pub struct Told {
    /// Its kind.
    pub kind: &'static str,
    /// Whether all objects of the kind are known with this.
    pub complete: bool,
    /// Takes it into a cache, and says what changed by it.
    pub apply: Effect,
}

/// One watch.
pub type Feed = BoxStream<'static, Told>;

/// All of them.
pub fn all(client: &Client) -> SelectAll<Feed> {
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
    ] = KINDS;
    let api = client.clone();
    futures::stream::select_all([
        feed(nodes, Api::<Node>::all(api.clone())),
        feed(pods, Api::<Pod>::all(api.clone())),
        feed(sets, Api::<ReplicaSet>::all(api.clone())),
        feed(daemons, Api::<DaemonSet>::all(api.clone())),
        feed(deployments, Api::<Deployment>::all(api.clone())),
        feed(budgets, Api::<PodDisruptionBudget>::all(api.clone())),
        feed(attachments, Api::<VolumeAttachment>::all(api.clone())),
        feed(claims, Api::<PersistentVolumeClaim>::all(api.clone())),
        feed(leases, Api::<Lease>::namespaced(api, "kube-node-lease")),
    ])
}

fn feed<K: Kept>(kind: &'static str, api: Api<K>) -> Feed {
    watch(Full(api), Selection::default(), || 0.5)
        .filter_map(move |event| async move {
            let complete = matches!(event, Event::Restarted(_));
            let apply: Effect = match event {
                Event::Restarted(objects) => Box::new(move |cache| cache.listed(objects)),
                Event::Applied(object) => {
                    Box::new(move |cache| cache.seen(object).into_iter().collect())
                }
                Event::Deleted(object) => {
                    Box::new(move |cache| cache.deleted(&object).into_iter().collect())
                }
                Event::Trouble(error) => {
                    tracing::debug!(%error, kind, "a simulated controller cannot watch");
                    return None;
                }
            };
            Some(Told {
                kind,
                complete,
                apply,
            })
        })
        .boxed()
}
