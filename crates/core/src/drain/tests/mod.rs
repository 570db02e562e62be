//! The promises of the drain, by name.

mod answers;
mod fates;
mod model;
mod races;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{
    Answer, BudgetNumbers, BudgetSeen, Drain, DrainConfig, LabelSelector, Owner, PodPhase, PodRef,
    PodSeen, Step, Try,
};
use crate::Now;

fn at(seconds: f64) -> Now {
    let mono = Duration::from_secs_f64(seconds);
    Now {
        wall: Timestamp::UNIX_EPOCH.checked_add(mono).unwrap(),
        mono,
    }
}

fn pod_ref(name: &str, uid: &str) -> PodRef {
    PodRef {
        namespace: "shop".into(),
        name: name.into(),
        uid: uid.into(),
    }
}

/// A running pod of a ReplicaSet, labelled `app=NAME`, uid `u-NAME`.
fn pod(name: &str) -> PodSeen {
    PodSeen {
        pod: pod_ref(name, &format!("u-{name}")),
        phase: PodPhase::Running,
        deleting: false,
        mirror: false,
        controller: Some(owner("ReplicaSet", "web")),
        labels: BTreeMap::from([("app".into(), name.into())]),
        tolerates_cordon: false,
        claims: Vec::new(),
    }
}

fn of_daemonset(name: &str, set: &str) -> PodSeen {
    PodSeen {
        controller: Some(owner("DaemonSet", set)),
        tolerates_cordon: true,
        ..pod(name)
    }
}

fn owner(kind: &str, name: &str) -> Owner {
    Owner {
        api_version: "apps/v1".into(),
        kind: kind.into(),
        name: name.into(),
        uid: format!("u-{kind}-{name}"),
    }
}

fn listed(pods: &[PodSeen]) -> Drain {
    limited(pods, 32)
}

fn limited(pods: &[PodSeen], in_flight: usize) -> Drain {
    started(
        DrainConfig {
            in_flight,
            ..DrainConfig::default()
        },
        Vec::new(),
        pods,
    )
}

/// The budgets are listed, then the pods.
fn started(config: DrainConfig, budgets: Vec<BudgetSeen>, pods: &[PodSeen]) -> Drain {
    let mut drain = Drain::new(config);
    assert_eq!(
        drain.next(at(0.0)),
        Step {
            list_budgets: true,
            ..Step::default()
        }
    );
    drain.budgets_listed(Ok(budgets), at(0.0));
    drain.relisted(pods.to_vec());
    drain
}

fn tried(step: &Step) -> Vec<&str> {
    step.tries.iter().map(|one| one.pod.name.as_str()).collect()
}

/// Asks what to do and expects exactly one call, for this pod.
fn only_try(drain: &mut Drain, name: &str, now: Now) -> Try {
    let mut step = drain.next(now);
    assert_eq!(tried(&step), [name]);
    step.tries.remove(0)
}

fn waiting(drain: &Drain) -> Vec<String> {
    drain
        .progress()
        .waiting
        .into_iter()
        .map(|pod| pod.name)
        .collect()
}

fn budget_refusal() -> Answer {
    Answer::Budget {
        message: "The disruption budget web needs 2 healthy pods".into(),
    }
}

/// A budget over `app=NAME`.
fn budget(name: &str, allowed: i32) -> BudgetSeen {
    let labels = BTreeMap::from([("app".to_owned(), name.to_owned())]);
    BudgetSeen {
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
