//! §10.2: `do: RollFirst`.

use super::*;
use crate::drain::{
    DeploymentLookup, DeploymentRestart, ObservedDeployment, PodRule, PodRules, ReplicaSetRef,
    ReplicaShare, RestartAnswer, RolloutStrategy, RuleAction,
};

const TIMEOUT: Duration = Duration::from_mins(10);

fn set() -> ReplicaSetRef {
    ReplicaSetRef::of_pod(&pod("web")).unwrap()
}

/// Rules that roll the pods `app=web` first, and evict the others in order 0.
fn rules(order: i32) -> PodRules {
    let web = LabelSelector {
        match_labels: [("app".to_owned(), "web".to_owned())].into(),
        ..LabelSelector::default()
    };
    PodRules {
        rules: vec![PodRule {
            pods: web,
            action: RuleAction::RollFirst { timeout: TIMEOUT },
            order,
            ..PodRule::default()
        }],
        ..PodRules::default()
    }
}

fn drain_of(order: i32, pods: &[ObservedPod]) -> NodeDrain {
    let config = DrainConfig {
        rules: rules(order),
        ..DrainConfig::default()
    };
    started(config, Vec::new(), pods)
}

fn share(max_surge: ReplicaShare, max_unavailable: ReplicaShare) -> RolloutStrategy {
    RolloutStrategy::RollingUpdate {
        max_surge,
        max_unavailable,
    }
}

/// One replica, with the strategy that Kubernetes fills in.
fn deployment() -> ObservedDeployment {
    let quarter = ReplicaShare::Percent(25);
    ObservedDeployment {
        name: "web".into(),
        uid: "u-deployment".into(),
        resource_version: "7".into(),
        deleting: false,
        paused: false,
        has_same_template: true,
        replicas: 1,
        strategy: share(quarter, quarter),
        stuck: None,
    }
}

fn found(seen: ObservedDeployment) -> DeploymentLookup {
    DeploymentLookup::Found(Box::new(seen))
}

fn rolling() -> ObservedDeployment {
    ObservedDeployment {
        has_same_template: false,
        ..deployment()
    }
}

/// Answers the one lookup that is due, and takes the next step.
fn looked_up(drain: &mut NodeDrain, lookup: DeploymentLookup, now: Now) -> EvictionStep {
    assert_eq!(drain.next_step(now).look_up_deployments, [set()]);
    drain.apply_deployment_lookup(&set(), lookup, now);
    drain.next_step(now)
}

fn unrolled(drain: &NodeDrain) -> Vec<String> {
    let unrolled = drain.current_progress().unrolled;
    unrolled.iter().map(ToString::to_string).collect()
}

fn rollout(drain: &NodeDrain) -> String {
    let held = drain.current_progress().held;
    let rollout = held.first().and_then(|held| held.rollout.clone());
    rollout.map_or_else(String::new, |rollout| rollout.to_string())
}

#[test]
fn the_deployment_is_restarted_once_on_the_version_that_was_read_and_the_pod_is_left_alone() {
    let mut drain = drain_of(0, &[pod("web")]);
    let step = looked_up(&mut drain, found(deployment()), at(1.0));
    let expected = DeploymentRestart {
        replica_set: set(),
        deployment: "web".into(),
        uid: "u-deployment".into(),
        resource_version: "7".into(),
        at: at(1.0).wall,
    };
    assert_eq!(step.restarts, [expected]);
    drain.apply_restart_answer(&set(), RestartAnswer::Restarted, at(2.0));
    assert_eq!(
        rollout(&drain),
        "a rollout of Deployment shop/web replaces it"
    );
    for seconds in [3.0, 40.0, 80.0] {
        let step = drain.next_step(at(seconds));
        assert_eq!((step.restarts.len(), tried(&step).len()), (0, 0));
        for set in step.look_up_deployments {
            drain.apply_deployment_lookup(&set, found(rolling()), at(seconds));
        }
    }
    assert_eq!(drain.current_progress().pending_wait, Some(TIMEOUT));
    // Its Deployment deletes it.
    drain.apply_pod(ObservedPod {
        deleting: true,
        ..pod("web")
    });
    assert_eq!(drain.next_step(at(90.0)).look_up_deployments, []);
    drain.apply_pod_deletion(&pod("web").pod);
    assert!(drain.current_progress().is_drained());
    assert_eq!(unrolled(&drain), [""; 0]);
}

#[test]
fn a_rollout_that_an_earlier_process_or_another_node_began_is_waited_for() {
    let mut drain = drain_of(0, &[pod("web")]);
    let step = looked_up(&mut drain, found(rolling()), at(1.0));
    assert_eq!((step.restarts, step.tries), (Vec::new(), Vec::new()));
    assert_eq!(
        rollout(&drain),
        "a rollout of Deployment shop/web replaces it"
    );
}

#[test]
fn several_pods_of_one_deployment_are_one_restart() {
    let second = ObservedPod {
        pod: pod_ref("web-2", "u-web-2"),
        ..pod("web")
    };
    let mut drain = drain_of(0, &[pod("web"), second]);
    let step = looked_up(&mut drain, found(deployment()), at(1.0));
    assert_eq!(step.restarts.len(), 1);
    assert_eq!(drain.current_progress().held.len(), 2);
}

#[test]
fn a_restart_whose_fate_is_unknown_is_read_before_it_is_written_again() {
    let mut drain = drain_of(0, &[pod("web")]);
    looked_up(&mut drain, found(deployment()), at(1.0));
    let why = || "no answer from the API server".to_owned();
    drain.apply_restart_answer(&set(), RestartAnswer::ReadAgain { why: why() }, at(2.0));
    assert_eq!(drain.next_step(at(2.0)).restarts, []);
    // It had arrived: nothing is written again.
    let step = looked_up(&mut drain, found(rolling()), at(3.0));
    assert_eq!((step.restarts, step.tries), (Vec::new(), Vec::new()));
}

#[test]
fn a_deployment_that_would_not_have_a_replacement_ready_first_is_not_restarted() {
    let count = ReplicaShare::Count;
    let percent = ReplicaShare::Percent;
    let with = |replicas, strategy| ObservedDeployment {
        replicas,
        strategy,
        ..deployment()
    };
    for (seen, why) in [
        (
            with(1, RolloutStrategy::Recreate),
            "has the strategy Recreate: its pods go before new ones come",
        ),
        (
            with(3, share(count(0), count(1))),
            "has maxSurge 0: a pod goes before its replacement comes",
        ),
        (
            with(1, share(count(1), count(1))),
            "has a maxUnavailable that lets all its pods go before new ones are ready",
        ),
        (
            with(2, share(percent(25), percent(100))),
            "has a maxUnavailable that lets all its pods go before new ones are ready",
        ),
        (
            ObservedDeployment {
                paused: true,
                ..deployment()
            },
            "is paused",
        ),
        (
            ObservedDeployment {
                paused: true,
                ..rolling()
            },
            "is paused",
        ),
        (
            ObservedDeployment {
                deleting: true,
                ..rolling()
            },
            "is being deleted",
        ),
        (with(0, deployment().strategy), "wants no pods"),
    ] {
        let mut drain = drain_of(0, &[pod("web")]);
        let step = looked_up(&mut drain, found(seen), at(1.0));
        assert_eq!(step.restarts, [], "{why}");
        assert_eq!(tried(&step), ["web"], "{why}");
        let text = format!(
            "shop/web is evicted before its replacement is ready: Deployment shop/web {why}"
        );
        assert_eq!(unrolled(&drain), [text]);
    }
}

#[test]
fn shares_are_rounded_as_kubernetes_rounds_them() {
    // One replica and 25%: one more pod, and none that may be missing.
    let mut drain = drain_of(0, &[pod("web")]);
    let step = looked_up(&mut drain, found(deployment()), at(1.0));
    assert_eq!(step.restarts.len(), 1);
    // Of three replicas 66% is one, rounded down: two stay.
    let two_thirds = ReplicaShare::Percent(66);
    let seen = ObservedDeployment {
        replicas: 3,
        strategy: share(ReplicaShare::Percent(1), two_thirds),
        ..deployment()
    };
    let mut drain = drain_of(0, &[pod("web")]);
    let step = looked_up(&mut drain, found(seen), at(1.0));
    assert_eq!(step.restarts.len(), 1);
}

#[test]
fn a_pod_that_no_deployment_replaces_is_evicted_and_the_reason_is_kept() {
    let tolerant = ObservedPod {
        tolerates_cordon: true,
        ..pod("web")
    };
    let of_set = ObservedPod {
        controller: Some(owner("StatefulSet", "db")),
        ..pod("web")
    };
    let bare = ObservedPod {
        controller: None,
        ..pod("web")
    };
    let only = "only a Deployment has a replacement ready first";
    for (seen, why) in [
        (
            tolerant,
            "it tolerates the cordon, and its replacement could come to this node".to_owned(),
        ),
        (of_set, format!("it belongs to StatefulSet db; {only}")),
        (bare, format!("it has no controller; {only}")),
    ] {
        let mut drain = drain_of(0, &[seen]);
        let step = drain.next_step(at(1.0));
        assert_eq!(step.look_up_deployments, []);
        assert_eq!(tried(&step), ["web"]);
        let text = format!("shop/web is evicted before its replacement is ready: {why}");
        assert_eq!(unrolled(&drain), [text]);
    }
    for lookup in [
        DeploymentLookup::None { why: "gone".into() },
        DeploymentLookup::Forbidden { why: "gone".into() },
    ] {
        let mut drain = drain_of(0, &[pod("web")]);
        assert_eq!(tried(&looked_up(&mut drain, lookup, at(1.0))), ["web"]);
    }
}

#[test]
fn a_refused_restart_is_an_eviction_and_says_what_refused_it() {
    let mut drain = drain_of(0, &[pod("web")]);
    looked_up(&mut drain, found(deployment()), at(1.0));
    let why = "deployments is forbidden".to_owned();
    drain.apply_restart_answer(&set(), RestartAnswer::Refused { why }, at(2.0));
    assert_eq!(tried(&drain.next_step(at(2.0))), ["web"]);
    let text = "shop/web is evicted before its replacement is ready: Deployment shop/web was not \
                restarted: deployments is forbidden";
    assert_eq!(unrolled(&drain), [text]);
}

#[test]
fn a_restart_that_a_person_undoes_is_not_repeated() {
    let mut drain = drain_of(0, &[pod("web")]);
    looked_up(&mut drain, found(deployment()), at(1.0));
    drain.apply_restart_answer(&set(), RestartAnswer::Restarted, at(2.0));
    let step = looked_up(&mut drain, found(deployment()), at(40.0));
    assert_eq!((step.restarts.len(), tried(&step)), (0, vec!["web"]));
    let text = "shop/web is evicted before its replacement is ready: the restart of Deployment \
                shop/web was undone";
    assert_eq!(unrolled(&drain), [text]);
}

#[test]
fn at_the_timeout_the_pod_is_evicted_like_any_other_and_the_rollouts_trouble_is_named() {
    let mut drain = drain_of(0, &[pod("web")]);
    let stuck = ObservedDeployment {
        stuck: Some("ProgressDeadlineExceeded: no progress".into()),
        ..rolling()
    };
    let step = looked_up(&mut drain, found(stuck), at(1.0));
    assert_eq!(tried(&step), [""; 0]);
    let trouble = "ProgressDeadlineExceeded: no progress";
    assert_eq!(
        rollout(&drain),
        format!("a rollout of Deployment shop/web replaces it, but {trouble}")
    );
    let over = at(TIMEOUT.as_secs_f64());
    let eviction = only_try(&mut drain, "web", over);
    assert_eq!(eviction.removal_method, crate::drain::RemovalMethod::Evict);
    assert_eq!(
        unrolled(&drain),
        [format!(
            "shop/web is evicted before its replacement is ready: the rollout of Deployment \
             shop/web took too long: {trouble}"
        )]
    );
    drain.apply_eviction_answer(eviction.id, budget_refusal(), over);
    assert_eq!(drain.current_progress().blocked.len(), 1);
}

#[test]
fn a_deployment_that_cannot_be_read_is_read_again_until_the_timeout() {
    let mut drain = drain_of(0, &[pod("web")]);
    let why = "503".to_owned();
    let step = looked_up(&mut drain, DeploymentLookup::Failed { why }, at(1.0));
    assert_eq!((step.restarts.len(), tried(&step).len()), (0, 0));
    assert_eq!(rollout(&drain), "its Deployment cannot be read: 503");
    let again = step.wake.unwrap();
    assert_eq!(again.why, "a Deployment is read again");
    let again = at(again.at.as_secs_f64());
    assert_eq!(
        looked_up(&mut drain, found(deployment()), again)
            .restarts
            .len(),
        1
    );
}

#[test]
fn a_deployment_is_restarted_when_the_lower_orders_are_gone_and_read_before() {
    let mut drain = drain_of(5, &[pod("web"), pod("first")]);
    let step = looked_up(&mut drain, found(deployment()), at(1.0));
    assert_eq!(step.restarts, []);
    assert_eq!(rollout(&drain), "");
    drain.apply_pod_deletion(&pod("first").pod);
    assert_eq!(drain.next_step(at(2.0)).restarts.len(), 1);
}

#[test]
fn past_the_deadline_a_pod_is_deleted_and_no_deployment_is_restarted() {
    let mut drain = drain_of(0, &[pod("web")]);
    assert_eq!(drain.next_step(at(1.0)).look_up_deployments, [set()]);
    drain.delete_remaining_pods();
    drain.apply_deployment_lookup(&set(), found(deployment()), at(2.0));
    let step = drain.next_step(at(2.0));
    assert_eq!((step.restarts.len(), tried(&step)), (0, vec!["web"]));
}

#[test]
fn a_pod_that_serves_nobody_is_evicted_at_once() {
    for phase in [PodPhase::Pending, PodPhase::Finished] {
        let seen = ObservedPod {
            phase,
            ..pod("web")
        };
        let mut drain = drain_of(0, &[seen]);
        let step = drain.next_step(at(1.0));
        assert_eq!(step.look_up_deployments, []);
        assert_eq!(tried(&step), ["web"]);
    }
}

#[test]
fn each_pod_that_goes_without_its_rollout_is_named_and_no_other_pod() {
    let second = ObservedPod {
        labels: pod("web").labels,
        ..pod("web-2")
    };
    let mut drain = drain_of(0, &[pod("web"), second, pod("other")]);
    assert_eq!(tried(&drain.next_step(at(1.0))), ["other"]);
    assert_eq!(drain.current_progress().unrolled, []);
    let over = drain.next_step(at(600.0));
    assert_eq!(tried(&over), ["web", "web-2"]);
    let unrolled = drain.current_progress().unrolled;
    let names: Vec<_> = unrolled.iter().map(|it| it.pod.name.as_str()).collect();
    assert_eq!(names, ["web", "web-2"]);
}

#[test]
fn past_the_deadline_no_pod_is_said_to_go_without_its_rollout() {
    let mut drain = drain_of(0, &[pod("web")]);
    assert_eq!(tried(&drain.next_step(at(1.0))), [""; 0]);
    drain.delete_remaining_pods();
    assert_eq!(tried(&drain.next_step(at(2.0))), ["web"]);
    assert_eq!(drain.current_progress().unrolled, []);
}

#[test]
fn a_deployment_without_surge_is_not_restarted_and_any_surge_is_at_least_one_pod() {
    let none = ReplicaShare::Count(0);
    for (max_surge, replicas, restarts) in [
        (ReplicaShare::Count(0), 4, 0),
        (ReplicaShare::Percent(0), 1, 0),
        (ReplicaShare::Percent(0), 400, 0),
        (ReplicaShare::Percent(1), 1, 1),
        (ReplicaShare::Percent(25), 400, 1),
        (ReplicaShare::Count(1), 4, 1),
    ] {
        let mut drain = drain_of(0, &[pod("web")]);
        let seen = ObservedDeployment {
            replicas,
            strategy: share(max_surge, none),
            ..deployment()
        };
        let step = looked_up(&mut drain, found(seen), at(1.0));
        assert_eq!(step.restarts.len(), restarts, "{max_surge:?} of {replicas}");
    }
}
