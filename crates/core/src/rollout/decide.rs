//! Whether a restart has got there.

use super::types::{Clock, Kind, ObjectSeen, PodSeen, Progress, Seen, State, Verdict, reason};
use crate::Because;

/// Where the restart stands, by what its controller says of the present generation (the rules are
/// those of `kubectl rollout status`), or, of a kind without such a status, by its pods.
pub fn decide(seen: &Seen, clock: Clock) -> Verdict {
    let Some(object) = seen.object.as_ref().filter(|one| one.uid == seen.uid) else {
        return failed(
            Progress::default(),
            reason::GONE,
            "it was deleted meanwhile".into(),
        );
    };
    let progress = progress(object, &seen.pods);
    if let Some(verdict) = given_up(object, progress) {
        return verdict;
    }
    match missing(object, seen, progress) {
        None => finished(object, progress),
        Some(step) if exceeded(object) => failed(
            progress,
            reason::PROGRESS_DEADLINE_EXCEEDED,
            format!("it made no progress for its progressDeadlineSeconds: {step}"),
        ),
        Some(step) if clock.waited >= clock.limit => failed(
            progress,
            reason::TIMED_OUT,
            format!(
                "not there after {}: {step}",
                crate::duration::format(clock.limit)
            ),
        ),
        Some(step) => Verdict {
            state: State::Going,
            progress,
            because: Because::new(step.reason, step.message),
        },
    }
}

/// Waiting would be in vain.
fn given_up(object: &ObjectSeen, progress: Progress) -> Option<Verdict> {
    if object.deleting {
        let message = "somebody deletes it".to_owned();
        return Some(failed(progress, reason::GONE, message));
    }
    if object.stamp.is_none() {
        let who = match &object.owner {
            Some(owner) => format!("its owner {} {}", owner.kind, owner.name),
            None => "whoever applies it (a GitOps tool, say)".to_owned(),
        };
        let message = format!(
            "the restart was taken back from its pod template: {who} has to restart it instead"
        );
        return Some(failed(progress, reason::UNDONE, message));
    }
    let message = || "it was paused meanwhile".to_owned();
    object
        .paused
        .then(|| failed(progress, reason::PAUSED, message()))
}

/// The step that is still to be waited for.
struct Step {
    reason: &'static str,
    message: String,
}

impl std::fmt::Display for Step {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

fn missing(object: &ObjectSeen, seen: &Seen, progress: Progress) -> Option<Step> {
    let step = match object.kind {
        Kind::Other => other(object, &seen.pods, progress),
        // The rest never gets here: see `refuse`.
        Kind::Deployment
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::ReplicaSet
        | Kind::ReplicationController
        | Kind::Job
        | Kind::CronJob
        | Kind::Pod => of_status(object, progress),
    }?;
    let message = match trouble(object, seen) {
        Some(trouble) => format!("{progress}; {trouble}"),
        None => format!("{progress}; {}", words(step)),
    };
    Some(Step {
        reason: step,
        message,
    })
}

fn of_status(object: &ObjectSeen, progress: Progress) -> Option<&'static str> {
    if object.observed.unwrap_or(0) < object.generation {
        return Some(reason::NOT_OBSERVED);
    }
    let counts = object.counts;
    if progress.wanted > 0 && counts.updated < progress.wanted {
        return Some(reason::UPDATING);
    }
    let whole = object.wanted.unwrap_or(1);
    match object.kind {
        Kind::Deployment if counts.total > counts.updated => Some(reason::OLD_PODS_LEFT),
        Kind::Deployment | Kind::DaemonSet => {
            let wanted = if object.kind == Kind::Deployment {
                counts.updated
            } else {
                whole
            };
            (counts.available < wanted).then_some(reason::NOT_READY)
        }
        Kind::StatefulSet
        | Kind::ReplicaSet
        | Kind::ReplicationController
        | Kind::Job
        | Kind::CronJob
        | Kind::Pod
        | Kind::Other => {
            let ready = counts.ready >= whole && (object.partition > 0 || object.one_revision);
            (!ready && whole > 0).then_some(reason::NOT_READY)
        }
    }
}

/// A kind of which nothing is known but its template and its pods.
fn other(object: &ObjectSeen, pods: &[PodSeen], progress: Progress) -> Option<&'static str> {
    if object
        .observed
        .is_some_and(|observed| observed < object.generation)
    {
        return Some(reason::NOT_OBSERVED);
    }
    if progress.updated < progress.wanted {
        return Some(reason::UPDATING);
    }
    let old = |pod: &PodSeen| !pod.leaving && pod.stamp != object.stamp;
    if pods.iter().any(old) {
        return Some(reason::OLD_PODS_LEFT);
    }
    (progress.ready < progress.wanted.max(progress.updated)).then_some(reason::NOT_READY)
}

fn progress(object: &ObjectSeen, pods: &[PodSeen]) -> Progress {
    let new = || {
        let ours = |pod: &&PodSeen| !pod.leaving && pod.stamp == object.stamp;
        pods.iter().filter(ours)
    };
    let count = |pods: usize| u32::try_from(pods).unwrap_or(u32::MAX);
    let observed = object.observed.unwrap_or(0) >= object.generation;
    let updated = match object.kind {
        Kind::Other => count(new().count()),
        Kind::Deployment
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::ReplicaSet
        | Kind::ReplicationController
        | Kind::Job
        | Kind::CronJob
        | Kind::Pod => {
            // A count of the generation before is no count of new pods.
            if observed { object.counts.updated } else { 0 }
        }
    };
    Progress {
        wanted: object.wanted.unwrap_or(1).saturating_sub(object.partition),
        updated,
        ready: count(new().filter(|pod| pod.ready).count()),
    }
}

fn finished(object: &ObjectSeen, progress: Progress) -> Verdict {
    let (reason, message) = match (progress.wanted, object.partition) {
        (0, 0) => (reason::NO_PODS_WANTED, "it wants no pods".to_owned()),
        (_, 0) => (
            reason::RESTARTED,
            format!("restarted: {} pods are ready", progress.wanted),
        ),
        (wanted, partition) => (
            reason::PARTITION_RESTARTED,
            format!(
                "restarted {wanted} pods; those below partition {partition} keep the old template"
            ),
        ),
    };
    Verdict {
        state: State::Done,
        progress,
        because: Because::new(reason, message),
    }
}

fn failed(progress: Progress, reason: &'static str, message: String) -> Verdict {
    Verdict {
        state: State::Failed,
        progress,
        because: Because::new(reason, message),
    }
}

fn exceeded(object: &ObjectSeen) -> bool {
    let observed = object.observed.unwrap_or(0) >= object.generation;
    let late = object.conditions.iter().any(|condition| {
        condition.kind == "Progressing" && condition.reason == "ProgressDeadlineExceeded"
    });
    object.kind == Kind::Deployment && observed && late
}

/// What is wrong, most telling first: a new pod, then what keeps pods from being made.
fn trouble(object: &ObjectSeen, seen: &Seen) -> Option<String> {
    let new = |pod: &&PodSeen| !pod.leaving && pod.stamp == object.stamp;
    let pod = seen.pods.iter().filter(new).find_map(|pod| {
        let trouble = pod.trouble.as_ref()?;
        Some(format!("pod {}: {trouble}", pod.name))
    });
    let not_made = || {
        let failure = |condition: &&super::ConditionSeen| {
            condition.kind == "ReplicaFailure" && condition.is_true
        };
        let condition = object.conditions.iter().find(failure)?;
        Some(format!("{}: {}", condition.reason, condition.message))
    };
    pod.or_else(not_made).or_else(|| seen.warning.clone())
}

fn words(step: &'static str) -> &'static str {
    match step {
        reason::NOT_OBSERVED => "its controller has not taken up the change yet",
        reason::OLD_PODS_LEFT => "old pods are still there",
        reason::NOT_READY => "waiting for pods to be ready",
        _ => "waiting for new pods",
    }
}
