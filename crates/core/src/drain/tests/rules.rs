//! §10.2: rules, orders, waits and the marks of other tools.

use proptest::prelude::*;

use super::*;
use crate::drain::{
    DaemonSetLookup, DaemonSetRef, DrainProgress, DrainStart, MachineRulesLookup, PlanReason,
    PodAction, PodDrainPlan, PodMark, PodRule, PodRules, RemovalMethod, RuleAction, WaitLimit,
};

const HOUR: Duration = Duration::from_hours(1);
const WAIT: RuleAction = RuleAction::WaitCompleted { timeout: HOUR };

fn app(name: &str) -> LabelSelector {
    LabelSelector {
        match_labels: [("app".to_owned(), name.to_owned())].into(),
        ..LabelSelector::default()
    }
}

fn rule(name: &str, action: RuleAction, order: i32) -> PodRule {
    PodRule {
        pods: app(name),
        action,
        order,
        ..PodRule::default()
    }
}

fn honoring(honor: &[PodMark], rules: &[PodRule]) -> PodRules {
    PodRules {
        exclude: None,
        honor: honor.iter().copied().collect(),
        rules: rules.to_vec(),
    }
}

fn ruled(rules: PodRules, pods: &[ObservedPod]) -> NodeDrain {
    let config = DrainConfig {
        rules,
        ..DrainConfig::default()
    };
    started(config, Vec::new(), pods)
}

fn by_rules(rules: &[PodRule], pods: &[ObservedPod]) -> NodeDrain {
    ruled(honoring(&[], rules), pods)
}

fn finished(pod: ObservedPod) -> ObservedPod {
    ObservedPod {
        phase: PodPhase::Finished,
        ..pod
    }
}

/// What a drain does with one pod under these rules.
fn plan(rules: PodRules, pod: ObservedPod) -> PodDrainPlan {
    let mut drain = ruled(rules, &[pod]);
    if drain.next_step(at(0.0)).look_up_machine_rules {
        drain.apply_machine_rules(MachineRulesLookup::NoMachine, at(0.0));
    }
    let plans = drain.pod_plans().map(|(_, plan)| plan.clone());
    plans.collect::<Vec<PodDrainPlan>>().remove(0)
}

fn ways(step: &EvictionStep) -> Vec<(&str, RemovalMethod)> {
    let ways = step.tries.iter();
    ways.map(|one| (one.pod.name.as_str(), one.removal_method))
        .collect()
}

fn deleted(drain: &mut NodeDrain, name: &str) {
    drain.apply_pod_deletion(&pod_ref(name, &format!("u-{name}")));
}

#[test]
fn the_first_rule_that_matches_decides_and_without_one_a_pod_is_evicted() {
    let rules = [
        rule("a", RuleAction::Delete, 3),
        rule("a", RuleAction::Skip, 0),
        rule("b", WAIT, -1),
    ];
    let judge = |pod| plan(honoring(&[], &rules), pod);
    let expected = |action, why, order| PodDrainPlan { action, why, order };
    let wait = PodAction::WaitCompleted(WaitLimit::Timeout(HOUR));
    for (pod, expected) in [
        (
            pod("a"),
            expected(PodAction::Delete, PlanReason::Rule(0), 3),
        ),
        (pod("b"), expected(wait, PlanReason::Rule(2), -1)),
        (
            finished(pod("b")),
            expected(PodAction::Evict, PlanReason::Rule(2), -1),
        ),
        (pod("c"), expected(PodAction::Evict, PlanReason::Default, 0)),
    ] {
        assert_eq!(judge(pod.clone()), expected, "{pod:?}");
    }
}

#[test]
fn a_honoured_mark_means_what_its_tool_means_by_it() {
    let until = |seconds| {
        let at = Timestamp::from_second(seconds).unwrap();
        Some(PodAction::WaitCompleted(WaitLimit::Until(at)))
    };
    let (stay, wait) = (
        Some(PodAction::Stay),
        Some(PodAction::WaitCompleted(WaitLimit::DrainTimeout)),
    );
    let started = Some(Timestamp::from_second(100).unwrap());
    for (mark, value, started, expected) in [
        (PodMark::ClusterApiDrain, "skip", None, stay),
        (PodMark::ClusterApiDrain, "Skip", None, stay),
        (PodMark::ClusterApiDrain, "wait-completed", None, wait),
        (PodMark::ClusterApiDrain, "WaitCompleted", None, wait),
        (PodMark::ClusterApiDrain, "wait--completed", None, None),
        (PodMark::ClusterApiDrain, "drain", None, None),
        (PodMark::DoNotDisrupt, "true", started, wait),
        (PodMark::DoNotDisrupt, "True", started, None),
        (PodMark::DoNotDisrupt, "4h", started, until(100 + 4 * 3600)),
        (PodMark::DoNotDisrupt, "4h", None, wait),
        (PodMark::DoNotDisrupt, "0s", started, None),
        (PodMark::DoNotDisrupt, "-1h", started, None),
        (PodMark::DoNotDisrupt, "soon", started, None),
        (PodMark::SafeToEvict, "false", None, wait),
        (PodMark::SafeToEvict, "true", None, None),
        (PodMark::SafeToEvict, "False", None, None),
    ] {
        let mut marked = pod("a");
        marked.marks.started = started;
        match mark {
            PodMark::ClusterApiDrain => {
                marked.labels.insert(mark.mark_key().into(), value.into());
            }
            PodMark::DoNotDisrupt => marked.marks.do_not_disrupt = Some(value.into()),
            PodMark::SafeToEvict => marked.marks.safe_to_evict = Some(value.into()),
        }
        // It comes before the rules, and counts only where the policy lists it.
        let rules = [rule("a", RuleAction::Delete, 7)];
        let judged = plan(honoring(&[mark], &rules), marked.clone());
        match expected {
            Some(action) => {
                assert_eq!(judged.action, action, "{mark} {value}");
                assert_eq!((judged.why, judged.order), (PlanReason::Mark(mark), 0));
            }
            None => assert_eq!(judged.why, PlanReason::Rule(0), "{mark} {value}"),
        }
        let unlisted = plan(honoring(&[], &rules), marked);
        assert_eq!(unlisted.why, PlanReason::Rule(0), "{mark} {value}");
    }
}

#[test]
fn a_mark_that_protects_a_pod_comes_before_one_that_lets_the_reboot_end_it() {
    let mut both = pod("a");
    let skip = (
        PodMark::ClusterApiDrain.mark_key().to_owned(),
        "skip".to_owned(),
    );
    both.labels.extend([skip]);
    both.marks.do_not_disrupt = Some("true".into());
    let rules = PodRules {
        exclude: Some(app("a")),
        ..honoring(&PodMark::ALL, &[])
    };
    let judged = plan(rules.clone(), both.clone());
    assert_eq!(judged.why, PlanReason::Mark(PodMark::DoNotDisrupt));
    let judged = plan(rules, finished(both));
    assert_eq!(judged.why, PlanReason::Mark(PodMark::ClusterApiDrain));
}

#[test]
fn mirror_pods_and_daemonsets_are_judged_before_marks_and_rules() {
    let rules = || honoring(&PodMark::ALL, &[rule("a", RuleAction::Delete, 0)]);
    let mirror = ObservedPod {
        mirror: true,
        ..pod("a")
    };
    assert_eq!(plan(rules(), mirror).why, PlanReason::Mirror);
    let mut daemon = of_daemonset("a", "agent");
    daemon.marks.do_not_disrupt = Some("true".into());
    let mut drain = ruled(rules(), &[daemon]);
    let set = drain.next_step(at(0.0)).look_up.remove(0);
    drain.apply_daemonset_lookup(&set, DaemonSetLookup::Exists, at(0.0));
    assert!(drain.current_progress().is_drained());
}

#[test]
fn a_lower_order_is_gone_before_the_next_one_is_touched() {
    let rules = [
        rule("last", RuleAction::Delete, 5),
        rule("first", RuleAction::Evict, -1),
    ];
    let pods = [pod("first"), pod("last"), pod("mid")];
    let mut drain = by_rules(&rules, &pods);
    assert_eq!(
        ways(&drain.next_step(at(0.0))),
        [("first", RemovalMethod::Evict)]
    );
    drain.apply_pod(ObservedPod {
        deleting: true,
        ..pod("first")
    });
    assert_eq!(tried(&drain.next_step(at(1.0))), [""; 0], "it still ends");
    deleted(&mut drain, "first");
    assert_eq!(
        ways(&drain.next_step(at(2.0))),
        [("mid", RemovalMethod::Evict)]
    );
    deleted(&mut drain, "mid");
    assert_eq!(
        ways(&drain.next_step(at(3.0))),
        [("last", RemovalMethod::Delete)]
    );
    deleted(&mut drain, "last");
    assert!(drain.current_progress().is_drained());
}

#[test]
fn pods_that_have_ended_go_at_once_and_hold_nobody_up() {
    let rules = [
        rule("late", RuleAction::Evict, 9),
        rule("early", RuleAction::Evict, -9),
    ];
    let mut drain = by_rules(
        &rules,
        &[finished(pod("early")), finished(pod("late")), pod("mid")],
    );
    assert_eq!(tried(&drain.next_step(at(0.0))), ["early", "late", "mid"]);
}

#[test]
fn a_pod_may_end_by_itself_until_its_timeout_and_is_then_evicted() {
    let mut drain = by_rules(&[rule("job", WAIT, 0)], &[pod("job"), pod("web")]);
    let step = drain.next_step(at(0.0));
    assert_eq!(tried(&step), ["web"], "the same order, no wait");
    assert_eq!(step.wake.unwrap().at, HOUR);
    let progress = drain.current_progress();
    assert_eq!(progress.pending_wait, Some(HOUR));
    assert_eq!(progress.held.len(), 1);
    assert_eq!(tried(&drain.next_step(at(3_599.0))), [""; 0]);
    assert_eq!(tried(&drain.next_step(at(3_600.0))), ["job"]);
    assert_eq!(drain.current_progress().pending_wait, None);
}

#[test]
fn a_pod_that_ends_during_its_wait_is_removed_at_once() {
    let mut drain = by_rules(&[rule("job", WAIT, 0)], &[pod("job")]);
    assert_eq!(tried(&drain.next_step(at(0.0))), [""; 0]);
    drain.apply_pod(finished(pod("job")));
    assert_eq!(tried(&drain.next_step(at(9.0))), ["job"]);
}

#[test]
fn the_wait_counts_from_the_drains_beginning_whoever_began_it() {
    let config = DrainConfig {
        rules: honoring(&[], &[rule("job", WAIT, 0)]),
        start: DrainStart {
            seen: Duration::from_secs(10),
            before: Duration::from_mins(59),
        },
        ..DrainConfig::default()
    };
    let mut drain = started(config, Vec::new(), &[pod("job")]);
    assert_eq!(tried(&drain.next_step(at(69.0))), [""; 0]);
    assert_eq!(tried(&drain.next_step(at(70.0))), ["job"]);
}

#[test]
fn past_the_deadline_no_wait_is_left_but_the_order_is() {
    let rules = [rule("job", WAIT, 1)];
    let mut protected = pod("gpu");
    protected.marks.do_not_disrupt = Some("true".into());
    let mut drain = ruled(
        honoring(&[PodMark::DoNotDisrupt], &rules),
        &[protected, pod("job")],
    );
    assert_eq!(tried(&drain.next_step(at(0.0))), [""; 0]);
    drain.delete_remaining_pods();
    let delete = RemovalMethod::Delete;
    assert_eq!(ways(&drain.next_step(at(1.0))), [("gpu", delete)]);
    deleted(&mut drain, "gpu");
    assert_eq!(ways(&drain.next_step(at(2.0))), [("job", delete)]);
}

#[test]
fn a_mark_that_comes_or_goes_counts_until_the_eviction_was_called() {
    let mut drain = ruled(honoring(&[PodMark::SafeToEvict], &[]), &[pod("a")]);
    let first = only_try(&mut drain, "a", at(0.0));
    drain.apply_eviction_answer(first.id, budget_refusal(), at(0.0));
    let mut protected = pod("a");
    protected.marks.safe_to_evict = Some("false".into());
    drain.apply_pod(protected);
    assert_eq!(tried(&drain.next_step(at(60.0))), [""; 0]);
    assert_eq!(drain.current_progress().blocked, []);
    assert_eq!(waiting(&drain), ["a"]);
    drain.apply_pod(pod("a"));
    assert_eq!(tried(&drain.next_step(at(61.0))), ["a"]);
}

#[test]
fn labels_of_a_namespace_are_asked_for_once_and_only_by_a_rule_that_needs_them() {
    let batch = PodRule {
        namespaces: Some(app("batch")),
        ..rule("job", RuleAction::Skip, 0)
    };
    let other = ObservedPod {
        controller: Some(owner("ReplicaSet", "job")),
        labels: pod("job").labels,
        ..pod("job-2")
    };
    let mut drain = by_rules(&[batch], &[pod("job"), other, pod("web")]);
    let step = drain.next_step(at(0.0));
    assert_eq!(tried(&step), ["web"]);
    assert_eq!(step.look_up_namespaces, ["shop"]);
    drain.apply_namespace_labels("shop", Err("503".into()), at(0.0));
    let failed = drain.current_progress().lookups_failed;
    assert_eq!(failed[0].0.to_string(), "namespace shop");
    let step = drain.next_step(at(40.0));
    assert_eq!(step.look_up_namespaces, ["shop"]);
    let labels = BTreeMap::from([("app".to_owned(), "batch".to_owned())]);
    drain.apply_namespace_labels("shop", Ok(labels), at(40.0));
    deleted(&mut drain, "web");
    assert!(drain.current_progress().is_drained());
}

#[test]
fn while_an_order_is_unknown_no_order_begins() {
    let rules = [rule("web", RuleAction::Evict, 1)];
    let mut drain = by_rules(&rules, &[of_daemonset("d", "gone"), pod("web")]);
    assert_eq!(tried(&drain.next_step(at(0.0))), [""; 0]);
    let set = DaemonSetRef {
        namespace: "shop".into(),
        name: "gone".into(),
    };
    drain.apply_daemonset_lookup(&set, DaemonSetLookup::Gone, at(0.0));
    assert_eq!(tried(&drain.next_step(at(0.0))), ["d"]);
}

#[test]
fn the_timeout_begins_after_the_longest_wait_or_when_the_last_wait_ended_early() {
    let seconds = Duration::from_secs;
    let progress = |pending, judged| DrainProgress {
        listed: judged,
        pending_wait: pending,
        ..DrainProgress::default()
    };
    for (pending, judged, known, elapsed, expected) in [
        (Some(HOUR), true, seconds(0), seconds(5), HOUR),
        (Some(seconds(60)), true, HOUR, seconds(5), seconds(60)),
        (Some(seconds(60)), false, HOUR, seconds(5), HOUR),
        (None, true, HOUR, seconds(100), seconds(101)),
        (None, true, seconds(101), seconds(900), seconds(101)),
        (None, false, HOUR, seconds(100), HOUR),
        (None, true, seconds(0), seconds(100), seconds(0)),
    ] {
        let wait = progress(pending, judged).drain_wait(known, elapsed);
        assert_eq!(wait, expected, "{pending:?} {judged} {known:?} {elapsed:?}");
    }
}

/// Pods `a` to `d`, each with a rule or none.
fn any_rules() -> impl Strategy<Value = PodRules> {
    let action = prop_oneof![
        Just(None),
        Just(Some(RuleAction::Evict)),
        Just(Some(RuleAction::Delete)),
        Just(Some(RuleAction::Skip)),
        (1..200_u64).prop_map(|wait| {
            let timeout = Duration::from_secs(wait);
            Some(RuleAction::WaitCompleted { timeout })
        }),
        // No Deployment is ever read here.
        (1..200_u64).prop_map(|wait| {
            let timeout = Duration::from_secs(wait);
            Some(RuleAction::RollFirst { timeout })
        }),
    ];
    prop::collection::vec((action, -1..2), 4).prop_map(|parts| {
        let named = ["a", "b", "c", "d"].iter().zip(parts);
        let rules = named.filter_map(|(name, (action, order))| {
            action.map(|action| {
                let order = if action == RuleAction::Skip { 0 } else { order };
                rule(name, action, order)
            })
        });
        honoring(&[], &rules.collect::<Vec<_>>())
    })
}

/// Whether the pod may be touched now, told from the rules alone.
fn may_touch(rules: &PodRules, pods: &[ObservedPod], pod: &ObservedPod, now: f64) -> bool {
    let of = |pod: &ObservedPod| {
        let rule = rules
            .rules
            .iter()
            .find(|rule| rule.pods.matches_labels(&pod.labels));
        rule.map_or((RuleAction::Evict, 0), |rule| (rule.action, rule.order))
    };
    let (action, order) = of(pod);
    let lower = |other: &ObservedPod| {
        let (action, other) = of(other);
        action != RuleAction::Skip && other < order
    };
    let allowed = match action {
        RuleAction::Skip => false,
        RuleAction::WaitCompleted { timeout } | RuleAction::RollFirst { timeout } => {
            now >= timeout.as_secs_f64()
        }
        RuleAction::Evict | RuleAction::Delete => true,
    };
    allowed && !pod.deleting && !pods.iter().any(lower)
}

proptest! {
    /// The policy changes during the drain: a new drain takes over the pods as they are.
    #[test]
    fn rules_that_change_during_a_drain_undo_nothing_and_hold_from_then_on(
        all_rules in prop::collection::vec(any_rules(), 1..4),
        ends in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut pods = vec![pod("a"), pod("b"), pod("c"), pod("d")];
        let mut rules = all_rules.iter();
        let mut ruling = rules.next().unwrap();
        let mut drain = by_rules(&ruling.rules, &pods);
        for (turn, ends) in (0_u32..).zip(ends.iter()) {
            let now = f64::from(turn) * 10.0;
            if turn % 7 == 6 && let Some(next) = rules.next() {
                ruling = next;
                drain = by_rules(&ruling.rules, &pods);
            }
            for call in drain.next_step(at(now)).tries {
                let pod = pods.iter().find(|pod| pod.pod == call.pod).unwrap();
                prop_assert!(may_touch(ruling, &pods, pod, now), "{pod:?} {ruling:?}");
                let pod = pods.iter_mut().find(|pod| pod.pod == call.pod).unwrap();
                pod.deleting = true;
                drain.apply_pod(pod.clone());
                drain.apply_eviction_answer(call.id, EvictionAnswer::Accepted, at(now));
            }
            if *ends && let Some(gone) = pods.iter().position(|pod| pod.deleting) {
                drain.apply_pod_deletion(&pods.remove(gone).pod);
            }
        }
        for pod in pods.iter().filter(|pod| pod.deleting) {
            drain.apply_pod_deletion(&pod.pod);
        }
        pods.retain(|pod| !pod.deleting);
        // Every wait is over by now, so only orders are left.
        for _ in 0..4 {
            for call in drain.next_step(at(900.0)).tries {
                drain.apply_pod_deletion(&call.pod);
                pods.retain(|pod| pod.pod != call.pod);
            }
        }
        let skipped = |pod: &ObservedPod| {
            ruling.rules.iter().any(|rule| {
                rule.action == RuleAction::Skip && rule.pods.matches_labels(&pod.labels)
            })
        };
        prop_assert!(pods.iter().all(skipped), "left: {pods:?}");
        prop_assert!(drain.current_progress().is_drained());
    }
}

#[test]
fn a_pod_whose_mark_changed_takes_the_last_place_and_no_other_pods() {
    let mut protected = pod("a");
    protected.marks.safe_to_evict = Some("false".into());
    let rules = honoring(&[PodMark::SafeToEvict], &[]);
    let mut drain = ruled(rules, &[protected, pod("b")]);
    drain.apply_pod(pod("a"));
    drain.apply_pod(pod("c"));
    drain.apply_pod(pod("d"));
    assert_eq!(tried(&drain.next_step(at(0.0))), ["b", "a", "c", "d"]);
}

#[test]
fn a_change_that_no_rule_is_about_costs_a_pod_neither_its_place_nor_its_call() {
    let rules = honoring(&[PodMark::SafeToEvict], &[]);
    let mut drain = ruled(rules, &[pod("a"), pod("b")]);
    let mut changed = pod("a");
    changed.labels.insert("seen".into(), "yes".into());
    drain.apply_pod(changed);
    let step = drain.next_step(at(0.0));
    assert_eq!(tried(&step), ["a", "b"]);
    // Its mark comes too late: the call is under way.
    let mut protected = pod("a");
    protected.marks.safe_to_evict = Some("false".into());
    drain.apply_pod(protected);
    assert_eq!(drain.current_progress().held, []);
    let call = step.tries.first().expect("it was called").id;
    drain.apply_eviction_answer(call, budget_refusal(), at(0.1));
    assert_eq!(drain.current_progress().blocked.len(), 1);
}

#[test]
fn a_wait_that_is_over_wakes_nobody_while_lower_orders_are_in_the_way() {
    let rules = [rule("job", WAIT, 1)];
    let mut drain = by_rules(&rules, &[pod("job"), pod("web")]);
    let call = only_try(&mut drain, "web", at(0.0));
    drain.apply_eviction_answer(call.id, EvictionAnswer::Accepted, at(0.1));
    for (seconds, wake) in [(3_599.0, Some(HOUR)), (3_600.0, None), (3_601.0, None)] {
        let step = drain.next_step(at(seconds));
        assert_eq!(step.wake.map(|wake| wake.at), wake, "{seconds}");
    }
}

#[test]
fn a_policy_says_what_has_to_be_read_for_its_rules() {
    let in_namespaces = PodRule {
        namespaces: Some(app("batch")),
        ..rule("a", RuleAction::Evict, 0)
    };
    let roll = RuleAction::RollFirst { timeout: HOUR };
    for (rules, namespaces, of_a, of_b) in [
        (vec![], false, false, false),
        (vec![rule("a", RuleAction::Evict, 0)], false, false, false),
        (vec![rule("a", roll, 0)], false, true, false),
        (
            vec![rule("a", RuleAction::Evict, 0), rule("b", roll, 0)],
            false,
            false,
            true,
        ),
        (vec![rule("b", WAIT, 0), in_namespaces], true, false, false),
    ] {
        let rules = honoring(&[], &rules);
        let rolls = |name| rules.may_roll_first(&pod(name).labels);
        let found = (rules.needs_namespaces(), rolls("a"), rolls("b"));
        assert_eq!(found, (namespaces, of_a, of_b), "{rules:?}");
    }
}

#[test]
fn a_mark_is_known_by_its_key_and_no_other_text_is_one() {
    for (key, mark) in [
        ("cluster.x-k8s.io/drain", Some(PodMark::ClusterApiDrain)),
        ("karpenter.sh/do-not-disrupt", Some(PodMark::DoNotDisrupt)),
        (
            "cluster-autoscaler.kubernetes.io/safe-to-evict",
            Some(PodMark::SafeToEvict),
        ),
        ("karpenter.sh/do-not-evict", None),
        ("", None),
    ] {
        assert_eq!(PodMark::from_key(key), mark, "{key}");
    }
}

#[test]
fn it_is_said_by_which_rules_a_drain_goes_and_whether_it_deletes() {
    let rules = honoring(&[PodMark::SafeToEvict], &[rule("job", WAIT, 1)]);
    let mut drain = ruled(rules.clone(), &[pod("web")]);
    let progress = drain.current_progress();
    assert!(progress.listed && !progress.deleting);
    assert_eq!(progress.rules, rules);
    drain.delete_remaining_pods();
    assert!(drain.current_progress().deleting);
}
