//! Decides whether a rollout restart is complete.

use super::types::{
    ObservedRolloutPod, ObservedWorkload, RestartTargetKind, RolloutClock, RolloutProgress,
    RolloutSnapshot, RolloutState, RolloutVerdict, reason,
};
use crate::DecisionCause;

/// The state of the restart, from the status that the workload's controller reports for the current
/// generation (by the rules of `kubectl rollout status`), or, for a kind without such a status,
/// from its pods.
pub fn decide(seen: &RolloutSnapshot, clock: RolloutClock) -> RolloutVerdict {
    let Some(object) = seen.object.as_ref().filter(|one| one.uid == seen.uid) else {
        return failed_verdict(
            RolloutProgress::default(),
            reason::GONE,
            "it was deleted in the meantime".into(),
        );
    };
    let progress = measure_progress(object, &seen.pods);
    if let Some(verdict) = decide_given_up(object, progress) {
        return verdict;
    }
    match find_missing_step(object, seen, progress) {
        None => finished_verdict(object, progress),
        Some(step) if is_progress_deadline_exceeded(object) => failed_verdict(
            progress,
            reason::PROGRESS_DEADLINE_EXCEEDED,
            format!("it made no progress for its progressDeadlineSeconds: {step}"),
        ),
        Some(step) if clock.waited >= clock.limit => failed_verdict(
            progress,
            reason::TIMED_OUT,
            format!(
                "incomplete after {}: {step}",
                crate::duration::format_duration(clock.limit)
            ),
        ),
        Some(step) => RolloutVerdict {
            state: RolloutState::Going,
            progress,
            because: DecisionCause::new(step.reason, step.message),
        },
    }
}

/// Fails the restart when further waiting cannot help.
fn decide_given_up(object: &ObservedWorkload, progress: RolloutProgress) -> Option<RolloutVerdict> {
    if object.deleting {
        let message = "somebody is deleting it".to_owned();
        return Some(failed_verdict(progress, reason::GONE, message));
    }
    if object.restarted_at.is_none() {
        let who = match &object.owner {
            Some(owner) => format!("its owner {} {}", owner.kind, owner.name),
            None => "the tool that applies it (for example a GitOps tool)".to_owned(),
        };
        let message =
            format!("the restart was removed from its pod template: {who} must restart it instead");
        return Some(failed_verdict(progress, reason::UNDONE, message));
    }
    let message = || "it was paused in the meantime".to_owned();
    object
        .paused
        .then(|| failed_verdict(progress, reason::PAUSED, message()))
}

/// The first step that is not complete yet.
struct RolloutStep {
    reason: &'static str,
    message: String,
}

impl std::fmt::Display for RolloutStep {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

fn find_missing_step(
    object: &ObservedWorkload,
    seen: &RolloutSnapshot,
    progress: RolloutProgress,
) -> Option<RolloutStep> {
    let step = match object.kind {
        RestartTargetKind::Other => missing_by_pods(object, &seen.pods, progress),
        // The other kinds are refused before: see `find_refusal`.
        RestartTargetKind::Deployment
        | RestartTargetKind::StatefulSet
        | RestartTargetKind::DaemonSet
        | RestartTargetKind::ReplicaSet
        | RestartTargetKind::ReplicationController
        | RestartTargetKind::Job
        | RestartTargetKind::CronJob
        | RestartTargetKind::Pod => missing_by_status(object, progress),
    }?;
    let message = match describe_problem(object, seen) {
        Some(trouble) => format!("{progress}; {trouble}"),
        None => format!("{progress}; {}", describe_step(step)),
    };
    Some(RolloutStep {
        reason: step,
        message,
    })
}

fn missing_by_status(object: &ObservedWorkload, progress: RolloutProgress) -> Option<&'static str> {
    if object.observed.unwrap_or(0) < object.generation {
        return Some(reason::NOT_OBSERVED);
    }
    let counts = object.counts;
    if progress.wanted > 0 && counts.updated < progress.wanted {
        return Some(reason::UPDATING);
    }
    let whole = object.wanted.unwrap_or(1);
    match object.kind {
        RestartTargetKind::Deployment if counts.total > counts.updated => {
            Some(reason::OLD_PODS_LEFT)
        }
        RestartTargetKind::Deployment | RestartTargetKind::DaemonSet => {
            let wanted = if object.kind == RestartTargetKind::Deployment {
                counts.updated
            } else {
                whole
            };
            (counts.available < wanted).then_some(reason::NOT_READY)
        }
        RestartTargetKind::StatefulSet
        | RestartTargetKind::ReplicaSet
        | RestartTargetKind::ReplicationController
        | RestartTargetKind::Job
        | RestartTargetKind::CronJob
        | RestartTargetKind::Pod
        | RestartTargetKind::Other => {
            let ready = counts.ready >= whole && (object.partition > 0 || object.one_revision);
            (!ready && whole > 0).then_some(reason::NOT_READY)
        }
    }
}

/// For a kind of which only the template and the pods are known.
fn missing_by_pods(
    object: &ObservedWorkload,
    pods: &[ObservedRolloutPod],
    progress: RolloutProgress,
) -> Option<&'static str> {
    if object
        .observed
        .is_some_and(|observed| observed < object.generation)
    {
        return Some(reason::NOT_OBSERVED);
    }
    if progress.updated < progress.wanted {
        return Some(reason::UPDATING);
    }
    let old = |pod: &ObservedRolloutPod| !pod.leaving && pod.restarted_at != object.restarted_at;
    if pods.iter().any(old) {
        return Some(reason::OLD_PODS_LEFT);
    }
    (progress.ready < progress.wanted.max(progress.updated)).then_some(reason::NOT_READY)
}

fn measure_progress(object: &ObservedWorkload, pods: &[ObservedRolloutPod]) -> RolloutProgress {
    let new = || {
        let ours =
            |pod: &&ObservedRolloutPod| !pod.leaving && pod.restarted_at == object.restarted_at;
        pods.iter().filter(ours)
    };
    let count = |pods: usize| u32::try_from(pods).unwrap_or(u32::MAX);
    let observed = object.observed.unwrap_or(0) >= object.generation;
    let updated = match object.kind {
        RestartTargetKind::Other => count(new().count()),
        RestartTargetKind::Deployment
        | RestartTargetKind::StatefulSet
        | RestartTargetKind::DaemonSet
        | RestartTargetKind::ReplicaSet
        | RestartTargetKind::ReplicationController
        | RestartTargetKind::Job
        | RestartTargetKind::CronJob
        | RestartTargetKind::Pod => {
            // A count of an earlier generation does not count new pods.
            if observed { object.counts.updated } else { 0 }
        }
    };
    RolloutProgress {
        wanted: object.wanted.unwrap_or(1).saturating_sub(object.partition),
        updated,
        ready: count(new().filter(|pod| pod.ready).count()),
    }
}

fn finished_verdict(object: &ObservedWorkload, progress: RolloutProgress) -> RolloutVerdict {
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
    RolloutVerdict {
        state: RolloutState::Done,
        progress,
        because: DecisionCause::new(reason, message),
    }
}

fn failed_verdict(
    progress: RolloutProgress,
    reason: &'static str,
    message: String,
) -> RolloutVerdict {
    RolloutVerdict {
        state: RolloutState::Failed,
        progress,
        because: DecisionCause::new(reason, message),
    }
}

fn is_progress_deadline_exceeded(object: &ObservedWorkload) -> bool {
    let observed = object.observed.unwrap_or(0) >= object.generation;
    let late = object.conditions.iter().any(|condition| {
        condition.kind == "Progressing" && condition.reason == "ProgressDeadlineExceeded"
    });
    object.kind == RestartTargetKind::Deployment && observed && late
}

/// The most telling problem: that of a new pod, else what keeps pods from being created.
fn describe_problem(object: &ObservedWorkload, seen: &RolloutSnapshot) -> Option<String> {
    let new = |pod: &&ObservedRolloutPod| !pod.leaving && pod.restarted_at == object.restarted_at;
    let pod = seen.pods.iter().filter(new).find_map(|pod| {
        let trouble = pod.problem.as_ref()?;
        Some(format!("pod {}: {trouble}", pod.name))
    });
    let not_made = || {
        let failure = |condition: &&super::WorkloadCondition| {
            condition.kind == "ReplicaFailure" && condition.is_true
        };
        let condition = object.conditions.iter().find(failure)?;
        Some(format!("{}: {}", condition.reason, condition.message))
    };
    pod.or_else(not_made).or_else(|| seen.warning.clone())
}

fn describe_step(step: &'static str) -> &'static str {
    match step {
        reason::NOT_OBSERVED => "its controller has not observed the change yet",
        reason::OLD_PODS_LEFT => "old pods are still there",
        reason::NOT_READY => "waiting for pods to be ready",
        _ => "waiting for new pods",
    }
}
