//! Applies the events of a kind to the objects that are known of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_core::remediation::{ObjectName, StoredBackup};

use super::machine::ObservedCluster;
use super::optional_watch::OptionalWatchEvent;
use crate::informer::InformerEvent;

/// Returns whether anything changed. An unreadable backup counts as missing: it will be written
/// over.
pub(super) fn apply_backup_event(
    backups: &mut BTreeMap<String, Arc<StoredBackup>>,
    event: InformerEvent<String, Option<Arc<StoredBackup>>>,
) -> bool {
    match event {
        InformerEvent::Listed(all) => {
            let all = all.into_iter();
            let all = all.filter_map(|(host, kept)| Some((host, kept?)));
            let before = std::mem::replace(backups, all.collect());
            before != *backups
        }
        InformerEvent::Applied(host, Some(kept)) => put_object(backups, host, kept),
        InformerEvent::Applied(host, None) | InformerEvent::Deleted(host) => {
            backups.remove(&host).is_some()
        }
        InformerEvent::NotInstalled => !std::mem::take(backups).is_empty(),
        InformerEvent::Forbidden(_) | InformerEvent::Failed(_) => false,
    }
}

/// Returns whether anything changed.
pub(super) fn apply_cluster_event(
    paused: &mut BTreeSet<ObjectName>,
    told: OptionalWatchEvent<ObservedCluster>,
) -> bool {
    match told {
        OptionalWatchEvent::All(_, all) => {
            let all = all.into_iter().filter(|it| it.paused);
            let before = std::mem::replace(paused, all.map(|it| it.name).collect());
            before != *paused
        }
        OptionalWatchEvent::Put(cluster) if cluster.paused => paused.insert(cluster.name),
        OptionalWatchEvent::Put(cluster) | OptionalWatchEvent::Gone(cluster) => {
            paused.remove(&cluster.name)
        }
        OptionalWatchEvent::NotInstalled => !std::mem::take(paused).is_empty(),
        OptionalWatchEvent::Failed(_) => false,
    }
}

/// Applies an event; `is_its` tells whether a name belongs to this kind. Returns whether anything
/// changed.
pub(super) fn apply_object_event<N: Ord + Clone, T: PartialEq>(
    objects: &mut BTreeMap<N, Arc<T>>,
    told: OptionalWatchEvent<Arc<T>>,
    name: impl Fn(&T) -> N,
    is_its: impl Fn(&N) -> bool,
) -> bool {
    match told {
        OptionalWatchEvent::All(_, all) => {
            let there: BTreeSet<N> = all.iter().map(|it| name(it)).collect();
            let before = objects.len();
            objects.retain(|name, _| !is_its(name) || there.contains(name));
            let mut is_another = objects.len() != before;
            for object in all {
                is_another |= put_object(objects, name(&object), object);
            }
            is_another
        }
        OptionalWatchEvent::Put(object) => put_object(objects, name(&object), object),
        OptionalWatchEvent::Gone(object) => objects.remove(&name(&object)).is_some(),
        OptionalWatchEvent::NotInstalled => {
            let before = objects.len();
            objects.retain(|name, _| !is_its(name));
            objects.len() != before
        }
        OptionalWatchEvent::Failed(_) => false,
    }
}

fn put_object<N: Ord, T: PartialEq>(
    objects: &mut BTreeMap<N, Arc<T>>,
    name: N,
    object: Arc<T>,
) -> bool {
    if objects.get(&name).is_some_and(|known| *known == object) {
        return false;
    }
    objects.insert(name, object);
    true
}
