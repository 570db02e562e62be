use super::*;
use crate::condition::CurrentCondition;
use crate::explain::ObservedController;
use crate::explain::testkit::{at, condition, held, in_phase};
use crate::limit::UnavailabilityLimit;
use crate::policy::PolicyPause;
use crate::reboot::{ParsedAnnotation, RebootPhase};

fn blocked(view: &CheckView, text: &str) {
    let told = told(view);
    assert!(
        told.iter()
            .any(|line| line.starts_with("blocks") && line.contains(text)),
        "{text}: {told:#?}"
    );
}

#[test]
fn a_pause_a_shut_gate_and_a_policy_that_cannot_be_followed_block() {
    let mut paused = policy("p", 0);
    paused.paused = Some(PolicyPause {
        reason: "holidays".into(),
        until: None,
    });
    blocked(
        &under(alone(), vec![paused.clone()]),
        "Paused: RebootPolicy p is paused: holidays",
    );
    paused.paused.as_mut().unwrap().until = Some(at(999));
    assert_eq!(
        told(&under(alone(), vec![paused])),
        [""; 0],
        "a pause that is over"
    );
    let mut wrong = policy("p", 0);
    wrong.problems = vec!["spec.windows[0]: no such time zone".into()];
    blocked(&under(alone(), vec![wrong]), "PolicyInvalid");
    let mut view = alone();
    view.fleet.policies = ClusterPolicies::Unreadable { why: "403".into() };
    blocked(&view, "PoliciesUnreadable");
    let shut = |state| CheckView {
        gates: vec![GateAnswer {
            gate: "pods app=batch".into(),
            state,
        }],
        ..alone()
    };
    blocked(
        &shut(GateState::Shut(vec![
            "pod shop/batch-1 runs on this node".into(),
        ])),
        "pod shop/batch-1",
    );
    assert_eq!(told(&shut(GateState::Open)), [""; 0]);
    assert_eq!(
        told(&shut(GateState::Unknown("no route".into()))),
        ["unknown gate pods app=batch: could not be read: no route"]
    );
}

#[test]
fn the_budget_counts_who_is_out_as_a_winner_would() {
    let mut cordoned = node("n2");
    cordoned.unschedulable = true;
    let full = view(vec![node("n1"), cordoned.clone(), node("n3")], vec![]);
    assert_eq!(
        told(&full),
        [
            "blocks group default: at most 1 of 3 in group default may be unavailable (if --max-unavailable has its default); unavailable now: n2 (unschedulable)"
        ]
    );
    let mut two = policy("p", 0);
    two.max_unavailable = Some(UnavailabilityLimit::Count(2));
    let roomy = under(full.clone(), vec![two.clone()]);
    assert_eq!(
        told(&roomy),
        [
            "note group p: at most 2 of 3 in group p may be unavailable (RebootPolicy p: 2); unavailable now: n2 (unschedulable)"
        ]
    );
    // A holder that agreed to one only decides for both.
    let mut row = held(0, "n3", 5);
    row.group = two.name.clone();
    let strict = under(
        view(vec![node("n1"), node("n2"), node("n3")], vec![row]),
        vec![two],
    );
    blocked(&strict, "at most 1 of 3 in group p may be unavailable");
    blocked(&strict, "n3 (holds dogwatch-default-0)");
    cordoned.labels = [("dogwatch.dev/ignore".to_owned(), "true".to_owned())].into();
    let mut broken = node("n3");
    broken.ready = false;
    let beside = view(vec![node("n1"), cordoned.clone(), broken], vec![]);
    blocked(
        &beside,
        "at most 1 of 2 in group default may be unavailable (if --max-unavailable has its default), \
         1 more is ignored (dogwatch.dev/ignore): n2; unavailable now: n3 (not ready)",
    );
    assert_eq!(told(&view(vec![node("n1"), cordoned], vec![])), [""; 0]);
}

#[test]
fn a_coordinator_that_wrote_on_its_node_is_believed_without_a_daemonset() {
    let without = |nodes| CheckView {
        coordinator: Ok(ObservedCoordinator::NoDaemonSet),
        ..view(nodes, vec![])
    };
    let mut signed = node("n1");
    signed.conditions = vec![CurrentCondition {
        status: "False".into(),
        last_heartbeat: Some(at(940)),
        ..condition("MaintenancePlanned", ("Rebooted", ""))
    }];
    assert_eq!(
        told(&without(vec![signed.clone()])),
        [
            "note coordinator: no DaemonSet dogwatch-coordinator is in Dogwatch's namespace, but a coordinator has written to this Node 60s ago: it runs without that DaemonSet"
        ]
    );
    signed.name = crate::name::NodeName::new("n2").unwrap();
    let elsewhere = told(&without(vec![node("n1"), signed]));
    assert!(
        elsewhere[0].starts_with("warns coordinator: ")
            && elsewhere[0].contains("coordinators of other nodes"),
        "{elsewhere:?}"
    );
    let nowhere = without(vec![node("n1")]);
    blocked(&nowhere, "no coordinator has ever written to a Node");
    let found = find_reboot_blockers(&nowhere, now(1_000)).unwrap();
    let fix = found[0].fix.as_deref().unwrap();
    assert!(
        !fix.contains("kubectl apply"),
        "a command that may harm: {fix}"
    );
}

#[test]
fn without_a_ready_coordinator_nothing_would_happen() {
    for (seen, text) in [
        (
            ObservedCoordinator::NoDaemonSet,
            "no DaemonSet dogwatch-coordinator",
        ),
        (
            ObservedCoordinator::NoPod,
            "no coordinator runs on this node",
        ),
        (
            ObservedCoordinator::Pod {
                name: "dogwatch/c".into(),
                ready: false,
                state: "CrashLoopBackOff".into(),
            },
            "pod dogwatch/c is CrashLoopBackOff, not ready",
        ),
    ] {
        blocked(
            &CheckView {
                coordinator: Ok(seen),
                ..alone()
            },
            text,
        );
    }
}

#[test]
fn what_stands_on_the_node_is_told() {
    let mut locked = node("n1");
    locked.api_lock = true;
    blocked(&view(vec![locked], vec![]), "the lock API has taken it out");
    let mut broken = node("n1");
    broken.record = ParsedAnnotation::Bad { why: "eof".into() };
    blocked(
        &view(vec![broken], vec![]),
        "dogwatch.dev/reboot cannot be read: eof",
    );
    let draining = in_phase("n1", RebootPhase::Draining, 5, ("Draining", "1 to go"));
    assert_eq!(
        told(&view(vec![draining], vec![held(0, "n1", 5)])),
        ["note Node n1: a reboot is under way, draining: Draining"]
    );
}

#[test]
fn a_policy_that_lost_is_named() {
    let told = told(&under(
        alone(),
        vec![policy("strong", 9), policy("weak", 1)],
    ));
    assert_eq!(
        told,
        ["note RebootPolicy strong: applies to this node; weak match it too, and are overridden"]
    );
}

#[test]
fn a_node_that_is_not_there_is_no_clear_one() {
    let mut view = alone();
    view.node = crate::name::NodeName::new("n9").unwrap();
    assert_eq!(find_reboot_blockers(&view, now(0)), None);
}

#[test]
fn policies_that_limit_nobody_are_warned_of_and_block_nothing() {
    let view = CheckView {
        admission: Ok(vec![
            "admission policy locks.dogwatch.dev is not installed".into(),
        ]),
        ..alone()
    };
    assert_eq!(
        told(&view),
        ["warns admission policies: admission policy locks.dogwatch.dev is not installed"]
    );
    let blind = CheckView {
        admission: Err("403".into()),
        ..alone()
    };
    assert_eq!(
        told(&blind),
        ["unknown admission policies: could not be read: 403"]
    );
}

#[test]
fn a_cordon_of_the_lock_api_is_nobody_elses() {
    let mut locked = node("n1");
    locked.unschedulable = true;
    assert!(told(&view(vec![locked.clone()], vec![]))[0].contains("cordoned by somebody else"));
    locked.api_lock = true;
    let told = told(&view(vec![locked], vec![])).join("\n");
    assert!(told.contains("unlocks and uncordons it"), "{told}");
    assert!(!told.contains("somebody else"), "{told}");
}

#[test]
fn without_a_leader_a_node_reboot_reaches_no_node_and_no_host_is_powered_off() {
    let stale = ObservedController::Leads {
        holder: "c1".into(),
        renewed: Some(at(900)),
    };
    let live = ObservedController::Leads {
        holder: "c1".into(),
        renewed: Some(at(990)),
    };
    let with = |controller: &ObservedController, kind| {
        let mut view = alone();
        view.fleet.controller = controller.clone();
        view.node_reboot_kind = kind;
        view
    };
    let needs_one =
        "warns controller: no dogwatch controller leads: `dogwatch reboot` creates a NodeReboot";
    for controller in [stale, ObservedController::Nobody] {
        let told = told(&with(&controller, Some(Ok(true))));
        assert!(told[0].starts_with(needs_one), "{told:#?}");
        assert_eq!(
            super::told(&with(&controller, Some(Ok(false)))),
            [""; 0],
            "a request is an annotation, which needs no controller"
        );
        let unread = super::told(&with(&controller, Some(Err("403".into()))));
        assert_eq!(unread, ["unknown NodeReboots: could not be read: 403"]);
    }
    for controller in [live, ObservedController::Unknown] {
        assert_eq!(told(&with(&controller, Some(Ok(true)))), [""; 0]);
    }
}
