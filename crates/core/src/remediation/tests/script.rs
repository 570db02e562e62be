//! Remediations from the mark to the Ready Node, with the real power decision: upstream's script,
//! and a crash at each step.

use super::super::*;
use super::kit::*;
use super::town::Town;

/// A town with Machine a, whose kubelet has died while its machine runs on.
fn with_a_dead_kubelet() -> Town {
    let mut town = Town::new(&["a"]);
    let node = town.nodes.get_mut(&node_name("a")).unwrap();
    node.seen.labels = [("tier".into(), "db".into())].into();
    node.seen.unschedulable = true;
    node.annotations = [("site".into(), "x".into())].into();
    node.taints = vec![taint("example.com/dedicated")];
    town.site("a").is_connected = false;
    town.run(60);
    town
}

fn taint(key: &str) -> NodeTaint {
    NodeTaint {
        key: key.into(),
        value: String::new(),
        effect: "NoSchedule".into(),
    }
}

fn is_done(town: &Town) -> bool {
    let record = town.host("a").annotations.get("dogwatch.dev/remediation");
    let record = record.map(|text| serde_json::from_str::<RemediationRecord>(text).unwrap());
    record.is_some_and(|record| record.ended_at().is_some())
        && town.leases.is_empty()
        && !town.keeps("a")
}

/// CAPBM's own script. Source: `facts/fencing.md` §6.4.
#[test]
fn test_remediation() {
    let mut town = with_a_dead_kubelet();
    assert!(town.written.is_empty());
    // Annotate the Machine: the key is on the host; the host reports on: no deletion of the Node.
    town.mark("a");
    town.until("keyed", |town| {
        town.host("a").annotations.contains_key(MACHINE_KEY)
    });
    assert!(town.node("a").is_some_and(|node| node.seen.being_fenced));
    assert!(town.leases.contains_key(&node_name("a")));
    let value = town.host("a").annotations[MACHINE_KEY].clone();
    assert_eq!(value, r#"{"mode":"hard","machineUID":"uid-a"}"#);
    // Off: labels and annotations are stored, the Node is deleted, mark and key are removed.
    town.until("released", |town| town.node("a").is_none());
    assert!(!town.site("a").power.is_on());
    town.until("let go", |town| {
        !town.host("a").annotations.contains_key(MACHINE_KEY)
    });
    assert_eq!(town.machine("a").need, None);
    // The Node is back: the backup is restored, what is there wins, and nothing of ours is left.
    town.site("a").is_connected = true;
    town.until("done", is_done);
    let node = town.node("a").unwrap().clone();
    assert_eq!(node.seen.labels["tier"], "db");
    assert_eq!(node.annotations["site"], "x");
    assert_eq!(node.taints, [taint("example.com/dedicated")]);
    assert!(node.seen.unschedulable && !node.seen.being_fenced);
    assert_eq!(town.site("a").power.power_offs(), 1);
    assert_eq!(
        town.written,
        [
            "TakeLease",
            "MarkNode",
            "KeepBackup",
            "AddKey",
            "Release",
            "RemoveMachineNeed",
            "RemoveKey",
            "WriteRecord",
            "Restore",
            "DropBackup",
            "WriteRecord",
            "FreeLease",
        ]
    );
    let record = &town.host("a").annotations["dogwatch.dev/remediation"];
    let record: RemediationRecord = serde_json::from_str(record).unwrap();
    let steps: Vec<RemediationStep> = record.steps.iter().map(|stamp| stamp.step).collect();
    assert_eq!(
        steps,
        [
            RemediationStep::Requested,
            RemediationStep::KeyAdded,
            RemediationStep::OffProved,
            RemediationStep::Released,
            RemediationStep::KeyRemoved,
            RemediationStep::PoweredOn,
            RemediationStep::NodeReady,
        ]
    );
    assert!(record.steps.is_sorted_by_key(|stamp| stamp.at));
}

#[test]
fn a_leader_that_dies_before_or_after_any_write_is_carried_on_from_the_objects() {
    for step in 1.. {
        let mut town = with_a_dead_kubelet();
        town.mark("a");
        let before = town.steps;
        town.dies_at = Some(before + step);
        town.until("released", |town| town.node("a").is_none());
        town.site("a").is_connected = true;
        town.until("done", is_done);
        assert_eq!(town.site("a").power.power_offs(), 1, "step {step}");
        assert!(town.site("a").power.is_on(), "step {step}");
        assert_eq!(town.machine("a").need, None, "step {step}");
        let node = town.node("a").unwrap();
        assert_eq!(node.seen.labels["tier"], "db", "step {step}");
        assert!(
            node.seen.unschedulable && !node.seen.being_fenced,
            "step {step}"
        );
        if town.steps < before + step {
            // No crash happened: a crash was tried before every step.
            assert!(step > 20);
            return;
        }
    }
}
