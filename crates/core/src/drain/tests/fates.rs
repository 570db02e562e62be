//! Which pods go. The table is that of `kubectl drain` with the flags of specification §2.3.

use super::*;
use crate::drain::{DaemonSetRef, Lookup, Operator, Requirement};

fn agent() -> DaemonSetRef {
    DaemonSetRef {
        namespace: "shop".into(),
        name: "agent".into(),
    }
}

/// Lists one pod, answers the lookup of `agent` if it is asked for, says whether the pod goes.
fn goes(seen: PodSeen, agent_exists: bool) -> bool {
    let mut drain = listed(&[seen]);
    let first = drain.next(at(0.0));
    let lookup = if agent_exists {
        Lookup::Exists
    } else {
        Lookup::Gone
    };
    for set in &first.look_up {
        assert_eq!(*set, agent());
        drain.daemonset(set, lookup.clone(), at(0.1));
    }
    let then = drain.next(at(0.1));
    let tries = first.tries.len() + then.tries.len();
    assert_eq!(drain.progress().drained(), tries == 0);
    tries == 1
}

#[test]
fn mirror_pods_and_pods_of_an_existing_daemonset_stay_and_the_rest_goes() {
    let finished = |pod: PodSeen| PodSeen {
        phase: PodPhase::Finished,
        ..pod
    };
    let bare = PodSeen {
        controller: None,
        ..pod("bare")
    };
    let mirror = PodSeen {
        mirror: true,
        controller: Some(owner("Node", "n1")),
        ..pod("mirror")
    };
    let foreign = PodSeen {
        controller: Some(Owner {
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
            PodSeen {
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
        match_expressions: vec![Requirement {
            key: "app".into(),
            operator: Operator::In,
            values: vec!["keep".into()],
        }],
    };
    let config = DrainConfig {
        exclude: Some(exclude),
        ..DrainConfig::default()
    };
    let mut drain = started(config, Vec::new(), &[pod("keep"), pod("go")]);
    assert_eq!(tried(&drain.next(at(0.0))), ["go"]);
    drain.deleted(&pod("go").pod);
    assert!(drain.progress().drained());
}

#[test]
fn a_daemonset_is_looked_up_once_however_many_pods_it_has() {
    let mut drain = listed(&[of_daemonset("d1", "agent"), of_daemonset("d2", "agent")]);
    assert_eq!(drain.next(at(0.0)).look_up, [agent()]);
    drain.applied(of_daemonset("d3", "agent"));
    assert_eq!(drain.next(at(0.1)).look_up, [], "it is under way");
    drain.daemonset(&agent(), Lookup::Exists, at(0.2));
    drain.applied(of_daemonset("d4", "agent"));
    assert_eq!(drain.next(at(0.3)), Step::default());
    assert!(drain.progress().drained());
}

#[test]
fn a_lookup_that_fails_is_reported_repeated_with_back_off_and_keeps_the_node_from_being_drained() {
    let mut drain = listed(&[of_daemonset("d", "agent")]);
    let failed = || Lookup::Failed { why: "503".into() };
    assert_eq!(drain.next(at(0.0)).look_up, [agent()]);
    drain.daemonset(&agent(), failed(), at(1.0));
    assert_eq!(
        drain.progress().lookups_failed,
        [(agent(), "503".to_owned())]
    );
    assert!(!drain.progress().drained());
    let step = drain.next(at(1.1));
    assert_eq!(
        (step.look_up.len(), step.wake.unwrap().at),
        (0, at(1.5).mono)
    );
    assert_eq!(drain.next(at(1.5)).look_up, [agent()]);
    assert_eq!(
        drain.progress().lookups_failed.len(),
        1,
        "until it is known"
    );
    drain.daemonset(&agent(), failed(), at(2.0));
    assert_eq!(
        drain.next(at(2.0)).wake.unwrap().at,
        at(3.0).mono,
        "twice as long"
    );
    assert_eq!(drain.next(at(3.0)).look_up, [agent()]);
    drain.daemonset(&agent(), Lookup::Exists, at(3.1));
    assert!(drain.progress().drained());
    assert_eq!(drain.progress().lookups_failed, []);
}

#[test]
fn a_daemonset_pod_that_finishes_during_the_drain_goes() {
    let mut drain = listed(&[of_daemonset("d", "agent")]);
    drain.next(at(0.0));
    drain.daemonset(&agent(), Lookup::Exists, at(0.1));
    assert!(drain.progress().drained());
    drain.applied(PodSeen {
        phase: PodPhase::Finished,
        ..of_daemonset("d", "agent")
    });
    assert!(!drain.progress().drained());
    only_try(&mut drain, "d", at(0.2));
}

#[test]
fn a_pod_that_is_ending_already_is_waited_for_and_not_evicted() {
    let mut drain = listed(&[PodSeen {
        deleting: true,
        ..pod("a")
    }]);
    assert_eq!(drain.next(at(0.0)), Step::default());
    assert_eq!(waiting(&drain), ["a"]);
    drain.deleted(&pod("a").pod);
    assert!(drain.progress().drained());
}

#[test]
fn a_pod_that_somebody_else_deletes_while_it_waits_for_its_turn_is_not_evicted() {
    let mut drain = limited(&[pod("a"), pod("b")], 1);
    let first = only_try(&mut drain, "a", at(0.0));
    drain.applied(PodSeen {
        deleting: true,
        ..pod("b")
    });
    drain.answered(first.id, Answer::Accepted, at(0.1));
    assert_eq!(drain.next(at(0.2)), Step::default());
    assert_eq!(waiting(&drain), ["a", "b"]);
}

#[test]
fn the_third_replacement_by_one_controller_that_tolerates_the_cordon_stays_and_is_reported() {
    let stubborn = |generation: usize| PodSeen {
        tolerates_cordon: true,
        ..pod(&format!("p{generation}"))
    };
    let mut drain = listed(&[stubborn(0)]);
    for generation in 0..3 {
        let name = format!("p{generation}");
        let call = only_try(&mut drain, &name, at(0.0));
        drain.answered(call.id, Answer::Accepted, at(0.0));
        // As a ReplicaSet does: the replacement comes while the old one is still ending.
        drain.applied(stubborn(generation + 1));
        drain.deleted(&call.pod);
    }
    assert_eq!(drain.next(at(1.0)), Step::default());
    assert!(drain.progress().drained());
    let tolerated: Vec<_> = drain
        .progress()
        .tolerated
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        tolerated,
        [
            "ReplicaSet shop/web put a pod back on the cordoned node 3 times: shop/p3 stays, as a DaemonSet's would"
        ]
    );
    // It changes, and stays tolerated; once finished it goes like any finished pod.
    drain.applied(stubborn(3));
    assert!(drain.progress().drained());
    drain.applied(PodSeen {
        phase: PodPhase::Finished,
        ..stubborn(3)
    });
    only_try(&mut drain, "p3", at(2.0));
}

#[test]
fn replacements_that_do_not_tolerate_the_cordon_are_drained_however_many_there_are() {
    let mut drain = listed(&[pod("p0")]);
    for generation in 1..6 {
        drain.applied(pod(&format!("p{generation}")));
    }
    assert_eq!(drain.next(at(0.0)).tries.len(), 6);
    assert_eq!(drain.progress().tolerated, []);
}

#[test]
fn the_initial_list_holds_no_replacements_however_many_pods_one_controller_has() {
    let pods: Vec<_> = (0..6)
        .map(|n| PodSeen {
            tolerates_cordon: true,
            ..pod(&format!("p{n}"))
        })
        .collect();
    let mut drain = listed(&pods);
    assert_eq!(drain.next(at(0.0)).tries.len(), 6);
}

#[test]
fn the_claims_of_the_pods_that_left_are_remembered_and_those_of_pods_that_stay_are_not() {
    let with = |pod: PodSeen, claim: &str| PodSeen {
        claims: vec![claim.to_owned()],
        ..pod
    };
    let mut drain = listed(&[
        with(pod("a"), "data-a"),
        with(pod("b"), "data-b"),
        with(of_daemonset("d", "agent"), "cache"),
    ]);
    drain.next(at(0.0));
    drain.daemonset(&agent(), Lookup::Exists, at(0.1));
    drain.deleted(&pod("a").pod);
    drain.deleted(&of_daemonset("d", "agent").pod);
    assert_eq!(drain.progress().claims, ["shop/data-a"]);
}

#[test]
fn an_owner_whose_name_is_no_name_is_never_asked_for() {
    for name in ["agent/status", "..", "", "Agent", "a b", "agent?x"] {
        let mut drain = listed(&[of_daemonset("d", name)]);
        let step = drain.next(at(0.0));
        assert_eq!((step.look_up.len(), tried(&step)), (0, vec!["d"]), "{name}");
    }
}
