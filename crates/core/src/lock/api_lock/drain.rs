//! The drain of a host's Node while its client waits. Source: specification §2.3, §2.7.

use std::time::Duration;

use crate::drain::DrainProgress;
use crate::reboot::{
    DrainTimeoutAction, RebootConfig, describe_dropped_pods, describe_remaining_drain,
};

/// A drain under way. Times are monotonic.
#[derive(Debug, Clone)]
pub struct ApiDrainSnapshot<'a> {
    pub progress: &'a DrainProgress,
    pub since: Duration,
    /// The waits for pods that may end by themselves: the timeout begins after them.
    pub drain_wait: Duration,
    pub drained_since: Option<Duration>,
    /// Whether the remaining pods are being deleted.
    pub deleting: bool,
    /// Volumes of the drained pods that are still attached; `None`: not read yet.
    pub volumes: Option<&'a [String]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiDrainStep {
    /// Wait for a change, or until this moment.
    Wait { until: Duration },
    /// From now on the remaining pods are deleted with their grace period.
    DeleteRest { why: String },
    /// Watch the volumes of the drained pods' claims, until this moment.
    Detach { until: Duration },
    /// The drain is over; the client may be told.
    Done { note: Option<String> },
    /// The drain failed: everything is undone.
    Failed { why: String },
}

/// Decides the next step of a drain, by the same rules as a coordinator: the policy's deadline and
/// its `onTimeout`.
pub fn decide_drain(
    seen: &ApiDrainSnapshot<'_>,
    config: &RebootConfig,
    now: Duration,
) -> ApiDrainStep {
    let progress = seen.progress;
    if progress.is_incomplete() && progress.deleting == seen.deleting {
        let why = format!(
            "the drain is incomplete: {}",
            describe_dropped_pods(progress)
        );
        return step_after_timeout(seen, config, why);
    }
    if progress.is_drained() {
        return wait_for_detach(seen, config, now);
    }
    let timeout = config.drain_timeout;
    let allowed = if seen.deleting {
        timeout.saturating_mul(2)
    } else {
        timeout
    };
    let until = seen
        .since
        .saturating_add(seen.drain_wait)
        .saturating_add(allowed);
    if now < until {
        return ApiDrainStep::Wait { until };
    }
    let timeout = crate::duration::format_duration(timeout);
    step_after_timeout(
        seen,
        config,
        format!(
            "not drained within {timeout}: {}",
            describe_remaining_drain(progress)
        ),
    )
}

fn step_after_timeout(
    seen: &ApiDrainSnapshot<'_>,
    config: &RebootConfig,
    why: String,
) -> ApiDrainStep {
    match config.on_drain_timeout {
        DrainTimeoutAction::Delete if !seen.deleting => ApiDrainStep::DeleteRest { why },
        DrainTimeoutAction::Abort | DrainTimeoutAction::Delete => ApiDrainStep::Failed { why },
        DrainTimeoutAction::Force => ApiDrainStep::Done {
            note: Some(format!(
                "{why}; the drain is treated as done, as the policy says"
            )),
        },
    }
}

fn wait_for_detach(
    seen: &ApiDrainSnapshot<'_>,
    config: &RebootConfig,
    now: Duration,
) -> ApiDrainStep {
    if seen.progress.claims.is_empty() || seen.volumes.is_some_and(<[String]>::is_empty) {
        return ApiDrainStep::Done { note: None };
    }
    let until = seen
        .drained_since
        .unwrap_or(now)
        .saturating_add(config.volume_detach_timeout);
    if now < until {
        return ApiDrainStep::Detach { until };
    }
    let names = seen
        .volumes
        .map_or_else(|| "unknown".into(), |left| left.join(", "));
    ApiDrainStep::Done {
        note: Some(format!("volumes still attached: {names}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::{DroppedPod, PodIdentity};

    fn pod() -> PodIdentity {
        PodIdentity {
            namespace: "d".into(),
            name: "web".into(),
            uid: "u".into(),
        }
    }

    fn under_way() -> DrainProgress {
        DrainProgress {
            listed: true,
            waiting: vec![pod()],
            ..DrainProgress::default()
        }
    }

    fn decided(
        progress: &DrainProgress,
        deleting: bool,
        second: u64,
        then: DrainTimeoutAction,
    ) -> ApiDrainStep {
        let config = RebootConfig {
            drain_timeout: Duration::from_secs(100),
            on_drain_timeout: then,
            ..RebootConfig::default()
        };
        let seen = ApiDrainSnapshot {
            progress,
            since: Duration::ZERO,
            drain_wait: Duration::ZERO,
            drained_since: Some(Duration::ZERO),
            deleting,
            volumes: None,
        };
        decide_drain(&seen, &config, Duration::from_secs(second))
    }

    fn word(step: &ApiDrainStep) -> &'static str {
        match step {
            ApiDrainStep::Wait { .. } => "wait",
            ApiDrainStep::DeleteRest { .. } => "delete",
            ApiDrainStep::Detach { .. } => "detach",
            ApiDrainStep::Done { .. } => "done",
            ApiDrainStep::Failed { .. } => "failed",
        }
    }

    #[test]
    fn the_deadline_and_what_then_are_the_policys() {
        let progress = under_way();
        let deleting = DrainProgress {
            deleting: true,
            ..under_way()
        };
        let table = [
            (&progress, false, 99, DrainTimeoutAction::Abort, "wait"),
            (&progress, false, 100, DrainTimeoutAction::Abort, "failed"),
            (&progress, false, 100, DrainTimeoutAction::Delete, "delete"),
            (&deleting, true, 199, DrainTimeoutAction::Delete, "wait"),
            (&deleting, true, 200, DrainTimeoutAction::Delete, "failed"),
            (&progress, false, 100, DrainTimeoutAction::Force, "done"),
        ];
        for (progress, deleting, second, then, expected) in table {
            let step = decided(progress, deleting, second, then);
            assert_eq!(word(&step), expected, "{step:?}");
        }
    }

    #[test]
    fn a_pod_that_cannot_be_evicted_for_good_ends_it_at_once() {
        let dropped = vec![DroppedPod {
            pod: pod(),
            answer: "403 no".into(),
        }];
        let incomplete = DrainProgress {
            dropped,
            waiting: Vec::new(),
            ..under_way()
        };
        let ApiDrainStep::Failed { why } =
            decided(&incomplete, false, 1, DrainTimeoutAction::Abort)
        else {
            panic!("it is not drained")
        };
        assert!(why.contains("403 no"), "{why}");
        assert_eq!(
            word(&decided(&incomplete, false, 1, DrainTimeoutAction::Delete)),
            "delete"
        );
        assert_eq!(
            word(&decided(&incomplete, true, 1, DrainTimeoutAction::Delete)),
            "done",
            "old news"
        );
    }

    #[test]
    fn volumes_are_waited_for_but_not_for_ever() {
        let drained = DrainProgress {
            waiting: Vec::new(),
            claims: vec!["d/data".into()],
            ..under_way()
        };
        let detach = RebootConfig::default().volume_detach_timeout.as_secs();
        assert_eq!(
            word(&decided(
                &drained,
                false,
                detach - 1,
                DrainTimeoutAction::Abort
            )),
            "detach"
        );
        let ApiDrainStep::Done { note } =
            decided(&drained, false, detach, DrainTimeoutAction::Abort)
        else {
            panic!("its time is over")
        };
        assert!(note.is_some());
        let nothing = DrainProgress {
            claims: Vec::new(),
            ..drained
        };
        assert_eq!(
            decided(&nothing, false, 0, DrainTimeoutAction::Abort),
            ApiDrainStep::Done { note: None }
        );
    }
}
