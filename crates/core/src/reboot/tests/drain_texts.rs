//! §2.5: which pods a drain names while it goes on.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::drain::{
    BlockedPod, DrainProgress, HeldPod, PlanReason, PodAction, PodDrainPlan, PodIdentity,
    RolloutOutlook, UnrolledPod, WaitLimit,
};

fn pod(name: &str) -> PodIdentity {
    PodIdentity {
        namespace: "shop".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
    }
}

fn held(name: &str, action: PodAction, rollout: Option<RolloutOutlook>) -> HeldPod {
    HeldPod {
        pod: pod(name),
        plan: PodDrainPlan {
            action,
            why: PlanReason::Rule(1),
            order: 0,
        },
        rollout,
    }
}

fn may_end(name: &str) -> HeldPod {
    held(
        name,
        PodAction::WaitCompleted(WaitLimit::DrainTimeout),
        None,
    )
}

fn rolled(name: &str) -> HeldPod {
    let deployment = "shop/web".to_owned();
    let rollout = RolloutOutlook::Restart { deployment };
    let action = PodAction::RollFirst(Duration::from_hours(1));
    held(name, action, Some(rollout))
}

fn unrolled(name: &str) -> UnrolledPod {
    UnrolledPod {
        pod: pod(name),
        why: "Deployment shop/api is paused".into(),
    }
}

/// Three pods are gone; these are left, and some of them are held or evicted unrolled.
fn left(names: &[&str], held: Vec<HeldPod>, unrolled: Vec<UnrolledPod>) -> DrainProgress {
    DrainProgress {
        listed: true,
        gone: 3,
        waiting: names.iter().map(|name| pod(name)).collect(),
        held,
        unrolled,
        ..DrainProgress::default()
    }
}

#[test]
fn a_drain_says_what_each_pod_that_it_leaves_alone_waits_for() {
    let table = [
        (
            left(&["job-0"], vec![may_end("job-0")], vec![]),
            "3 pods gone, 1 to go; shop/job-0 may end by itself (drain.rules[1])",
        ),
        (
            left(
                &["job-0", "job-1", "job-2"],
                vec![may_end("job-0"), may_end("job-1"), may_end("job-2")],
                vec![],
            ),
            "3 pods gone, 3 to go; shop/job-0 may end by itself (drain.rules[1]), and 2 more",
        ),
        (
            left(&["web-0"], vec![rolled("web-0")], vec![]),
            "3 pods gone, 1 to go; shop/web-0 goes after a rollout: Deployment shop/web is \
             restarted (drain.rules[1])",
        ),
        (
            left(
                &["api-0"],
                vec![],
                vec![unrolled("gone"), unrolled("api-0")],
            ),
            "3 pods gone, 1 to go; shop/api-0 is evicted before its replacement is ready: \
             Deployment shop/api is paused",
        ),
        (
            left(
                &["web-0"],
                vec![held("web-0", PodAction::Evict, None)],
                vec![],
            ),
            "3 pods gone, 1 to go",
        ),
    ];
    for (progress, expected) in table {
        assert_eq!(describe_remaining_drain(&progress), expected);
    }
}

#[test]
fn of_pods_that_one_budget_blocks_since_the_same_moment_the_first_keeps_the_event() {
    let blocked = |name: &str| BlockedPod {
        pod: pod(name),
        message: "would violate the budget".into(),
        refused: None,
        budgets: Vec::new(),
        since: Duration::from_secs(1),
    };
    let mut seen = seen(RebootPhase::Draining);
    let mut progress = left(&["a", "b"], vec![], vec![]);
    progress.blocked = vec![blocked("a"), blocked("b")];
    seen.drain = Some(ObservedDrain {
        progress,
        drained_since: None,
    });
    let events = decide(&seen, &config(), now(60)).report.events.into_iter();
    let blocked = events.filter(|event| event.reason == "DrainBlocked");
    let said: Vec<String> = blocked.map(|event| event.message).collect();
    assert_eq!(said, ["shop/a: would violate the budget"]);
}

#[test]
fn the_record_says_why_the_remaining_pods_are_deleted() {
    let mut seen = seen(RebootPhase::Draining);
    seen.drain = Some(one_pod_left());
    let config = RebootConfig {
        on_drain_timeout: DrainTimeoutAction::Delete,
        ..config()
    };
    let decision = decide(&seen, &config, now(3600));
    let expected = "not drained within 1h: 0 pods gone, 1 to go; deletes the remaining pods, as \
                    configured";
    assert_eq!(written(&decision).message, expected);
    assert_eq!(decision.cause.message, expected);
}
