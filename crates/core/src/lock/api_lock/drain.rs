//! The drain of a host's Node, as far as its client waits for it. Source: specification §2.3, §2.7.

use std::time::Duration;

use crate::drain::Progress;
use crate::reboot::{Config, OnTimeout, drain_dropped, drain_left};

/// A drain under way. Times are monotonic.
#[derive(Debug, Clone)]
pub struct Draining<'a> {
    /// Where it stands.
    pub progress: &'a Progress,
    /// Since when it is at it.
    pub since: Duration,
    /// Since when every pod is gone.
    pub drained_since: Option<Duration>,
    /// The rest is deleted by now.
    pub deleting: bool,
    /// The drained pods' volumes that are attached still; `None` until they were looked at.
    pub volumes: Option<&'a [String]>,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainStep {
    /// Waits for a change, or for this moment.
    Wait {
        /// When.
        until: Duration,
    },
    /// From now on the rest is deleted with its grace.
    DeleteRest {
        /// Why.
        why: String,
    },
    /// Looks at the volumes of these claims, until this moment.
    Detach {
        /// When.
        until: Duration,
    },
    /// It is over; the client may be told.
    Done {
        /// What is worth telling.
        note: Option<String>,
    },
    /// It failed: all is undone.
    Failed {
        /// Why.
        why: String,
    },
}

/// What follows from where a drain stands. The same rules as a coordinator's: the policy's deadline,
/// and what then.
pub fn drain(seen: &Draining<'_>, config: &Config, now: Duration) -> DrainStep {
    let progress = seen.progress;
    if progress.incomplete() && progress.deleting == seen.deleting {
        let why = format!("the drain is incomplete: {}", drain_dropped(progress));
        return past(seen, config, why);
    }
    if progress.drained() {
        return detach(seen, config, now);
    }
    let timeout = config.drain_timeout;
    let allowed = if seen.deleting {
        timeout.saturating_mul(2)
    } else {
        timeout
    };
    let until = seen.since.saturating_add(allowed);
    if now < until {
        return DrainStep::Wait { until };
    }
    let timeout = crate::duration::format(timeout);
    past(
        seen,
        config,
        format!("not drained within {timeout}: {}", drain_left(progress)),
    )
}

fn past(seen: &Draining<'_>, config: &Config, why: String) -> DrainStep {
    match config.on_drain_timeout {
        OnTimeout::Delete if !seen.deleting => DrainStep::DeleteRest { why },
        OnTimeout::Abort | OnTimeout::Delete => DrainStep::Failed { why },
        OnTimeout::Force => DrainStep::Done {
            note: Some(format!("{why}; goes on all the same, as the policy says")),
        },
    }
}

fn detach(seen: &Draining<'_>, config: &Config, now: Duration) -> DrainStep {
    if seen.progress.claims.is_empty() || seen.volumes.is_some_and(<[String]>::is_empty) {
        return DrainStep::Done { note: None };
    }
    let until = seen
        .drained_since
        .unwrap_or(now)
        .saturating_add(config.volume_detach_timeout);
    if now < until {
        return DrainStep::Detach { until };
    }
    let names = seen
        .volumes
        .map_or_else(|| "unknown".into(), |left| left.join(", "));
    DrainStep::Done {
        note: Some(format!("volumes still attached: {names}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::{Dropped, PodRef};

    fn pod() -> PodRef {
        PodRef {
            namespace: "d".into(),
            name: "web".into(),
            uid: "u".into(),
        }
    }

    fn under_way() -> Progress {
        Progress {
            listed: true,
            waiting: vec![pod()],
            ..Progress::default()
        }
    }

    fn decided(progress: &Progress, deleting: bool, second: u64, then: OnTimeout) -> DrainStep {
        let config = Config {
            drain_timeout: Duration::from_secs(100),
            on_drain_timeout: then,
            ..Config::default()
        };
        let seen = Draining {
            progress,
            since: Duration::ZERO,
            drained_since: Some(Duration::ZERO),
            deleting,
            volumes: None,
        };
        drain(&seen, &config, Duration::from_secs(second))
    }

    fn word(step: &DrainStep) -> &'static str {
        match step {
            DrainStep::Wait { .. } => "wait",
            DrainStep::DeleteRest { .. } => "delete",
            DrainStep::Detach { .. } => "detach",
            DrainStep::Done { .. } => "done",
            DrainStep::Failed { .. } => "failed",
        }
    }

    #[test]
    fn the_deadline_and_what_then_are_the_policys() {
        let progress = under_way();
        let deleting = Progress {
            deleting: true,
            ..under_way()
        };
        let table = [
            (&progress, false, 99, OnTimeout::Abort, "wait"),
            (&progress, false, 100, OnTimeout::Abort, "failed"),
            (&progress, false, 100, OnTimeout::Delete, "delete"),
            (&deleting, true, 199, OnTimeout::Delete, "wait"),
            (&deleting, true, 200, OnTimeout::Delete, "failed"),
            (&progress, false, 100, OnTimeout::Force, "done"),
        ];
        for (progress, deleting, second, then, expected) in table {
            let step = decided(progress, deleting, second, then);
            assert_eq!(word(&step), expected, "{step:?}");
        }
    }

    #[test]
    fn a_pod_that_cannot_be_evicted_for_good_ends_it_at_once() {
        let dropped = vec![Dropped {
            pod: pod(),
            answer: "403 no".into(),
        }];
        let incomplete = Progress {
            dropped,
            waiting: Vec::new(),
            ..under_way()
        };
        let DrainStep::Failed { why } = decided(&incomplete, false, 1, OnTimeout::Abort) else {
            panic!("it is not drained")
        };
        assert!(why.contains("403 no"), "{why}");
        assert_eq!(
            word(&decided(&incomplete, false, 1, OnTimeout::Delete)),
            "delete"
        );
        assert_eq!(
            word(&decided(&incomplete, true, 1, OnTimeout::Delete)),
            "done",
            "old news"
        );
    }

    #[test]
    fn volumes_are_waited_for_but_not_for_ever() {
        let drained = Progress {
            waiting: Vec::new(),
            claims: vec!["d/data".into()],
            ..under_way()
        };
        let detach = Config::default().volume_detach_timeout.as_secs();
        assert_eq!(
            word(&decided(&drained, false, detach - 1, OnTimeout::Abort)),
            "detach"
        );
        let DrainStep::Done { note } = decided(&drained, false, detach, OnTimeout::Abort) else {
            panic!("its time is over")
        };
        assert!(note.is_some());
        let nothing = Progress {
            claims: Vec::new(),
            ..drained
        };
        assert_eq!(
            decided(&nothing, false, 0, OnTimeout::Abort),
            DrainStep::Done { note: None }
        );
    }
}
