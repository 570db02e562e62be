//! Which pods go. The rules of `kubectl drain --ignore-daemonsets --delete-emptydir-data --force`.

use super::LabelSelector;
use super::lookups::{Known, Lookups};
use super::types::{DaemonSetRef, PodPhase, PodSeen};
use crate::name::is_dns_name;

/// What becomes of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is none of the drain's business.
    Stays,
    /// It depends on whether this DaemonSet exists.
    Asks(DaemonSetRef),
    /// It must leave the node.
    Goes,
}

/// Mirror pods stay (only the kubelet can end them), excluded ones stay, finished ones go, those of
/// an existing DaemonSet stay, the rest goes.
pub(super) fn fate(pod: &PodSeen, exclude: Option<&LabelSelector>, lookups: &Lookups) -> Fate {
    let excluded = exclude.is_some_and(|selector| selector.matches(&pod.labels));
    if pod.mirror || excluded {
        return Fate::Stays;
    }
    if pod.phase == PodPhase::Finished {
        return Fate::Goes;
    }
    match daemonset_of(pod) {
        None => Fate::Goes,
        Some(set) => match lookups.known(&set) {
            Some(Known::Exists) => Fate::Stays,
            Some(Known::Gone) => Fate::Goes,
            None => Fate::Asks(set),
        },
    }
}

/// kubectl compares group, version and kind: a DaemonSet of another group is like any controller. No
/// DaemonSet has a name that is no DNS name: whoever writes pods writes it, and it would become part
/// of a request's path.
fn daemonset_of(pod: &PodSeen) -> Option<DaemonSetRef> {
    let owner = pod.controller.as_ref()?;
    let is_one = owner.api_version == "apps/v1" && owner.kind == "DaemonSet";
    (is_one && is_dns_name(&owner.name)).then(|| DaemonSetRef {
        namespace: pod.pod.namespace.clone(),
        name: owner.name.clone(),
    })
}
