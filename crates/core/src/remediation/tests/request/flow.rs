//! Sentences of §4.2, from the request to the Ready Node.

use std::sync::Arc;

use super::super::super::*;
use super::super::kit::*;
use super::super::town::Town;
use super::desk::{DELETE, TAINT};
use crate::power::FaultClass;
use crate::power::tests::world::{Says, Takes};
use crate::reboot::ObservedNode;

fn steps(town: &Town, name: &str) -> Vec<RemediationStep> {
    let status = town.status(name);
    assert!(status.timeline.is_sorted_by_key(|stamp| stamp.at));
    status.timeline.iter().map(|stamp| stamp.step).collect()
}

fn has_ended(town: &Town, name: &str) -> bool {
    town.status(name).ended_at.is_some() && town.leases.is_empty() && town.backups.is_empty()
}

#[test]
fn a_node_is_deleted_on_a_proof_for_its_own_request_and_comes_back_with_a_new_boot() {
    let mut town = Town::new(&["a"]);
    let node = town.nodes.get_mut(&node_name("a")).unwrap();
    node.seen.labels = [("tier".into(), "db".into())].into();
    let old = node.seen.clone();
    town.fails("a", DELETE);
    let key = "reboot.metal3.io/power-remediation-uid-r1";
    town.until("keyed", |town| town.host("a").annotations.contains_key(key));
    assert_eq!(town.host("a").annotations[key], r#"{"mode":"hard"}"#);
    let status = town.status("a");
    assert_eq!(status.node_uid, Some(old.uid.clone()));
    assert_eq!(status.boot_id, old.boot_id.map(|boot| boot.to_string()));
    assert_eq!(status.host, Some((host_name("a"), "uid-h-a".to_owned())));
    assert_eq!(town.attempt("a").unwrap().number, 1);
    town.heals_by_boot("a");
    town.until("done", |town| has_ended(town, "a"));
    assert_eq!(town.node("a").unwrap().seen.labels["tier"], "db");
    assert_ne!(town.node("a").unwrap().seen.uid, old.uid);
    assert_eq!(town.site("a").power.power_offs(), 1);
    let record = &town.host("a").annotations["dogwatch.dev/remediation"];
    let record: RemediationRecord = serde_json::from_str(record).unwrap();
    assert_eq!(
        record.ended_at(),
        record.time_of_step(RemediationStep::NodeReady)
    );
    assert!(record.ended_at().is_some());
}

/// A WriteStatus precedes each step that follows from it (S5).
#[test]
fn each_step_stands_on_the_request_before_the_next_one_is_done() {
    let mut town = Town::new(&["a"]);
    let node = town.nodes.get_mut(&node_name("a")).unwrap();
    node.seen.labels = [("tier".into(), "db".into())].into();
    town.fails("a", DELETE);
    town.heals_by_boot("a");
    town.until("done", |town| has_ended(town, "a"));
    assert_eq!(
        town.written.join(" "),
        "AddFinalizer WriteStatus TakeLease MarkNode KeepBackup WriteStatus AddKey WriteStatus WriteStatus \
         Release WriteStatus RemoveKey WriteStatus WriteStatus WriteStatus Restore DropBackup WriteRecord \
         FreeLease"
    );
    assert_eq!(
        steps(&town, "a"),
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
}

#[test]
fn a_health_check_reads_its_conditions() {
    let mut town = Town::new(&["a"]);
    town.fails("a", DELETE);
    let processing = Some(("True".into(), "PoweringOff".into()));
    town.until("seen on its way", |town| {
        town.condition("a", "Processing") == processing
    });
    assert_eq!(town.condition("a", "Succeeded"), None);
    town.heals_by_boot("a");
    town.until("done", |town| has_ended(town, "a"));
    assert_eq!(town.status("a").proof.unwrap().source, "OurCommand");
    let said = |kind| town.condition("a", kind).unwrap();
    assert_eq!(said("Succeeded"), ("True".into(), "Remediated".into()));
    assert_eq!(said("Processing"), ("False".into(), "Remediated".into()));
    assert_eq!(said("Remediation"), ("False".into(), "Remediated".into()));
    assert_eq!(said("PermanentNodeDeletionExpected").0, "False");
}

#[test]
fn with_the_taint_the_host_comes_back_when_nothing_is_left_and_the_taint_goes_with_a_new_boot() {
    let mut town = Town::new(&["a"]);
    town.desk.left = vec!["default/web-0".into()];
    town.fails("a", TAINT);
    let uid = town.node("a").unwrap().seen.uid.clone();
    let is_tainted = |town: &Town| town.node("a").unwrap().seen.out_of_service;
    town.until("tainted", is_tainted);
    assert!(!town.is_on("a"));
    town.run(120);
    assert!(town.is_keyed("a") && !town.is_on("a"), "a pod is left");
    town.desk.left.clear();
    town.until("on", |town| town.is_on("a"));
    assert!(is_tainted(&town), "the new boot has not posted");
    town.site("a").is_connected = true;
    town.until("done", |town| has_ended(town, "a"));
    let node = town.node("a").unwrap();
    assert!(!node.seen.out_of_service && node.seen.uid == uid);
    assert_eq!(town.status("a").tainted_at, None);
    assert_eq!(town.cuts("a"), 1);
    assert!(!town.written.contains(&"KeepBackup".to_owned()));
}

/// S4: while Ready has not become Unknown yet, it is that of the old boot.
#[test]
fn a_ready_node_with_the_old_boot_id_is_not_back() {
    let mut town = Town::new(&["a"]);
    town.fails("a", TAINT);
    town.until("on", |town| town.cuts("a") == 1 && town.is_on("a"));
    town.run(20);
    let mut case = case_of(&town.world(), "powerremediation/machines/a").unwrap();
    let node = case.node.as_deref().unwrap().clone();
    case.node = Some(Arc::new(ObservedNode {
        ready: true,
        ..node
    }));
    let known = &town.known[&case.subject];
    let decision = decide(
        &case,
        known,
        &ConcurrentRemediations::default(),
        &town.config,
        town.now(),
    );
    assert_eq!(decision.cause.reason, RemediationReason::WaitingForNode);
    assert!(decision.actions.is_empty(), "{:?}", decision.actions);
}

/// S4: a boot that ran until the host went off is not the new boot, although it began after the key
/// was added and its last heartbeat still says Ready.
#[test]
fn a_boot_between_the_key_and_off_is_not_the_one_that_is_waited_for() {
    let mut town = Town::new(&["a"]);
    town.fails("a", TAINT);
    town.until("keyed", |town| town.is_keyed("a"));
    let by_itself = crate::name::BootId::new("boot-by-itself").unwrap();
    let node = town.nodes.get_mut(&node_name("a")).unwrap();
    node.seen.boot_id = Some(by_itself);
    town.until("on", |town| town.cuts("a") == 1 && town.is_on("a"));
    town.run(20);
    let mut case = case_of(&town.world(), "powerremediation/machines/a").unwrap();
    Arc::make_mut(case.node.as_mut().unwrap()).ready = true;
    let known = &town.known[&case.subject];
    let decision = decide(
        &case,
        known,
        &ConcurrentRemediations::default(),
        &town.config,
        town.now(),
    );
    assert_eq!(decision.cause.reason, RemediationReason::WaitingForNode);
    assert!(decision.actions.is_empty(), "{:?}", decision.actions);
}

/// Kubernetes stores `timeAdded` in whole seconds, and by it Dogwatch knows its own taint again.
#[test]
fn the_taint_carries_the_second_in_which_it_was_set() {
    let mut town = Town::new(&["a"]);
    town.fails("a", TAINT);
    town.until("tainted", |town| {
        town.desk.taints.contains_key(&node_name("a"))
    });
    let at = town.desk.taints[&node_name("a")];
    assert_eq!(town.status("a").tainted_at, Some(at));
    assert_eq!(at.subsec_nanosecond(), 0);
    let age = town.now().wall.duration_since(at);
    assert!((0..2).contains(&age.as_secs()), "{age:?}");
}

#[test]
fn a_taint_of_somebody_else_is_not_lifted() {
    let mut town = Town::new(&["a"]);
    town.fails("a", TAINT);
    let theirs = jiff::Timestamp::from_second(1).unwrap();
    town.taint(&node_name("a"), theirs);
    town.heals_by_boot("a");
    town.until("done", |town| has_ended(town, "a"));
    assert!(town.node("a").unwrap().seen.out_of_service);
    assert_eq!(town.desk.taints[&node_name("a")], theirs);
    assert!(!town.written.contains(&"Untaint".to_owned()));
}

/// "a host that is off already, for whatever reason, is proved off and its Node released"
#[test]
fn a_host_that_is_off_already_is_proved_off_and_its_node_released() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.annotate("reboot.metal3.io/other", "");
    town.until("off", |town| !town.is_on("a"));
    town.until("seen failed", |town| !town.node("a").unwrap().seen.ready);
    town.ask("a", DELETE);
    town.until("released", |town| town.node("a").is_none());
    town.until("let go", |town| !town.is_keyed("a"));
    town.run(30);
    assert_eq!(town.condition("a", "Processing").unwrap().1, "PoweringOn");
    let said = |town: &Town| {
        town.events
            .iter()
            .any(|it| it.contains("reboot.metal3.io/other"))
    };
    assert!(said(&town), "{:?}", town.events);
    town.site("a").power.remove("reboot.metal3.io/other");
    town.until("done", |town| has_ended(town, "a"));
    assert_eq!(town.cuts("a"), 1);
}

/// "so is a request whose Node is Ready again with a heartbeat later than the request"
#[test]
fn a_healed_network_fences_no_healthy_node() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut town = Town::new(&names);
    for name in names {
        town.site(name).is_connected = false;
    }
    town.run(50);
    assert!(town.nodes.values().all(|node| !node.seen.ready));
    town.crash(120_000);
    for name in names {
        town.ask(name, DELETE);
        town.site(name).is_connected = true;
    }
    town.run(240);
    for name in names {
        assert_eq!(
            town.condition(name, "Processing"),
            Some(("False".into(), "NodeHealthy".into()))
        );
        let answer = Some(("False".into(), "NodeHealthy".into()));
        assert_eq!(town.condition(name, "Succeeded"), answer);
        assert!(!town.is_keyed(name) && town.cuts(name) == 0);
        assert_eq!(town.attempt(name), None);
    }
    assert!(town.leases.is_empty());
    assert!(town.nodes.values().all(|node| !node.seen.being_fenced));
}

/// The machine runs on, without a new boot.
fn is_answered(town: &Town) -> bool {
    town.condition("a", "Succeeded") == Some(("False".into(), "NodeHealthy".into()))
}

#[test]
fn a_request_that_was_made_in_advance_is_answered_at_once_and_never_fires_later() {
    let mut town = Town::new(&["a"]);
    town.ask("a", DELETE);
    town.run(25);
    assert!(is_answered(&town), "{:?}", town.reasons);
    // The next leader knows it from the request.
    town.crash(12_000);
    town.site("a").is_connected = false;
    town.run(1_200);
    assert!(is_answered(&town) && town.cuts("a") == 0 && !town.is_keyed("a"));
    assert!(town.node("a").is_some() && town.leases.is_empty());
}

#[test]
fn a_node_that_fails_again_at_once_is_served_and_one_that_stays_well_is_not() {
    for well in [120, 400] {
        let mut town = Town::new(&["a"]);
        town.fails("a", DELETE);
        town.site("a").power.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
        town.until("taken up", |town| town.status("a").started_at.is_some());
        town.site("a").is_connected = true;
        town.run(well);
        assert_eq!(town.condition("a", "Processing").unwrap().1, "NodeHealthy");
        assert_eq!(is_answered(&town), well > 300, "{:?}", town.reasons);
        town.site("a").power.bmcs[0].default_says = Says::Truth;
        town.site("a").is_connected = false;
        town.run(300);
        assert_eq!(town.cuts("a"), usize::from(well < 300));
    }
}

#[test]
fn a_node_whose_ready_has_not_fallen_yet_is_waited_for_and_then_fenced() {
    let mut town = Town::new(&["a"]);
    town.site("a").is_connected = false;
    town.run(15);
    town.ask("a", DELETE);
    town.run(10);
    assert!(town.node("a").unwrap().seen.ready && !town.is_keyed("a"));
    town.until("released", |town| town.node("a").is_none());
}

/// The request is for a Node without a heartbeat for longer than a false Ready can last.
#[test]
fn a_ready_that_is_older_than_the_request_by_more_than_any_skew_is_not_believed() {
    let mut town = Town::new(&["a"]);
    town.site("a").is_connected = false;
    town.run(20);
    town.ask("a", DELETE);
    town.change("a", |it| {
        it.created = it
            .created
            .checked_add(jiff::Span::new().minutes(2))
            .unwrap();
    });
    town.run(5);
    assert!(town.node("a").unwrap().seen.ready, "its Ready stands");
    assert!(town.is_keyed("a"));
}

#[test]
fn two_requests_for_one_node_are_each_served_and_the_node_is_released_once() {
    let mut town = Town::new(&["a"]);
    town.fails("a", DELETE);
    town.ask_as("again", "a", DELETE);
    town.heals_by_boot("a");
    town.until("both done", |town| {
        has_ended(town, "a") && has_ended(town, "again")
    });
    let releases = town.written.iter().filter(|it| *it == "Release");
    assert_eq!(releases.count(), 1);
    for name in ["a", "again"] {
        assert_eq!(
            town.condition(name, "Succeeded").unwrap().0,
            "True",
            "{name}"
        );
    }
    assert_eq!(town.cuts("a"), 1);
}

#[test]
fn a_request_beside_a_marked_machine_ends_by_itself() {
    let mut town = Town::new(&["a"]);
    town.fails("a", DELETE);
    town.mark("a");
    town.heals_by_boot("a");
    town.until("done", |town| has_ended(town, "a"));
    assert_eq!(town.machine("a").need, None);
    assert_eq!(town.cuts("a"), 1);
    assert!(!town.is_keyed("a") && town.is_on("a"));
    assert!(!town.node("a").unwrap().seen.being_fenced);
    // Each leaves the other's record alone: the steps of the later one are PoweredOn and NodeReady.
    let written = town
        .written
        .iter()
        .filter(|it| it.starts_with("WriteRecord"));
    assert!(written.count() <= 3, "{:?}", town.written);
}

#[test]
fn what_is_kept_stays_when_one_of_two_remediations_of_a_host_is_called_off() {
    let mut town = Town::new(&["a"]);
    let node = town.nodes.get_mut(&node_name("a")).unwrap();
    node.seen.labels.insert("rack".into(), "r1".into());
    // The host goes off slowly, so that both keys are there before it is off.
    town.site("a").power.bmcs[0].default_takes = Takes::Runs(20_000);
    town.fails("a", DELETE);
    town.mark("a");
    town.until("held off for both", |town| {
        RemediationKey::keys_on_host(town.host("a")).count() == 2
    });
    town.until("kept", |town| town.keeps("a"));
    town.machine("a").need = None;
    town.heals_by_boot("a");
    town.until("done", |town| has_ended(town, "a"));
    let dropped = town.written.iter().filter(|it| *it == "DropBackup");
    assert_eq!(dropped.count(), 1, "{:?}", town.written);
    let labels = &town.node("a").unwrap().seen.labels;
    assert_eq!(labels.get("rack").map(String::as_str), Some("r1"));
}

#[test]
fn a_leader_that_dies_before_or_after_any_write_of_a_request_is_carried_on() {
    for strategy in [DELETE, TAINT] {
        for step in 1.. {
            let mut town = Town::new(&["a"]);
            town.fails("a", strategy);
            let before = town.steps;
            town.dies_at = Some(before + step);
            town.heals_by_boot("a");
            town.until("done", |town| has_ended(town, "a"));
            assert_eq!(
                town.condition("a", "Succeeded").unwrap().0,
                "True",
                "step {step}"
            );
            assert_eq!(town.site("a").power.power_offs(), 1, "step {step}");
            assert_eq!(town.attempt("a").unwrap().number, 1, "step {step}");
            let node = town.node("a").unwrap();
            assert!(
                !node.seen.being_fenced && !node.seen.out_of_service,
                "step {step}"
            );
            assert!(!town.is_keyed("a") && town.is_on("a"), "step {step}");
            if town.steps < before + step {
                // No crash happened: a crash was tried before every step.
                assert!(step > 25);
                break;
            }
        }
    }
}
