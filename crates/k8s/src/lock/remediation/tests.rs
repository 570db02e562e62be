use super::*;
use dogwatch_core::lock::HolderId;
use serde_json::json;

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

#[test]
fn a_name_too_long_for_a_lease_is_hashed_and_the_node_is_counted_all_the_same() {
    assert_eq!(lease_name_of(&node("worker-0")), "dogwatch-remedy-worker-0");
    let longest = "n".repeat(lease_name::MAX_NAME_BYTES - lease_name::REMEDIATION_PREFIX.len());
    assert_eq!(
        lease_name_of(&node(&longest)).len(),
        lease_name::MAX_NAME_BYTES
    );
    let long = node(&"n".repeat(253));
    let name = lease_name_of(&long);
    assert!(name.len() < 100 && name.starts_with("dogwatch-remedy-sha256-"));
    // The record is lost too; the name contains the same hash as a holder's name.
    let lease: Lease = serde_json::from_value(json!({
        "metadata": { "name": name, "uid": "u", "resourceVersion": "1" },
        "spec": { "holderIdentity": "remedy" },
    }))
    .unwrap();
    let held = count::observed_hold(&lease, &GroupName::default_group()).unwrap();
    assert_eq!(held.effective_holder(), HolderId::for_node(&long));
    assert!(held.is_control_plane_remediation(), "nobody can tell");
}

/// A late call that frees the earlier version then does nothing.
#[test]
fn a_held_lease_is_written_again_with_a_new_time_and_stays_alone() {
    let record = |subject: &str, second| RemediationLeaseRecord {
        node: node("n1"),
        subject: subject.into(),
        control_plane: true,
        group: Some(GroupName::control_plane_group()),
        since: Timestamp::from_second(second).unwrap(),
        alone: second == 1,
    };
    for subject in ["node/n1", "machine/machines/n1"] {
        let held = record(subject, 1);
        let lease: Lease = serde_json::from_value(json!({
            "metadata": {
                "name": "dogwatch-remedy-n1", "uid": "u", "resourceVersion": "1",
                "annotations": { annotation::HOLDER: serde_json::to_string(&held).unwrap() },
            },
            "spec": { "holderIdentity": "remedy" },
        }))
        .unwrap();
        let wanted = RemediationLeaseRecord {
            control_plane: false,
            group: None,
            ..record("node/n1", 2)
        };
        let state = RemediationLeaseClient::classify_lease(&lease, &wanted);
        let RemediationLeaseState::Held(written) = state else {
            panic!("the Lease is held");
        };
        let kept = RemediationLeaseRecord {
            alone: true,
            ..record("node/n1", 2)
        };
        assert_eq!(written, kept);
    }
}
