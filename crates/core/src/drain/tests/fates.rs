//! Which pods a drain removes. The table is that of `kubectl drain` with the flags of specification
//! §2.3.

use super::*;
use crate::drain::{
    DaemonSetLookup, DaemonSetRef, LabelOperator, LabelRequirement, PodLookup, PodRules,
};

fn agent() -> DaemonSetRef {
    DaemonSetRef {
        namespace: "shop".into(),
        name: "agent".into(),
    }
}

/// Lists one pod, answers the lookup of `agent` if there is one, returns whether the pod has to
/// leave.
fn goes(seen: ObservedPod, agent_exists: bool) -> bool {
    let mut drain = listed(&[seen]);
    let first = drain.next_step(at(0.0));
    let lookup = if agent_exists {
        DaemonSetLookup::Exists
    } else {
        DaemonSetLookup::Gone
    };
    for set in &first.look_up {
        assert_eq!(*set, agent());
        drain.apply_daemonset_lookup(set, lookup.clone(), at(0.1));
    }
    let then = drain.next_step(at(0.1));
    let tries = first.tries.len() + then.tries.len();
    assert_eq!(drain.current_progress().is_drained(), tries == 0);
    tries == 1
}

#[test]
fn mirror_pods_and_pods_of_an_existing_daemonset_stay_and_the_rest_goes() {
    let finished = |pod: ObservedPod| ObservedPod {
        phase: PodPhase::Finished,
        ..pod
    };
    let bare = ObservedPod {
        controller: None,
        ..pod("bare")
    };
    let mirror = ObservedPod {
        mirror: true,
        controller: Some(owner("Node", "n1")),
        ..pod("mirror")
    };
    let foreign = ObservedPod {
        controller: Some(ControllerRef {
            api_version: "apps.kruise.io/v1alpha1".into(),
            ..owner("DaemonSet", "agent")
        }),
        ..pod("foreign")
    };
    for (case, seen, agent_exists, expected) in [
        ("of a ReplicaSet", pod("a"), true, true),
        ("without a controller", bare.clone(), true, true),
        (
            "pending",
            ObservedPod {
                phase: PodPhase::Pending,
                ..pod("a")
            },
            true,
            true,
        ),
        ("mirror", mirror.clone(), true, false),
        ("finished mirror", finished(mirror), true, false),
        ("of a DaemonSet", of_daemonset("d", "agent"), true, false),
        (
            "of a DaemonSet that is gone",
            of_daemonset("d", "agent"),
            false,
            true,
        ),
        (
            "finished, of a DaemonSet",
            finished(of_daemonset("d", "agent")),
            true,
            true,
        ),
        ("finished without a controller", finished(bare), true, true),
        ("of another group's DaemonSet", foreign, true, true),
    ] {
        assert_eq!(goes(seen, agent_exists), expected, "{case}");
    }
}

#[test]
fn excluded_pods_stay() {
    let exclude = LabelSelector {
        match_labels: BTreeMap::new(),
        match_expressions: vec![LabelRequirement {
            key: "app".into(),
            operator: LabelOperator::In,
            values: vec!["keep".into()],
        }],
    };
    let config = DrainConfig {
        rules: PodRules {
            exclude: Some(exclude),
            ..PodRules::default()
        },
        ..DrainConfig::default()
    };
    let mut drain = started(config, Vec::new(), &[pod("keep"), pod("go")]);
    assert_eq!(tried(&drain.next_step(at(0.0))), ["go"]);
    drain.apply_pod_deletion(&pod("go").pod);
    assert!(drain.current_progress().is_drained());
}

#[test]
fn a_daemonset_is_looked_up_once_however_many_pods_it_has() {
    let mut drain = listed(&[of_daemonset("d1", "agent"), of_daemonset("d2", "agent")]);
    assert_eq!(drain.next_step(at(0.0)).look_up, [agent()]);
    drain.apply_pod(of_daemonset("d3", "agent"));
    assert_eq!(drain.next_step(at(0.1)).look_up, [], "it is under way");
    drain.apply_daemonset_lookup(&agent(), DaemonSetLookup::Exists, at(0.2));
    drain.apply_pod(of_daemonset("d4", "agent"));
    assert_eq!(drain.next_step(at(0.3)), EvictionStep::default());
    assert!(drain.current_progress().is_drained());
}

#[test]
fn a_lookup_that_fails_is_reported_repeated_with_back_off_and_keeps_the_node_from_being_drained() {
    let mut drain = listed(&[of_daemonset("d", "agent")]);
    let failed = || DaemonSetLookup::Failed { why: "503".into() };
    assert_eq!(drain.next_step(at(0.0)).look_up, [agent()]);
    drain.apply_daemonset_lookup(&agent(), failed(), at(1.0));
    assert_eq!(
        drain.current_progress().lookups_failed,
        [(PodLookup::DaemonSet(agent()), "503".to_owned())]
    );
    assert!(!drain.current_progress().is_drained());
    let step = drain.next_step(at(1.1));
    assert_eq!(
        (step.look_up.len(), step.wake.unwrap().at),
        (0, at(1.5).mono)
    );
    assert_eq!(drain.next_step(at(1.5)).look_up, [agent()]);
    assert_eq!(
        drain.current_progress().lookups_failed.len(),
        1,
        "until it is known"
    );
    drain.apply_daemonset_lookup(&agent(), failed(), at(2.0));
    assert_eq!(
        drain.next_step(at(2.0)).wake.unwrap().at,
        at(3.0).mono,
        "twice as long"
    );
    assert_eq!(drain.next_step(at(3.0)).look_up, [agent()]);
    drain.apply_daemonset_lookup(&agent(), DaemonSetLookup::Exists, at(3.1));
    assert!(drain.current_progress().is_drained());
    assert_eq!(drain.current_progress().lookups_failed, []);
}

#[test]
fn a_daemonset_pod_that_finishes_during_the_drain_goes() {
    let mut drain = listed(&[of_daemonset("d", "agent")]);
    drain.next_step(at(0.0));
    drain.apply_daemonset_lookup(&agent(), DaemonSetLookup::Exists, at(0.1));
    assert!(drain.current_progress().is_drained());
    drain.apply_pod(ObservedPod {
        phase: PodPhase::Finished,
        ..of_daemonset("d", "agent")
    });
    assert!(!drain.current_progress().is_drained());
    only_try(&mut drain, "d", at(0.2));
}

#[test]
fn a_pod_that_is_ending_already_is_waited_for_and_not_evicted() {
    let mut drain = listed(&[ObservedPod {
        deleting: true,
        ..pod("a")
    }]);
    assert_eq!(drain.next_step(at(0.0)), EvictionStep::default());
    assert_eq!(waiting(&drain), ["a"]);
    drain.apply_pod_deletion(&pod("a").pod);
    assert!(drain.current_progress().is_drained());
}

#[test]
fn a_pod_that_somebody_else_deletes_while_it_waits_for_its_turn_is_not_evicted() {
    let mut drain = limited(&[pod("a"), pod("b")], 1);
    let first = only_try(&mut drain, "a", at(0.0));
    drain.apply_pod(ObservedPod {
        deleting: true,
        ..pod("b")
    });
    drain.apply_eviction_answer(first.id, EvictionAnswer::Accepted, at(0.1));
    assert_eq!(drain.next_step(at(0.2)), EvictionStep::default());
    assert_eq!(waiting(&drain), ["a", "b"]);
}

#[test]
fn the_third_replacement_by_one_controller_that_tolerates_the_cordon_stays_and_is_reported() {
    let stubborn = |generation: usize| ObservedPod {
        tolerates_cordon: true,
        ..pod(&format!("p{generation}"))
    };
    let mut drain = listed(&[stubborn(0)]);
    for generation in 0..3 {
        let name = format!("p{generation}");
        let call = only_try(&mut drain, &name, at(0.0));
        drain.apply_eviction_answer(call.id, EvictionAnswer::Accepted, at(0.0));
        // As with a ReplicaSet, the replacement appears while the old pod is still terminating.
        drain.apply_pod(stubborn(generation + 1));
        drain.apply_pod_deletion(&call.pod);
    }
    assert_eq!(drain.next_step(at(1.0)), EvictionStep::default());
    assert!(drain.current_progress().is_drained());
    let tolerated: Vec<_> = drain
        .current_progress()
        .tolerated
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        tolerated,
        [
            "ReplicaSet shop/web put a pod back on the cordoned node 3 times: the drain leaves shop/p3 there, like a DaemonSet's pod"
        ]
    );
    // The pod changes and stays tolerated; once finished, it is evicted as any finished pod.
    drain.apply_pod(stubborn(3));
    assert!(drain.current_progress().is_drained());
    drain.apply_pod(ObservedPod {
        phase: PodPhase::Finished,
        ..stubborn(3)
    });
    only_try(&mut drain, "p3", at(2.0));
}

/// A drain that lists a pod, and whose controller replaces it three times this long after the list.
fn replaced_again_and_again(replacement: impl Fn(&str) -> ObservedPod, seconds: f64) -> NodeDrain {
    let mut drain = listed(&[pod("p0")]);
    drain.next_step(at(0.0));
    drain.next_step(at(seconds));
    for generation in 1..4 {
        drain.apply_pod(replacement(&format!("p{generation}")));
        drain.apply_pod_deletion(&pod(&format!("p{}", generation - 1)).pod);
    }
    drain
}

#[test]
fn a_controller_whose_pods_name_the_node_themselves_is_recognized_by_its_third_replacement() {
    let unscheduled = |name: &str| ObservedPod {
        unscheduled: true,
        ..pod(name)
    };
    let mut drain = replaced_again_and_again(unscheduled, 0.0);
    assert_eq!(drain.next_step(at(0.1)), EvictionStep::default());
    assert!(drain.current_progress().is_drained());
    assert_eq!(drain.current_progress().tolerated[0].replaced, 3);
    // The kubelet writes the condition later.
    drain.apply_pod(pod("p3"));
    assert!(drain.current_progress().is_drained());
    assert_eq!(drain.current_progress().tolerated.len(), 1);
}

#[test]
fn what_comes_to_the_node_when_every_scheduler_knows_of_the_cordon_counts_as_put_back() {
    for (seconds, tolerated) in [(60.0, 0), (60.1, 1)] {
        let drain = replaced_again_and_again(pod, seconds);
        let found = drain.current_progress().tolerated.len();
        assert_eq!(found, tolerated, "{seconds} s after the list");
    }
}

#[test]
fn replacements_that_do_not_tolerate_the_cordon_are_drained_however_many_there_are() {
    let mut drain = listed(&[pod("p0")]);
    for generation in 1..6 {
        drain.apply_pod(pod(&format!("p{generation}")));
    }
    assert_eq!(drain.next_step(at(0.0)).tries.len(), 6);
    assert_eq!(drain.current_progress().tolerated, []);
}

#[test]
fn the_initial_list_holds_no_replacements_however_many_pods_one_controller_has() {
    let pods: Vec<_> = (0..6)
        .map(|n| ObservedPod {
            tolerates_cordon: true,
            ..pod(&format!("p{n}"))
        })
        .collect();
    let mut drain = listed(&pods);
    assert_eq!(drain.next_step(at(0.0)).tries.len(), 6);
}

#[test]
fn the_claims_of_the_pods_that_left_are_remembered_and_those_of_pods_that_stay_are_not() {
    let with = |pod: ObservedPod, claim: &str| ObservedPod {
        claims: vec![claim.to_owned()],
        ..pod
    };
    let mut drain = listed(&[
        with(pod("a"), "data-a"),
        with(pod("b"), "data-b"),
        with(of_daemonset("d", "agent"), "cache"),
    ]);
    drain.next_step(at(0.0));
    drain.apply_daemonset_lookup(&agent(), DaemonSetLookup::Exists, at(0.1));
    drain.apply_pod_deletion(&pod("a").pod);
    drain.apply_pod_deletion(&of_daemonset("d", "agent").pod);
    assert_eq!(drain.current_progress().claims, ["shop/data-a"]);
}

#[test]
fn an_owner_whose_name_is_no_name_is_never_asked_for() {
    for name in ["agent/status", "..", "", "Agent", "a b", "agent?x"] {
        let mut drain = listed(&[of_daemonset("d", name)]);
        let step = drain.next_step(at(0.0));
        assert_eq!((step.look_up.len(), tried(&step)), (0, vec!["d"]), "{name}");
    }
}
