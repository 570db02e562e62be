//! Which pods a drain removes: the rules of `kubectl drain --ignore-daemonsets
//! --delete-emptydir-data --force`.

use super::LabelSelector;
use super::daemonset_lookups::{DaemonSetLookups, DaemonSetPresence};
use super::types::{DaemonSetRef, ObservedPod, PodPhase};
use crate::name::is_dns_name;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodDisposition {
    Stays,
    /// The answer depends on whether this DaemonSet exists.
    NeedsLookup(DaemonSetRef),
    Goes,
}

/// Mirror pods stay, because only the kubelet can end them. Excluded pods and pods of an existing
/// DaemonSet stay. Finished pods and all others go.
pub(super) fn pod_disposition(
    pod: &ObservedPod,
    exclude: Option<&LabelSelector>,
    lookups: &DaemonSetLookups,
) -> PodDisposition {
    let excluded = exclude.is_some_and(|selector| selector.matches_labels(&pod.labels));
    if pod.mirror || excluded {
        return PodDisposition::Stays;
    }
    if pod.phase == PodPhase::Finished {
        return PodDisposition::Goes;
    }
    match daemonset_of(pod) {
        None => PodDisposition::Goes,
        Some(set) => match lookups.known_presence(&set) {
            Some(DaemonSetPresence::Exists) => PodDisposition::Stays,
            Some(DaemonSetPresence::Gone) => PodDisposition::Goes,
            None => PodDisposition::NeedsLookup(set),
        },
    }
}

/// Compares group, version and kind, as kubectl does: a "DaemonSet" of another API group counts as
/// any other controller. A name that is not a DNS name is rejected, because whoever creates a pod
/// chooses it and it becomes part of a request path.
fn daemonset_of(pod: &ObservedPod) -> Option<DaemonSetRef> {
    let owner = pod.controller.as_ref()?;
    let is_one = owner.api_version == "apps/v1" && owner.kind == "DaemonSet";
    (is_one && is_dns_name(&owner.name)).then(|| DaemonSetRef {
        namespace: pod.pod.namespace.clone(),
        name: owner.name.clone(),
    })
}
