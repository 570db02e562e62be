//! Upstream's cases, by their names. CAPM3's are those of `ReconcileNormal`, by number; 19 (no
//! right to read Nodes) is not a decision. Source: `facts/fencing.md` §6.5, §6.6.

use super::super::super::*;
use super::super::kit::*;
use super::super::town::Town;
use super::desk::{DELETE, TAINT};
use crate::power::tests::world::Takes;

/// Machine a has failed, and a request of its name exists.
fn asked(strategy: RemediationStrategy) -> Town {
    let mut town = Town::new(&["a"]);
    town.fails("a", strategy);
    town
}

fn reason(town: &Town) -> String {
    town.condition("a", "Remediation").unwrap().1
}

fn position(town: &Town, what: &str) -> Option<usize> {
    town.written.iter().position(|it| it == what)
}

fn is_tainted(town: &Town) -> bool {
    town.node("a").is_some_and(|node| node.seen.out_of_service)
}

#[test]
fn capm3_01_host_not_found() {
    let mut town = asked(DELETE);
    town.machine("a").host = Some("machines/gone".into());
    town.run(60);
    assert_eq!(reason(&town), RemediationReason::HostNotFound.as_str());
    assert!(town.events.iter().any(|it| it.contains("machines/gone")));
    assert!(
        town.written
            .iter()
            .all(|it| ["AddFinalizer", "WriteStatus"].contains(&it.as_str()))
    );
}

/// CAPM3 fails, and leaves key and finalizer. Dogwatch releases the Node and leaves the host to its
/// owner.
#[test]
fn capm3_02_host_online_false() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.seen.host_mut().online = false;
    town.until("off", |town| !town.is_on("a"));
    town.fails("a", DELETE);
    town.until("released", |town| town.node("a").is_none());
    town.run(30);
    assert!(!town.is_keyed("a") && !town.is_on("a"));
    assert_eq!(reason(&town), RemediationReason::PoweringOn.as_str());
    assert!(town.events.iter().any(|it| it.contains("spec.online")));
}

#[test]
fn capm3_03_other_strategy_type() {
    let mut town = asked(DELETE);
    town.change("a", |it| {
        it.strategy = Err("spec.strategy.type is Reprovision".into());
    });
    town.run(60);
    assert_eq!(
        town.condition("a", "Succeeded"),
        Some(("False".into(), "BadRequest".into()))
    );
    assert_eq!(
        town.condition("a", "Processing"),
        Some(("False".into(), "BadRequest".into()))
    );
    assert!(
        town.events
            .iter()
            .any(|it| it.contains("Reprovision") && it.contains("create a new one"))
    );
    assert!(!town.written.contains(&"AddKey".to_owned()));
}

#[test]
fn capm3_04_phase_empty() {
    let mut town = asked(DELETE);
    town.until("taken up", |town| town.attempt("a").is_some());
    let status = town.status("a");
    assert!(status.started_at.is_some() && status.ended_at.is_none());
    assert_eq!(status.attempt.unwrap().number, 1);
    assert_eq!(town.condition("a", "Processing").unwrap().0, "True");
}

#[test]
fn capm3_05_running_no_finalizer() {
    let mut town = asked(DELETE);
    town.until("taken up", |town| town.request("a").unwrap().has_finalizer);
    assert_eq!(town.written[0], "AddFinalizer");
}

#[test]
fn capm3_06_no_power_off_key() {
    let mut town = asked(DELETE);
    town.until("keyed", |town| town.is_keyed("a"));
    assert!(position(&town, "TakeLease") < position(&town, "AddKey"));
    assert!(position(&town, "MarkNode") < position(&town, "AddKey"));
}

#[test]
fn capm3_07_key_set_still_on() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.bmcs[0].default_takes = Takes::Ignores;
    town.fails("a", DELETE);
    town.run(120);
    assert_eq!(reason(&town), RemediationReason::PoweringOff.as_str());
    assert!(town.node("a").is_some());
    let written = town.written.len();
    town.run(60);
    assert_eq!(town.written.len(), written);
}

#[test]
fn capm3_08_off_node_present_no_backup_and_12_backup_stored() {
    let mut town = asked(DELETE);
    town.until("released", |town| town.node("a").is_none());
    assert!(position(&town, "KeepBackup") < position(&town, "Release"));
    assert!(town.keeps("a"));
}

#[test]
fn capm3_09_off_no_taint_and_10_pods_left_and_11_drained() {
    let mut town = asked(TAINT);
    town.desk.left = vec!["default/web-0".into()];
    town.until("tainted", is_tainted);
    assert!(
        town.status("a").tainted_at.is_some(),
        "written before it is set"
    );
    town.run(60);
    assert_eq!(reason(&town), RemediationReason::Releasing.as_str());
    assert!(town.is_keyed("a"));
    town.desk.left.clear();
    town.until("let go", |town| !town.is_keyed("a"));
    assert!(town.attempt("a").unwrap().released_at.is_some());
}

/// Whoever deleted the Node.
#[test]
fn capm3_13_node_gone_and_14_waiting_key_present() {
    let mut town = asked(DELETE);
    town.until("keyed", |town| town.is_keyed("a"));
    town.nodes.clear();
    town.until("let go", |town| town.is_on("a") && !town.is_keyed("a"));
    assert!(!town.written.contains(&"Release".to_owned()));
    town.site("a").is_connected = true;
    town.until("done", |town| town.status("a").ended_at.is_some());
    assert_eq!(town.condition("a", "Succeeded").unwrap().0, "True");
}

#[test]
fn capm3_15_waiting_off() {
    let mut town = asked(DELETE);
    town.until("released", |town| town.node("a").is_none());
    town.site("a").power.bmcs[0].default_takes = Takes::Ignores;
    town.run(120);
    assert_eq!(reason(&town), RemediationReason::PoweringOn.as_str());
    assert!(!town.is_keyed("a") && town.status("a").ended_at.is_none());
}

/// CAPM3 removes the taint as soon as the host is on.
#[test]
fn capm3_16_waiting_on_oost() {
    let mut town = asked(TAINT);
    town.until("on again", |town| town.cuts("a") == 1 && town.is_on("a"));
    town.run(30);
    assert_eq!(reason(&town), RemediationReason::WaitingForNode.as_str());
    assert!(is_tainted(&town));
    town.site("a").is_connected = true;
    town.until("lifted", |town| !is_tainted(town));
    assert!(
        town.request("a").unwrap().has_finalizer,
        "until it is deleted"
    );
    town.delete("a");
    town.until("gone", |town| town.request("a").is_none());
}

#[test]
fn capm3_17_waiting_on_node_absent_not_timed_out() {
    let mut town = asked(DELETE);
    town.until("on again", |town| town.cuts("a") == 1 && town.is_on("a"));
    town.run(120);
    assert_eq!(reason(&town), RemediationReason::WaitingForNode.as_str());
    assert_eq!(town.attempt("a").unwrap().number, 1);
}

#[test]
fn capm3_18_waiting_node_back() {
    let mut town = Town::new(&["a"]);
    town.nodes.get_mut(&node_name("a")).unwrap().annotations = [("site".into(), "x".into())].into();
    town.fails("a", DELETE);
    town.heals_by_boot("a");
    town.until("done", |town| town.status("a").ended_at.is_some());
    town.until("restored", |town| !town.keeps("a"));
    assert_eq!(town.node("a").unwrap().annotations["site"], "x");
}

#[test]
fn capm3_22_phase_deleting_or_failed() {
    let mut town = asked(RemediationStrategy {
        retry_limit: 0,
        timeout: std::time::Duration::from_mins(3),
        ..DELETE
    });
    town.until("failed", |town| town.status("a").ended_at.is_some());
    town.run(60);
    let written = town.written.len();
    // It comes back late: nothing more is done, but the backup is restored.
    town.site("a").is_connected = true;
    town.run(300);
    let late = &town.written[written..];
    assert!(
        late.iter()
            .all(|it| ["Restore", "DropBackup", "WriteRecord"].contains(&it.as_str())),
        "{late:?}"
    );
    assert_eq!(
        town.condition("a", "Succeeded").unwrap().1,
        "AttemptsUsedUp"
    );
}

#[test]
fn capi_mhc_remediation_template_set_and_node_unhealthy() {
    let mut town = Town::new(&["a"]);
    town.fails("a", DELETE);
    // Named after the Machine, owned by it; no node-name.
    town.change("a", |it| {
        it.node_name = None;
        it.machine = Some(machine_name("a"));
        it.machine_uid = Some("uid-a".into());
    });
    town.heals_by_boot("a");
    town.until("done", |town| town.status("a").ended_at.is_some());
    // The Node is healthy: the request is deleted.
    town.delete("a");
    town.until("gone", |town| town.request("a").is_none());
    assert!(town.is_on("a") && !town.is_keyed("a"));
}

#[test]
fn nhc_two_requests_of_control_plane_nodes_are_served_one_after_another() {
    let mut town = Town::new(&["a", "b"]);
    for name in ["a", "b"] {
        town.machine(name).control_plane = true;
        town.site(name).is_connected = false;
    }
    town.run(60);
    town.ask("a", DELETE);
    town.ask("b", DELETE);
    town.until("one off", |town| !town.is_on("a") || !town.is_on("b"));
    town.run(30);
    let (first, second) = if town.is_keyed("b") || town.cuts("b") > 0 {
        ("b", "a")
    } else {
        ("a", "b")
    };
    assert_eq!(town.cuts(second), 0);
    assert_eq!(
        town.condition(second, "Remediation").unwrap().1,
        "ControlPlaneOneByOne"
    );
    town.site(first).is_connected = true;
    town.until("both", |town| town.cuts(second) == 1);
    assert!(town.status(first).ended_at.is_some());
}

#[test]
fn nhc_permanent_node_deletion_expected_is_false_from_the_start() {
    let mut town = asked(DELETE);
    town.run(1);
    let said = town
        .condition("a", "PermanentNodeDeletionExpected")
        .unwrap();
    assert_eq!(said.0, "False");
}

#[test]
fn snr_unhealthy_worker_without_a_request_is_not_remediated() {
    let mut town = Town::new(&["a", "b"]);
    town.site("a").is_connected = false;
    town.site("b").is_connected = false;
    town.run(300);
    assert!(town.written.is_empty() && town.cuts("a") == 0 && town.cuts("b") == 0);
}

#[test]
fn far_node_name_from_the_requests_own_name() {
    let mut town = Town::new(&["a"]);
    town.machines.clear();
    town.site("a").power.annotate("dogwatch.dev/node", "n-a");
    town.site("a").is_connected = false;
    town.run(60);
    town.ask_as("n-a", "a", TAINT);
    town.change("n-a", |it| it.node_name = None);
    town.until("tainted", is_tainted);
}

#[test]
fn far_cr_deleted_between_retries() {
    let mut town = asked(RemediationStrategy {
        timeout: std::time::Duration::from_mins(3),
        ..DELETE
    });
    let second = |town: &Town| town.attempt("a").is_some_and(|it| it.number == 2);
    town.until("tried again", second);
    town.delete("a");
    town.until("gone", |town| town.request("a").is_none());
    assert!(!town.is_keyed("a"));
    town.until("on", |town| town.is_on("a"));
    assert!(town.leases.is_empty());
}
