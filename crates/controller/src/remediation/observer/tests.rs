use dogwatch_api::lease::REMEDIATION_HOLDER;
use dogwatch_k8s::cluster::LeaseObject;

use super::*;

fn node() -> NodeName {
    NodeName::new("n1").unwrap()
}

/// The cluster, with the Lease of node `n1` held in this version.
fn view_of(version: &str) -> ClusterView {
    let lease = LeaseObject {
        name: "dogwatch-remedy-n1".into(),
        uid: "u".into(),
        resource_version: version.into(),
        holder: Some(REMEDIATION_HOLDER.into()),
        renewed: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        slot: None,
        remediation: None,
    };
    ClusterView {
        leases: [(lease.name.clone(), Arc::new(lease))].into(),
        synced: true,
        ..ClusterView::default()
    }
}

fn may_be_freed(observer: &RemediationObserver) -> bool {
    observer.world.leases[&node()].may_be_freed
}

#[test]
fn a_lease_that_was_held_before_this_leader_may_still_be_freed_until_it_is_written_again() {
    let mut observer = RemediationObserver::default();
    for (version, is_doubtful) in [("1", true), ("1", true), ("2", false)] {
        observer.observe_cluster(&view_of(version), Duration::ZERO);
        assert_eq!(may_be_freed(&observer), is_doubtful, "{version}");
    }
}

#[test]
fn a_lease_for_which_a_free_was_sent_may_be_freed_until_it_is_written_again() {
    let mut observer = RemediationObserver::default();
    let management = NodeCluster::Management;
    let synced = ClusterView {
        synced: true,
        ..ClusterView::default()
    };
    observer.observe_cluster(&synced, Duration::ZERO);
    observer.observe_cluster(&view_of("1"), Duration::ZERO);
    assert!(!may_be_freed(&observer));
    let free = RemediationAction::FreeLease {
        node: node(),
        version: "1".into(),
    };
    observer.record_sent_actions(&management, &[free]);
    assert!(may_be_freed(&observer));
    observer.observe_cluster(&view_of("1"), Duration::ZERO);
    assert!(may_be_freed(&observer));
    let taken = HeldRemediationLease {
        resource_version: "2".into(),
        ..HeldRemediationLease::default()
    };
    let answer = RemediationAnswer::Lease {
        node: node(),
        lease: Some(taken),
    };
    observer.apply_answer(&management, answer, Duration::ZERO);
    assert!(!may_be_freed(&observer));
    // The watch is behind.
    observer.observe_cluster(&view_of("1"), Duration::ZERO);
    assert!(!may_be_freed(&observer));
}
