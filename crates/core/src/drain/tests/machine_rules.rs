//! §10.2: the MachineDrainRules of Cluster API, where the policy honours its label.

use super::*;
use crate::drain::{
    DrainStart, MachineDrainBehavior, MachineDrainRule, MachineRulesLookup, PlanReason, PodAction,
    PodDrainPlan, PodMark, PodRule, PodRules, RuleAction, RuleMachines, RulePods, WaitLimit,
    need_cluster_labels, need_namespace_labels, select_machine_rules,
};

const WAIT: PodAction = PodAction::WaitCompleted(WaitLimit::DrainTimeout);

fn labelled(key: &str, value: &str) -> LabelSelector {
    LabelSelector {
        match_labels: [(key.to_owned(), value.to_owned())].into(),
        ..LabelSelector::default()
    }
}

/// A rule for every Machine, for the pods `app=APP`.
fn machine_rule(name: &str, app: &str, behavior: MachineDrainBehavior) -> MachineDrainRule {
    MachineDrainRule {
        name: format!("fleet/{name}").as_str().into(),
        machines: Vec::new(),
        pods: vec![RulePods {
            pod: labelled("app", app),
            namespace: None,
        }],
        behavior,
    }
}

fn honoring(rules: &[PodRule]) -> DrainConfig {
    DrainConfig {
        rules: PodRules {
            honor: [PodMark::ClusterApiDrain].into(),
            rules: rules.to_vec(),
            exclude: Some(labelled("app", "excluded")),
        },
        ..DrainConfig::default()
    }
}

/// A drain to which these MachineDrainRules were answered.
fn answered(
    rules: &[PodRule],
    machine_rules: &[MachineDrainRule],
    pods: &[ObservedPod],
) -> NodeDrain {
    let mut drain = started(honoring(rules), Vec::new(), pods);
    assert!(drain.next_step(at(0.0)).look_up_machine_rules);
    let found = MachineRulesLookup::Found(machine_rules.to_vec());
    drain.apply_machine_rules(found, at(0.0));
    drain
}

fn plan_of(drain: &NodeDrain, name: &str) -> (PodAction, i32, String) {
    let mut plans = drain.pod_plans();
    let found = plans.find(|(pod, _)| pod.pod.name == name);
    let PodDrainPlan { action, why, order } = found.expect("it is planned").1;
    (*action, *order, why.to_string())
}

fn assert_plans(drain: &NodeDrain, expected: &[(&str, PodAction, i32, &str)]) {
    for (name, action, order, why) in expected {
        let plan = (*action, *order, (*why).to_owned());
        assert_eq!(plan_of(drain, name), plan, "{name}");
    }
}

#[test]
fn the_first_machine_drain_rule_by_name_decides_as_in_cluster_api() {
    let drain_later = MachineDrainBehavior::Drain { order: 7 };
    let rules = select_machine_rules(
        vec![
            machine_rule("z-skip", "web", MachineDrainBehavior::Skip),
            machine_rule("b-wait", "train", MachineDrainBehavior::WaitCompleted),
            machine_rule("a-later", "web", drain_later),
            machine_rule("c-skip", "agent", MachineDrainBehavior::Skip),
        ],
        &BTreeMap::new(),
        &BTreeMap::new(),
    );
    let ended = ObservedPod {
        phase: PodPhase::Finished,
        labels: pod("train").labels,
        ..pod("ended")
    };
    let pods = [pod("web"), pod("train"), pod("agent"), pod("other"), ended];
    let drain = answered(&[], &rules, &pods);
    assert_plans(
        &drain,
        &[
            ("web", PodAction::Evict, 7, "MachineDrainRule fleet/a-later"),
            ("train", WAIT, 0, "MachineDrainRule fleet/b-wait"),
            ("agent", PodAction::Stay, 0, "MachineDrainRule fleet/c-skip"),
            ("other", PodAction::Evict, 0, "no rule matches"),
            ("ended", PodAction::Evict, 0, "no rule matches"),
        ],
    );
}

/// Skip and WaitCompleted protect, as a mark does; Drain only orders what no rule of the policy is
/// about.
#[test]
fn a_protecting_machine_drain_rule_comes_before_the_policys_rules_and_an_ordering_one_after_them() {
    let own = |app: &str, action| PodRule {
        pods: labelled("app", app),
        action,
        order: 3,
        ..PodRule::default()
    };
    let own = [
        own("train", RuleAction::Delete),
        own("web", RuleAction::Delete),
    ];
    let everything = MachineDrainRule {
        pods: Vec::new(),
        ..machine_rule("z", "", MachineDrainBehavior::Drain { order: 9 })
    };
    let wait = MachineDrainBehavior::WaitCompleted;
    let rules = [machine_rule("a", "train", wait), everything];
    let mut marked = pod("marked");
    let mark = (PodMark::ClusterApiDrain.mark_key(), "skip");
    marked.labels = [
        ("app".into(), "train".into()),
        (mark.0.into(), mark.1.into()),
    ]
    .into();
    let pods = [
        pod("train"),
        pod("web"),
        pod("excluded"),
        pod("other"),
        marked,
    ];
    let drain = answered(&own, &rules, &pods);
    assert_plans(
        &drain,
        &[
            ("train", WAIT, 0, "MachineDrainRule fleet/a"),
            ("web", PodAction::Delete, 3, "drain.rules[1]"),
            ("excluded", PodAction::Stay, 0, "drain.exclude"),
            ("other", PodAction::Evict, 9, "MachineDrainRule fleet/z"),
            ("marked", PodAction::Stay, 0, "label cluster.x-k8s.io/drain"),
        ],
    );
}

#[test]
fn a_machine_drain_rule_applies_by_the_labels_of_machine_and_cluster() {
    let label = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let (linux, production) = (label("os", "linux"), label("stage", "production"));
    let entry = |machine, cluster| RuleMachines { machine, cluster };
    let (by_os, by_stage) = (labelled("os", "linux"), labelled("stage", "production"));
    let all = LabelSelector::default;
    for (machines, machine, cluster, applies) in [
        (vec![], &linux, &production, true),
        (vec![entry(all(), None)], &linux, &production, true),
        (vec![entry(by_os.clone(), None)], &linux, &production, true),
        (vec![entry(by_os.clone(), None)], &production, &linux, false),
        (
            vec![entry(by_os.clone(), Some(by_stage.clone()))],
            &linux,
            &linux,
            false,
        ),
        (
            vec![
                entry(labelled("os", "none"), None),
                entry(all(), Some(by_stage)),
            ],
            &linux,
            &production,
            true,
        ),
    ] {
        let rule = MachineDrainRule {
            machines: machines.clone(),
            ..machine_rule("a", "web", MachineDrainBehavior::Skip)
        };
        let selected = select_machine_rules(vec![rule], machine, cluster);
        assert_eq!(!selected.is_empty(), applies, "{machines:?} {machine:?}");
    }
}

#[test]
fn a_machine_drain_rule_for_a_namespace_reads_its_labels() {
    let mut rule = machine_rule("a", "web", MachineDrainBehavior::Skip);
    rule.pods[0].namespace = Some(labelled("team", "shop"));
    let mut drain = answered(&[], &[rule], &[pod("web")]);
    assert_eq!(drain.next_step(at(0.0)).look_up_namespaces, ["shop"]);
    let labels = BTreeMap::from([("team".to_owned(), "shop".to_owned())]);
    drain.apply_namespace_labels("shop", Ok(labels), at(0.0));
    assert!(drain.current_progress().is_drained());
}

#[test]
fn while_machine_drain_rules_are_unknown_no_pod_is_touched_and_the_reason_is_said() {
    let mut mirror = pod("mirror");
    mirror.mirror = true;
    let mut drain = started(honoring(&[]), Vec::new(), &[pod("web"), mirror]);
    let step = drain.next_step(at(0.0));
    assert!(step.look_up_machine_rules && step.tries.is_empty());
    let why = "403".to_owned();
    drain.apply_machine_rules(MachineRulesLookup::Failed { why }, at(0.0));
    let progress = drain.current_progress();
    assert_eq!(
        progress.lookups_failed[0].0.to_string(),
        "MachineDrainRules"
    );
    assert_eq!(progress.unjudged.len(), 1);
    assert!(!progress.is_drained());
    let step = drain.next_step(at(40.0));
    assert!(step.look_up_machine_rules && step.tries.is_empty());
    let why = "Machine fleet/m is not in this cluster".to_owned();
    drain.apply_machine_rules(MachineRulesLookup::Elsewhere { why }, at(40.0));
    assert_eq!(tried(&drain.next_step(at(40.0))), ["web"]);
    assert!(!drain.next_step(at(80.0)).look_up_machine_rules);
}

#[test]
fn a_policy_that_does_not_honour_the_label_never_asks_for_machine_drain_rules() {
    let mut config = honoring(&[]);
    config.rules.honor = [PodMark::DoNotDisrupt].into();
    let mut drain = started(config, Vec::new(), &[pod("web")]);
    let step = drain.next_step(at(0.0));
    assert!(!step.look_up_machine_rules);
    assert_eq!(tried(&step), ["web"]);
}

#[test]
fn a_pod_of_a_machine_drain_rule_waits_for_the_lower_orders() {
    let later = machine_rule("a", "database", MachineDrainBehavior::Drain { order: 1 });
    let wait = machine_rule("b", "train", MachineDrainBehavior::WaitCompleted);
    let pods = [pod("database"), pod("train"), pod("web")];
    let mut drain = answered(&[], &[later, wait], &pods);
    assert_eq!(tried(&drain.next_step(at(1.0))), ["web"]);
    drain.apply_pod_deletion(&pod_ref("web", "u-web"));
    assert_eq!(
        tried(&drain.next_step(at(2.0))),
        [""; 0],
        "the job still runs"
    );
    let held = drain.current_progress().held;
    let train = held.iter().find(|held| held.pod.name == "train");
    let plan = &train.expect("it is held").plan;
    assert_eq!(plan.why, PlanReason::MachineDrainRule("fleet/b".into()));
    assert!(plan.is_waiting(DrainStart::default(), at(2.0)));
    drain.apply_pod(ObservedPod {
        phase: PodPhase::Finished,
        ..pod("train")
    });
    assert_eq!(tried(&drain.next_step(at(3.0))), ["database", "train"]);
}

#[test]
fn a_pod_that_is_not_judged_holds_the_others_up_only_if_a_machine_drain_rule_has_an_order() {
    let drain_in = |order| MachineDrainBehavior::Drain { order };
    for (behavior, is_held_up) in [
        (drain_in(1), true),
        (drain_in(-1), true),
        (drain_in(0), false),
        (MachineDrainBehavior::Skip, false),
        (MachineDrainBehavior::WaitCompleted, false),
    ] {
        let rule = machine_rule("a", "nobody", behavior);
        let pods = [of_daemonset("agent", "unread"), pod("web")];
        let mut drain = answered(&[], &[rule], &pods);
        let step = drain.next_step(at(1.0));
        let wanted: &[&str] = if is_held_up { &[] } else { &["web"] };
        assert_eq!(tried(&step), wanted, "{behavior:?}");
    }
}

#[test]
fn labels_are_read_only_if_a_machine_drain_rule_selects_by_them() {
    let rule = || machine_rule("a", "web", MachineDrainBehavior::Skip);
    let mut by_cluster = rule();
    by_cluster.machines = vec![
        RuleMachines::default(),
        RuleMachines {
            cluster: Some(labelled("stage", "production")),
            ..RuleMachines::default()
        },
    ];
    let mut by_machine = rule();
    by_machine.machines = vec![RuleMachines::default()];
    let mut by_namespace = rule();
    by_namespace.pods[0].namespace = Some(labelled("team", "shop"));
    for (rules, cluster, namespaces) in [
        (vec![], false, false),
        (vec![rule(), by_machine], false, false),
        (vec![rule(), by_cluster], true, false),
        (vec![rule(), by_namespace], false, true),
    ] {
        let needed = (need_cluster_labels(&rules), need_namespace_labels(&rules));
        assert_eq!(needed, (cluster, namespaces), "{rules:?}");
    }
}
