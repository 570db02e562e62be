//! §2.6: the effect of a policy in each phase, and of changes during a phase.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::drain::PodRules;
use crate::name::GroupName;
use crate::policy::window::{MaintenanceWindow, WindowSpec};
use crate::policy::{ClusterPolicies, DrainRules, Policy, PolicyGate, PolicyPause};
use crate::selector::LabelSelector;

/// Nine in the morning of a Friday; the node was in its phase at eight.
const NINE: u32 = 3600;

fn policy() -> Policy {
    Policy::without_rules(GroupName::default_group())
}

fn window(start: &str, end: &str) -> Vec<MaintenanceWindow> {
    let spec = WindowSpec {
        start: Some(start.into()),
        end: Some(end.into()),
        ..WindowSpec::default()
    };
    vec![MaintenanceWindow::new(&spec).unwrap()]
}

fn gates() -> Vec<PolicyGate> {
    vec![PolicyGate::Pods {
        selector: LabelSelector::default(),
    }]
}

/// A node in this phase, about to take its next step.
fn ready(phase: RebootPhase) -> RebootSnapshot {
    let mut seen = seen(phase);
    seen.run.phase = Some(ObservedPhase {
        since: wall(0),
        before: Duration::ZERO,
        seen: Duration::from_secs(NINE.into()),
    });
    seen.run.permit = Some(RebootPermit {
        attempt: 1,
        answered: Duration::from_secs(u64::from(NINE) - 5),
    });
    let count = seen.lock.count.as_mut().unwrap();
    count.arrived = Duration::from_secs(u64::from(NINE) - 5);
    seen
}

fn under(policy: Policy) -> impl Fn(&mut RebootSnapshot) {
    move |seen| seen.policies = ClusterPolicies::Known(vec![policy.clone()])
}

fn gated(answered: Option<u32>, shut: &'static [&'static str]) -> impl Fn(&mut RebootSnapshot) {
    move |seen| {
        under(Policy {
            gates: gates(),
            ..policy()
        })(seen);
        seen.start_gates = answered.map(|second| ObservedStartGates {
            gates: gates(),
            shut: shut.iter().map(ToString::to_string).collect(),
            taken: Duration::from_secs(second.into()),
        });
    }
}

fn paused(until: Option<u32>) -> Policy {
    let reason = "holidays".to_owned();
    let until = until.map(wall);
    Policy {
        paused: Some(PolicyPause { reason, until }),
        ..policy()
    }
}

/// The effect of a decision as a letter: `g`oes on as without a policy, `.` waits, `r`eleases,
/// `u`ndoes without counting a failure, `f`ails, `a`borts (uncordons in its phase).
fn does(phase: RebootPhase, decision: &RebootDecision) -> char {
    match decision.actions.as_slice() {
        [] if phase == RebootPhase::Returning
            && decision.cause.reason == RebootReason::AwaitingReady =>
        {
            'g'
        }
        [] => '.',
        [
            RebootAction::Release {
                over_budget: false, ..
            },
        ] => 'r',
        [RebootAction::Reboot { attempt: 1 }] => 'g',
        [RebootAction::PatchNode(patch)] => {
            let to = written(decision);
            let uncordons = patch.unschedulable == Some(false);
            match (phase, to.phase) {
                (RebootPhase::Waiting, RebootPhase::Draining)
                | (RebootPhase::Draining, RebootPhase::Rebooting) => 'g',
                (_, RebootPhase::Waiting) if uncordons && to.failures == 0 => 'u',
                (_, RebootPhase::Waiting) if uncordons => 'f',
                (from, to) if uncordons && from == to => 'a',
                other => panic!("{other:?}: {:?}", decision.cause),
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn each_word_of_a_policy_holds_in_each_phase() {
    type Word = (
        &'static str,
        Box<dyn Fn(&mut RebootSnapshot)>,
        &'static str,
        Option<RebootReason>,
    );
    let word = |name, set: Box<dyn Fn(&mut RebootSnapshot)>, does, reason| -> Word {
        (name, set, does, reason)
    };
    let finished = |seen: &mut RebootSnapshot| {
        let mut last = super::triggers::last(&[]);
        last.finished = wall(NINE - 1800);
        set(seen, |node| {
            node.last_reboot = ParsedAnnotation::Is(last.clone());
        });
        let min_interval = Some(Duration::from_hours(1));
        under(Policy {
            min_interval,
            ..policy()
        })(seen);
    };
    // Columns: waiting with the lock, draining and drained, rebooting and permitted, returning.
    let table = [
        word("none", Box::new(|_| {}), "gggg", None),
        word("silent", Box::new(under(policy())), "gggg", None),
        word(
            "not yet",
            Box::new(|seen| seen.policies = ClusterPolicies::NotYetRead),
            "....",
            Some(RebootReason::LookingAtPolicies),
        ),
        word(
            "unreadable",
            Box::new(|seen| seen.policies = ClusterPolicies::Unreadable { why: "403".into() }),
            "ruug",
            Some(RebootReason::PoliciesUnreadable),
        ),
        word(
            "paused",
            Box::new(under(paused(None))),
            "ruug",
            Some(RebootReason::Paused),
        ),
        word(
            "paused for a while",
            Box::new(under(paused(Some(NINE + 1)))),
            "ruug",
            Some(RebootReason::Paused),
        ),
        word(
            "paused till now",
            Box::new(under(paused(Some(NINE)))),
            "gggg",
            None,
        ),
        word(
            "outside",
            Box::new(under(Policy {
                windows: window("12:00", "18:00"),
                ..policy()
            })),
            "ruug",
            Some(RebootReason::OutsideWindow),
        ),
        word(
            "closed just now",
            Box::new(under(Policy {
                windows: window("06:00", "09:00"),
                ..policy()
            })),
            "ruug",
            Some(RebootReason::OutsideWindow),
        ),
        word(
            "too short to begin",
            Box::new(under(Policy {
                windows: window("06:00", "09:59"),
                ..policy()
            })),
            "rggg",
            Some(RebootReason::WindowTooShort),
        ),
        word(
            "open",
            Box::new(under(Policy {
                windows: window("06:00", "10:00"),
                ..policy()
            })),
            "gggg",
            None,
        ),
        word(
            "too soon",
            Box::new(finished),
            "rggg",
            Some(RebootReason::RebootedTooRecently),
        ),
        word(
            "invalid",
            Box::new(under(Policy {
                problems: vec!["windows[0]".into()],
                ..policy()
            })),
            "ruug",
            Some(RebootReason::PolicyInvalid),
        ),
        word(
            "gates not asked",
            Box::new(gated(None, &[])),
            ".g.g",
            Some(RebootReason::LookingAtGates),
        ),
        word(
            "gates stale",
            Box::new(gated(Some(NINE - 61), &[])),
            ".g.g",
            Some(RebootReason::LookingAtGates),
        ),
        word(
            "gates of a minute ago",
            Box::new(gated(Some(NINE - 31), &[])),
            "gg.g",
            Some(RebootReason::LookingAtGates),
        ),
        word(
            "gate shut",
            Box::new(gated(Some(NINE), &["an alert"])),
            "rgfg",
            Some(RebootReason::GateShut),
        ),
        word("gates open", Box::new(gated(Some(NINE), &[])), "gggg", None),
        word(
            "lock API",
            Box::new(|seen| set(seen, |node| node.api_lock = true)),
            "rggg",
            Some(RebootReason::LockedThroughApi),
        ),
        word(
            "being fenced",
            Box::new(|seen| set(seen, |node| node.being_fenced = true)),
            "r..g",
            Some(RebootReason::BeingFenced),
        ),
        word(
            "stopped",
            Box::new(|seen| {
                set(seen, |node| {
                    node.abort = ParsedAnnotation::Bad {
                        why: "no JSON".into(),
                    };
                });
            }),
            "raaa",
            Some(RebootReason::Aborted),
        ),
    ];
    for (name, set, expected, reason) in &table {
        let phases = [
            RebootPhase::Waiting,
            RebootPhase::Draining,
            RebootPhase::Rebooting,
            RebootPhase::Returning,
        ];
        for (phase, expected) in phases.into_iter().zip(expected.chars()) {
            let mut seen = ready(phase);
            set(&mut seen);
            let decision = decide(&seen, &config(), now(NINE));
            let because = &decision.cause;
            assert_eq!(
                does(phase, &decision),
                expected,
                "{name} in {phase:?}: {because:?}"
            );
            if expected != 'g' {
                assert_eq!(Some(because.reason), *reason, "{name} in {phase:?}");
            }
        }
    }
}

#[test]
fn who_waits_for_a_window_wakes_when_it_opens_and_looks_at_the_clock_before() {
    for (start, end, wake) in [("12:00", "18:00", 300), ("09:02", "18:00", 120)] {
        let mut seen = waiting(vec![free(0)]);
        under(Policy {
            windows: window(start, end),
            ..policy()
        })(&mut seen);
        let decision = decide(&seen, &config(), now(NINE));
        assert_eq!(decision.actions, []);
        let at = Duration::from_secs(u64::from(NINE) + wake);
        assert_eq!(decision.wake.map(|wake| wake.at), Some(at), "{start}");
    }
}

#[test]
fn a_drain_wakes_when_its_window_closes() {
    let mut seen = ready(RebootPhase::Draining);
    seen.drain = Some(one_pod_left());
    under(Policy {
        windows: window("06:00", "09:03"),
        ..policy()
    })(&mut seen);
    let decision = decide(&seen, &config(), now(NINE));
    let at = Duration::from_secs(u64::from(NINE) + 180);
    assert_eq!(decision.wake.map(|wake| wake.at), Some(at));
}

#[test]
fn a_further_attempt_waits_for_its_window_and_wakes_for_it() {
    let mut seen = ready(RebootPhase::Rebooting);
    set_record(&mut seen, |record| record.attempts = 2);
    under(Policy {
        windows: window("09:02", "18:00"),
        ..policy()
    })(&mut seen);
    let decision = decide(&seen, &config(), now(NINE));
    assert_eq!(decision.cause.reason, RebootReason::RebootFailed);
    let at = Duration::from_secs(u64::from(NINE) + 120);
    assert_eq!(decision.wake.map(|wake| wake.at), Some(at));
}

#[test]
fn a_lock_is_given_up_only_after_no_earlier_write_can_arrive_any_more() {
    let mut seen = ready(RebootPhase::Waiting);
    under(paused(None))(&mut seen);
    seen.run.unanswered_patch_version = Some("1".into());
    let first = decide(&seen, &config(), now(NINE));
    assert_eq!(written(&first).phase, RebootPhase::Waiting);
    let OwnNodeState::There(node) = &seen.node else {
        panic!()
    };
    assert_ne!(
        Some(&written(&first).message),
        node.record.get().map(|r| &r.message)
    );
    assert_eq!(patch(&first).unschedulable, None);
    seen.run.unanswered_patch_version = Some("0".into());
    let then = decide(&seen, &config(), now(NINE));
    assert_eq!(
        does(RebootPhase::Waiting, &then),
        'r',
        "the Node has moved on since"
    );
}

#[test]
fn a_write_without_an_answer_is_remembered_for_the_version_that_it_was_sent_for() {
    let mut seen = ready(RebootPhase::Waiting);
    let decision = decide(&seen, &config(), now(NINE));
    seen.run.record_patch_sending(None, patch(&decision));
    assert_eq!(seen.run.unanswered_patch_version.as_deref(), Some("1"));
    seen.run.record_patch_answer(patch(&decision), now(NINE));
    assert_eq!(seen.run.unanswered_patch_version, None);
}

#[test]
fn the_lock_of_an_attempt_that_was_undone_is_given_back_before_the_next() {
    let mut seen = ready(RebootPhase::Waiting);
    set_record(&mut seen, |record| {
        record.lease = Some("dogwatch-default-0".into());
    });
    let decision = decide(&seen, &config(), now(NINE));
    assert_eq!(
        does(RebootPhase::Waiting, &decision),
        'r',
        "its count is of then"
    );
}

#[test]
fn what_a_drain_said_while_other_pods_were_to_stay_is_no_news_of_this_one() {
    let rules = PodRules {
        exclude: Some(LabelSelector::default()),
        ..PodRules::default()
    };
    let drain = DrainRules {
        pods: rules.clone(),
        ..DrainRules::default()
    };
    for phase in [RebootPhase::Draining, RebootPhase::Rebooting] {
        let mut seen = ready(phase);
        under(Policy {
            drain: drain.clone(),
            ..policy()
        })(&mut seen);
        let decision = decide(&seen, &config(), now(NINE));
        assert_eq!(decision.actions, [], "{phase:?}");
        let look = RebootObserve::Drain {
            delete: false,
            rules: rules.clone(),
        };
        assert!(decision.observe.contains(&look), "{phase:?}");
        seen.drain
            .as_mut()
            .unwrap()
            .progress
            .rules
            .clone_from(&rules);
        let decision = decide(&seen, &config(), now(NINE));
        assert_eq!(does(phase, &decision), 'g', "{phase:?}");
    }
}

#[test]
fn volumes_that_were_seen_detached_stay_in_sight_while_that_is_written() {
    let mut seen = ready(RebootPhase::Draining);
    let claims = vec!["a/c".to_owned()];
    seen.drain
        .as_mut()
        .unwrap()
        .progress
        .claims
        .clone_from(&claims);
    seen.attachments = Some(Vec::new());
    let decision = decide(&seen, &config(), now(60));
    assert_eq!(does(RebootPhase::Draining, &decision), 'g');
    assert!(
        decision
            .observe
            .contains(&RebootObserve::Attachments { claims })
    );
}

#[test]
fn a_lock_in_sight_stays_there_until_the_size_of_its_group_is_known() {
    let config = RebootConfig {
        max_unavailable: crate::limit::UnavailabilityLimit::Percent(50),
        ..config()
    };
    let decision = decide(&ready(RebootPhase::Draining), &config, now(60));
    let locks = |look: &RebootObserve| matches!(look, RebootObserve::Locks { .. });
    assert!(decision.observe.iter().any(locks), "{:?}", decision.observe);
}
