use std::time::Duration;

use super::*;

const STAMP: &str = "2026-01-01T00:00:00Z";

fn object(kind: RestartTargetKind) -> ObservedWorkload {
    ObservedWorkload {
        kind,
        name: "thing/web".into(),
        uid: "u".into(),
        deleting: false,
        generation: 2,
        observed: Some(2),
        template: true,
        restarted_at: Some(STAMP.into()),
        paused: false,
        on_delete: false,
        partition: 0,
        wanted: Some(3),
        counts: counts(3, 3, 3),
        one_revision: true,
        conditions: Vec::new(),
        owner: None,
    }
}

fn counts(total: u32, updated: u32, available: u32) -> RolloutCounts {
    RolloutCounts {
        total,
        updated,
        ready: available,
        available,
    }
}

fn pod(name: &str, stamp: Option<&str>, ready: bool) -> ObservedRolloutPod {
    ObservedRolloutPod {
        name: name.into(),
        restarted_at: stamp.map(str::to_owned),
        ready,
        leaving: false,
        problem: None,
    }
}

fn new_pods(ready: usize) -> Vec<ObservedRolloutPod> {
    let name = |index: usize| format!("p{index}");
    (0..3)
        .map(|index| pod(&name(index), Some(STAMP), index < ready))
        .collect()
}

fn seen(object: ObservedWorkload) -> RolloutSnapshot {
    RolloutSnapshot {
        object: Some(object),
        uid: "u".into(),
        pods: new_pods(3),
        warning: None,
    }
}

const EARLY: RolloutClock = RolloutClock {
    waited: Duration::from_secs(1),
    limit: Duration::from_mins(10),
};
const LATE: RolloutClock = RolloutClock {
    waited: Duration::from_mins(10),
    limit: Duration::from_mins(10),
};

fn judged(seen: &RolloutSnapshot) -> (RolloutState, &'static str) {
    let verdict = decide(seen, EARLY);
    (verdict.state, verdict.because.reason)
}

fn with(kind: RestartTargetKind, change: impl FnOnce(&mut ObservedWorkload)) -> RolloutSnapshot {
    let mut object = object(kind);
    change(&mut object);
    seen(object)
}

type ObjectChange = fn(&mut ObservedWorkload);

#[test]
fn the_counts_of_the_generation_before_never_finish_a_restart() {
    for kind in [
        RestartTargetKind::Deployment,
        RestartTargetKind::StatefulSet,
        RestartTargetKind::DaemonSet,
        RestartTargetKind::Other,
    ] {
        let stale = with(kind, |object| object.observed = Some(1));
        assert_eq!(
            judged(&stale),
            (RolloutState::Going, reason::NOT_OBSERVED),
            "{kind:?}"
        );
        assert_eq!(
            judged(&with(kind, |_| ())),
            (RolloutState::Done, reason::RESTARTED),
            "{kind:?}"
        );
    }
}

#[test]
fn each_kind_is_waited_for_as_its_controller_counts() {
    use RestartTargetKind::{DaemonSet, Deployment, StatefulSet};
    let table = [
        (Deployment, counts(4, 2, 3), reason::UPDATING),
        (Deployment, counts(4, 3, 3), reason::OLD_PODS_LEFT),
        (Deployment, counts(3, 3, 2), reason::NOT_READY),
        (StatefulSet, counts(3, 1, 3), reason::UPDATING),
        (StatefulSet, counts(3, 3, 2), reason::NOT_READY),
        (DaemonSet, counts(3, 2, 3), reason::UPDATING),
        (DaemonSet, counts(3, 3, 2), reason::NOT_READY),
    ];
    for (kind, counts, wanted) in table {
        let seen = with(kind, |object| object.counts = counts);
        assert_eq!(
            judged(&seen),
            (RolloutState::Going, wanted),
            "{kind:?} {counts:?}"
        );
    }
    let two = with(StatefulSet, |object| object.one_revision = false);
    assert_eq!(judged(&two), (RolloutState::Going, reason::NOT_READY));
}

#[test]
fn a_kind_without_counts_is_judged_by_its_pods() {
    let mut other = with(RestartTargetKind::Other, |object| {
        object.observed = None;
        object.counts = RolloutCounts::default();
    });
    assert_eq!(judged(&other), (RolloutState::Done, reason::RESTARTED));
    other.pods = new_pods(2);
    assert_eq!(judged(&other), (RolloutState::Going, reason::NOT_READY));
    other.pods = new_pods(3);
    other.pods.push(pod("old", None, true));
    assert_eq!(judged(&other), (RolloutState::Going, reason::OLD_PODS_LEFT));
    other.pods[3].leaving = true;
    assert_eq!(judged(&other).0, RolloutState::Done);
    other.pods.clear();
    assert_eq!(judged(&other), (RolloutState::Going, reason::UPDATING));
}

#[test]
fn a_partition_keeps_its_pods_and_no_pods_is_done() {
    let parted = with(RestartTargetKind::StatefulSet, |object| {
        object.partition = 2;
        object.one_revision = false;
        object.counts.updated = 1;
    });
    assert_eq!(
        judged(&parted),
        (RolloutState::Done, reason::PARTITION_RESTARTED)
    );
    for kind in [
        RestartTargetKind::Deployment,
        RestartTargetKind::StatefulSet,
        RestartTargetKind::DaemonSet,
    ] {
        let mut none = with(kind, |object| {
            object.wanted = Some(0);
            object.counts = RolloutCounts::default();
        });
        none.pods.clear();
        assert_eq!(
            judged(&none),
            (RolloutState::Done, reason::NO_PODS_WANTED),
            "{kind:?}"
        );
    }
}

#[test]
fn what_does_not_get_there_says_the_last_reason() {
    let mut stuck = with(RestartTargetKind::Deployment, |object| {
        object.counts = counts(4, 1, 3);
    });
    stuck.pods = new_pods(0);
    stuck.pods[0].problem = Some("ImagePullBackOff: no such image".into());
    let verdict = decide(&stuck, LATE);
    assert_eq!(
        (verdict.state, verdict.because.reason),
        (RolloutState::Failed, reason::TIMED_OUT)
    );
    assert_eq!(
        verdict.because.message,
        "incomplete after 10m: 1 of 3 updated, 0 ready; pod p0: ImagePullBackOff: no such image"
    );

    stuck.object.as_mut().unwrap().conditions = vec![WorkloadCondition {
        kind: "Progressing".into(),
        is_true: false,
        reason: "ProgressDeadlineExceeded".into(),
        message: "x".into(),
    }];
    assert_eq!(
        judged(&stuck),
        (RolloutState::Failed, reason::PROGRESS_DEADLINE_EXCEEDED)
    );

    stuck.pods.clear();
    let quota = WorkloadCondition {
        kind: "ReplicaFailure".into(),
        is_true: true,
        reason: "FailedCreate".into(),
        message: "exceeded quota".into(),
    };
    stuck.object.as_mut().unwrap().conditions = vec![quota];
    let said = decide(&stuck, EARLY).because.message;
    assert!(said.ends_with("FailedCreate: exceeded quota"), "{said}");

    let mut set = with(RestartTargetKind::StatefulSet, |object| {
        object.counts = counts(2, 0, 2);
    });
    set.pods.clear();
    set.warning = Some("FailedCreate: exceeded quota: pods".into());
    let said = decide(&set, EARLY).because.message;
    assert!(said.ends_with("exceeded quota: pods"), "{said}");
}

#[test]
fn what_others_do_to_it_meanwhile_ends_the_wait() {
    let gone = RolloutSnapshot {
        object: None,
        ..seen(object(RestartTargetKind::Deployment))
    };
    assert_eq!(judged(&gone), (RolloutState::Failed, reason::GONE));
    let table: [(ObjectChange, &str); 4] = [
        (|object| object.uid = "another".into(), reason::GONE),
        (|object| object.deleting = true, reason::GONE),
        (|object| object.restarted_at = None, reason::UNDONE),
        (|object| object.paused = true, reason::PAUSED),
    ];
    for (change, wanted) in table {
        assert_eq!(
            judged(&with(RestartTargetKind::Deployment, change)),
            (RolloutState::Failed, wanted)
        );
    }
}

#[test]
fn what_would_not_roll_is_refused_with_what_to_do_instead() {
    let owner = || {
        Some(WorkloadOwner {
            kind: "Deployment".into(),
            name: "web".into(),
        })
    };
    let table: [(RestartTargetKind, ObjectChange, &str); 9] = [
        (
            RestartTargetKind::Deployment,
            |object| object.paused = true,
            "resume",
        ),
        (
            RestartTargetKind::StatefulSet,
            |object| object.on_delete = true,
            "OnDelete",
        ),
        (
            RestartTargetKind::DaemonSet,
            |object| object.on_delete = true,
            "one by one",
        ),
        (
            RestartTargetKind::Other,
            |object| object.template = false,
            "no pod template",
        ),
        (RestartTargetKind::Job, |_| (), "cannot change"),
        (RestartTargetKind::CronJob, |_| (), "create job --from"),
        (RestartTargetKind::Pod, |_| (), "without a controller"),
        (RestartTargetKind::ReplicaSet, |_| (), "never replaces"),
        (
            RestartTargetKind::Deployment,
            |object| object.deleting = true,
            "being deleted",
        ),
    ];
    for (kind, change, says) in table {
        let mut object = object(kind);
        assert_eq!(
            find_refusal(&object).is_none(),
            matches!(
                kind,
                RestartTargetKind::Deployment
                    | RestartTargetKind::StatefulSet
                    | RestartTargetKind::DaemonSet
                    | RestartTargetKind::Other
            )
        );
        change(&mut object);
        let refusal = find_refusal(&object).unwrap();
        let said = format!("{} → {}", refusal.what, refusal.next);
        assert!(said.contains(says), "{said}");
    }
    for kind in [RestartTargetKind::Pod, RestartTargetKind::ReplicaSet] {
        let mut owned = object(kind);
        owned.owner = owner();
        let refusal = find_refusal(&owned).unwrap();
        assert_eq!(refusal.next, "restart its owner: deployment/web");
    }
}
