use std::time::Duration;

use super::*;

const STAMP: &str = "2026-01-01T00:00:00Z";

fn object(kind: Kind) -> ObjectSeen {
    ObjectSeen {
        kind,
        name: "thing/web".into(),
        uid: "u".into(),
        deleting: false,
        generation: 2,
        observed: Some(2),
        template: true,
        stamp: Some(STAMP.into()),
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

fn counts(total: u32, updated: u32, available: u32) -> Counts {
    Counts {
        total,
        updated,
        ready: available,
        available,
    }
}

fn pod(name: &str, stamp: Option<&str>, ready: bool) -> PodSeen {
    PodSeen {
        name: name.into(),
        stamp: stamp.map(str::to_owned),
        ready,
        leaving: false,
        trouble: None,
    }
}

fn new_pods(ready: usize) -> Vec<PodSeen> {
    let name = |index: usize| format!("p{index}");
    (0..3)
        .map(|index| pod(&name(index), Some(STAMP), index < ready))
        .collect()
}

fn seen(object: ObjectSeen) -> Seen {
    Seen {
        object: Some(object),
        uid: "u".into(),
        pods: new_pods(3),
        warning: None,
    }
}

const EARLY: Clock = Clock {
    waited: Duration::from_secs(1),
    limit: Duration::from_mins(10),
};
const LATE: Clock = Clock {
    waited: Duration::from_mins(10),
    limit: Duration::from_mins(10),
};

fn judged(seen: &Seen) -> (State, &'static str) {
    let verdict = decide(seen, EARLY);
    (verdict.state, verdict.because.reason)
}

fn with(kind: Kind, change: impl FnOnce(&mut ObjectSeen)) -> Seen {
    let mut object = object(kind);
    change(&mut object);
    seen(object)
}

type ObjectChange = fn(&mut ObjectSeen);

#[test]
fn the_counts_of_the_generation_before_never_finish_a_restart() {
    for kind in [
        Kind::Deployment,
        Kind::StatefulSet,
        Kind::DaemonSet,
        Kind::Other,
    ] {
        let stale = with(kind, |object| object.observed = Some(1));
        assert_eq!(
            judged(&stale),
            (State::Going, reason::NOT_OBSERVED),
            "{kind:?}"
        );
        assert_eq!(
            judged(&with(kind, |_| ())),
            (State::Done, reason::RESTARTED),
            "{kind:?}"
        );
    }
}

#[test]
fn each_kind_is_waited_for_as_its_controller_counts() {
    use Kind::{DaemonSet, Deployment, StatefulSet};
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
        assert_eq!(judged(&seen), (State::Going, wanted), "{kind:?} {counts:?}");
    }
    let two = with(StatefulSet, |object| object.one_revision = false);
    assert_eq!(judged(&two), (State::Going, reason::NOT_READY));
}

#[test]
fn a_kind_without_counts_is_judged_by_its_pods() {
    let mut other = with(Kind::Other, |object| {
        object.observed = None;
        object.counts = Counts::default();
    });
    assert_eq!(judged(&other), (State::Done, reason::RESTARTED));
    other.pods = new_pods(2);
    assert_eq!(judged(&other), (State::Going, reason::NOT_READY));
    other.pods = new_pods(3);
    other.pods.push(pod("old", None, true));
    assert_eq!(judged(&other), (State::Going, reason::OLD_PODS_LEFT));
    other.pods[3].leaving = true;
    assert_eq!(judged(&other).0, State::Done);
    other.pods.clear();
    assert_eq!(judged(&other), (State::Going, reason::UPDATING));
}

#[test]
fn a_partition_keeps_its_pods_and_no_pods_is_done() {
    let parted = with(Kind::StatefulSet, |object| {
        object.partition = 2;
        object.one_revision = false;
        object.counts.updated = 1;
    });
    assert_eq!(judged(&parted), (State::Done, reason::PARTITION_RESTARTED));
    for kind in [Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet] {
        let mut none = with(kind, |object| {
            object.wanted = Some(0);
            object.counts = Counts::default();
        });
        none.pods.clear();
        assert_eq!(
            judged(&none),
            (State::Done, reason::NO_PODS_WANTED),
            "{kind:?}"
        );
    }
}

#[test]
fn what_does_not_get_there_says_the_last_reason() {
    let mut stuck = with(Kind::Deployment, |object| object.counts = counts(4, 1, 3));
    stuck.pods = new_pods(0);
    stuck.pods[0].trouble = Some("ImagePullBackOff: no such image".into());
    let verdict = decide(&stuck, LATE);
    assert_eq!(
        (verdict.state, verdict.because.reason),
        (State::Failed, reason::TIMED_OUT)
    );
    assert_eq!(
        verdict.because.message,
        "not there after 10m: 1 of 3 updated, 0 ready; pod p0: ImagePullBackOff: no such image"
    );

    stuck.object.as_mut().unwrap().conditions = vec![ConditionSeen {
        kind: "Progressing".into(),
        is_true: false,
        reason: "ProgressDeadlineExceeded".into(),
        message: "x".into(),
    }];
    assert_eq!(
        judged(&stuck),
        (State::Failed, reason::PROGRESS_DEADLINE_EXCEEDED)
    );

    stuck.pods.clear();
    let quota = ConditionSeen {
        kind: "ReplicaFailure".into(),
        is_true: true,
        reason: "FailedCreate".into(),
        message: "exceeded quota".into(),
    };
    stuck.object.as_mut().unwrap().conditions = vec![quota];
    let said = decide(&stuck, EARLY).because.message;
    assert!(said.ends_with("FailedCreate: exceeded quota"), "{said}");

    let mut set = with(Kind::StatefulSet, |object| object.counts = counts(2, 0, 2));
    set.pods.clear();
    set.warning = Some("FailedCreate: exceeded quota: pods".into());
    let said = decide(&set, EARLY).because.message;
    assert!(said.ends_with("exceeded quota: pods"), "{said}");
}

#[test]
fn what_others_do_to_it_meanwhile_ends_the_wait() {
    let gone = Seen {
        object: None,
        ..seen(object(Kind::Deployment))
    };
    assert_eq!(judged(&gone), (State::Failed, reason::GONE));
    let table: [(ObjectChange, &str); 4] = [
        (|object| object.uid = "another".into(), reason::GONE),
        (|object| object.deleting = true, reason::GONE),
        (|object| object.stamp = None, reason::UNDONE),
        (|object| object.paused = true, reason::PAUSED),
    ];
    for (change, wanted) in table {
        assert_eq!(
            judged(&with(Kind::Deployment, change)),
            (State::Failed, wanted)
        );
    }
}

#[test]
fn what_would_not_roll_is_refused_with_what_to_do_instead() {
    let owner = || {
        Some(Owner {
            kind: "Deployment".into(),
            name: "web".into(),
        })
    };
    let table: [(Kind, ObjectChange, &str); 9] = [
        (Kind::Deployment, |object| object.paused = true, "resume"),
        (
            Kind::StatefulSet,
            |object| object.on_delete = true,
            "OnDelete",
        ),
        (
            Kind::DaemonSet,
            |object| object.on_delete = true,
            "one by one",
        ),
        (
            Kind::Other,
            |object| object.template = false,
            "no pod template",
        ),
        (Kind::Job, |_| (), "cannot change"),
        (Kind::CronJob, |_| (), "create job --from"),
        (Kind::Pod, |_| (), "nothing controls"),
        (Kind::ReplicaSet, |_| (), "never replaces"),
        (
            Kind::Deployment,
            |object| object.deleting = true,
            "being deleted",
        ),
    ];
    for (kind, change, says) in table {
        let mut object = object(kind);
        assert_eq!(
            refuse(&object).is_none(),
            matches!(
                kind,
                Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet | Kind::Other
            )
        );
        change(&mut object);
        let refusal = refuse(&object).unwrap();
        let said = format!("{} → {}", refusal.what, refusal.next);
        assert!(said.contains(says), "{said}");
    }
    for kind in [Kind::Pod, Kind::ReplicaSet] {
        let mut owned = object(kind);
        owned.owner = owner();
        let refusal = refuse(&owned).unwrap();
        assert_eq!(refusal.next, "restart its owner: deployment/web");
    }
}
