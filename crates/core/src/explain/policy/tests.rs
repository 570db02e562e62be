use super::super::testkit::{at, fleet, in_phase, now, view};
use super::super::tests::{blocked_holder, text};
use super::super::{NodeExplanation, explain_node};
use crate::name::GroupName;
use crate::policy::window::{MaintenanceWindow, WindowSpec};
use crate::policy::{ClusterPolicies, Policy, PolicyGate, PolicyPause};
use crate::reboot::{ObservedNode, RebootPhase};
use crate::selector::LabelSelector;

/// A policy for every node, with one window of an hour at noon.
fn noon(name: &str, priority: i32) -> Policy {
    let spec = WindowSpec {
        start: Some("12:00".into()),
        end: Some("13:00".into()),
        ..WindowSpec::default()
    };
    Policy {
        windows: vec![MaintenanceWindow::new(&spec).unwrap()],
        ..policy(name, priority)
    }
}

fn policy(name: &str, priority: i32) -> Policy {
    Policy {
        priority,
        ..Policy::without_rules(GroupName::new(name).unwrap())
    }
}

fn under(policies: Vec<Policy>, node: ObservedNode) -> NodeExplanation {
    let mut seen = view("n1", fleet(vec![node], vec![]));
    seen.fleet.policies = ClusterPolicies::Known(policies);
    explain_node(&seen, now(70)).unwrap()
}

fn held_back(reason: &str) -> ObservedNode {
    in_phase(
        "n1",
        RebootPhase::Waiting,
        10,
        (reason, "as the node itself says"),
    )
}

#[test]
fn the_policy_that_rules_is_named_with_whom_it_has_beaten() {
    let policies = vec![policy("strong", 5), policy("weak", 1)];
    let lines = text(&under(policies, held_back("LockHeldByOther")));
    assert_eq!(
        lines[3],
        "policy: RebootPolicy strong applies (priority 5), group strong; it overrides weak (priority 1)"
    );
    let mut elsewhere = policy("elsewhere", 0);
    elsewhere.selector.match_labels = [("pool".to_owned(), "b".to_owned())].into();
    let lines = text(&under(vec![elsewhere], held_back("LockHeldByOther")));
    assert_eq!(
        lines[3],
        "policy: no RebootPolicy applies to this node: the coordinator's flags apply"
    );
}

#[test]
fn a_shut_window_says_when_it_opens_and_how_to_let_the_node_go_earlier() {
    let explanation = under(vec![noon("p", 0)], held_back("OutsideWindow"));
    let lines = text(&explanation);
    let shut = "window: closed; the window opens at 1970-01-01 12:00:00Z (in 11h) (every day 12:00-13:00 UTC)";
    assert!(lines.contains(&shut.to_owned()), "{lines:#?}");
    assert_eq!(
        explanation.advice[0],
        "to let the reboot begin earlier, change the policy: kubectl edit rebootpolicy p"
    );
}

#[test]
fn a_pause_says_why_until_when_and_how_to_end_it() {
    let mut paused = policy("p", 0);
    paused.paused = Some(PolicyPause {
        reason: "holidays".into(),
        until: Some(at(130)),
    });
    let explanation = under(vec![paused.clone()], held_back("Paused"));
    let lines = text(&explanation);
    let expected = "pause: paused: \"holidays\"; the pause ends at 1970-01-01 00:02:10Z (in 60s)";
    assert!(lines.contains(&expected.to_owned()), "{lines:#?}");
    assert_eq!(explanation.advice[0], "to end the pause: dogwatch resume p");
    paused.paused = Some(PolicyPause {
        reason: String::new(),
        until: None,
    });
    let lines = text(&under(vec![paused], held_back("Paused")));
    let expected =
        "pause: paused: no reason given; the pause lasts until somebody resumes the policy";
    assert!(lines.contains(&expected.to_owned()), "{lines:#?}");
}

#[test]
fn gates_are_told_and_what_they_said_is_the_nodes_own_word() {
    let mut gated = policy("p", 0);
    gated.gates = vec![PolicyGate::Pods {
        selector: LabelSelector {
            match_labels: [("app".to_owned(), "batch".to_owned())].into(),
            ..LabelSelector::default()
        },
    }];
    let lines = text(&under(vec![gated], held_back("GateShut")));
    let says = "says: GateShut: as the node itself says";
    let gate = "gate: no pod of app=batch on this node, one of the servers queried above";
    for line in [says, gate] {
        assert!(lines.contains(&line.to_owned()), "{lines:#?}");
    }
}

#[test]
fn the_policys_own_numbers_are_the_deadline_and_the_budget() {
    let mut own = policy("p", 0);
    own.drain.timeout = Some(std::time::Duration::from_mins(5));
    own.max_unavailable = Some(crate::limit::UnavailabilityLimit::Percent(50));
    let lines = text(&under(vec![own.clone()], blocked_holder()));
    let deadline = "deadline: at 1970-01-01 00:05:20Z (in 4m10s), by RebootPolicy p (5m)";
    assert!(
        lines.iter().any(|line| line.starts_with(deadline)),
        "{lines:#?}"
    );
    let lines = text(&under(vec![own], held_back("OverBudget")));
    let budget = "budget: at most 1 of 1 in group p may be unavailable (RebootPolicy p: 50%); no other node is unavailable";
    assert!(lines.contains(&budget.to_owned()), "{lines:#?}");
}
