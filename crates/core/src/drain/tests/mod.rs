//! The promises of the drain, by name.

mod answers;
mod fates;
mod machine_rules;
mod model;
mod races;
mod roll_first;
mod rules;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{
    BudgetNumbers, ControllerRef, DrainConfig, EvictionAnswer, EvictionAttempt, EvictionStep,
    LabelSelector, NodeDrain, ObservedDisruptionBudget, ObservedPod, PodIdentity, PodMarks,
    PodPhase,
};
use crate::Now;

fn at(seconds: f64) -> Now {
    let mono = Duration::from_secs_f64(seconds);
    Now {
        wall: Timestamp::UNIX_EPOCH.checked_add(mono).unwrap(),
        mono,
    }
}

fn pod_ref(name: &str, uid: &str) -> PodIdentity {
    PodIdentity {
        namespace: "shop".into(),
        name: name.into(),
        uid: uid.into(),
    }
}

/// A running pod of a ReplicaSet, labelled `app=NAME`, uid `u-NAME`.
fn pod(name: &str) -> ObservedPod {
    ObservedPod {
        pod: pod_ref(name, &format!("u-{name}")),
        phase: PodPhase::Running,
        deleting: false,
        mirror: false,
        controller: Some(owner("ReplicaSet", "web")),
        labels: BTreeMap::from([("app".into(), name.into())]),
        tolerates_cordon: false,
        unscheduled: false,
        claims: Vec::new(),
        marks: PodMarks::default(),
    }
}

fn of_daemonset(name: &str, set: &str) -> ObservedPod {
    ObservedPod {
        controller: Some(owner("DaemonSet", set)),
        tolerates_cordon: true,
        ..pod(name)
    }
}

fn owner(kind: &str, name: &str) -> ControllerRef {
    ControllerRef {
        api_version: "apps/v1".into(),
        kind: kind.into(),
        name: name.into(),
        uid: format!("u-{kind}-{name}"),
    }
}

fn listed(pods: &[ObservedPod]) -> NodeDrain {
    limited(pods, 32)
}

fn limited(pods: &[ObservedPod], in_flight: usize) -> NodeDrain {
    started(
        DrainConfig {
            in_flight,
            ..DrainConfig::default()
        },
        Vec::new(),
        pods,
    )
}

/// Takes the list of budgets, then the pods.
fn started(
    config: DrainConfig,
    budgets: Vec<ObservedDisruptionBudget>,
    pods: &[ObservedPod],
) -> NodeDrain {
    let mut drain = NodeDrain::new(config);
    assert_eq!(
        drain.next_step(at(0.0)),
        EvictionStep {
            list_budgets: true,
            ..EvictionStep::default()
        }
    );
    drain.apply_budget_list(Ok(budgets), at(0.0));
    drain.apply_pod_list(pods.to_vec());
    drain
}

fn tried(step: &EvictionStep) -> Vec<&str> {
    step.tries.iter().map(|one| one.pod.name.as_str()).collect()
}

/// Takes the next step and expects exactly one call, for this pod.
fn only_try(drain: &mut NodeDrain, name: &str, now: Now) -> EvictionAttempt {
    let mut step = drain.next_step(now);
    assert_eq!(tried(&step), [name]);
    step.tries.remove(0)
}

fn waiting(drain: &NodeDrain) -> Vec<String> {
    drain
        .current_progress()
        .waiting
        .into_iter()
        .map(|pod| pod.name)
        .collect()
}

fn budget_refusal() -> EvictionAnswer {
    EvictionAnswer::Budget {
        message: "The disruption budget web needs 2 healthy pods".into(),
    }
}

/// A budget over `app=NAME`.
fn budget(name: &str, allowed: i32) -> ObservedDisruptionBudget {
    let labels = BTreeMap::from([("app".to_owned(), name.to_owned())]);
    ObservedDisruptionBudget {
        numbers: BudgetNumbers {
            namespace: "shop".into(),
            name: name.into(),
            disruptions_allowed: allowed,
            current_healthy: 2 + allowed,
            desired_healthy: 2,
            expected_pods: 3,
        },
        selector: Some(LabelSelector {
            match_labels: labels,
            ..LabelSelector::default()
        }),
        generation: 1,
    }
}
