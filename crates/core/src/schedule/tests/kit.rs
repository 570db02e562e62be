//! Builders for one schedule and its surroundings.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::Now;
use crate::reboot::ParsedAnnotation;
use crate::schedule::*;
use crate::selector::LabelSelector;

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// This wall-clock time; the monotonic clock started with 2026.
pub fn now(text: &str) -> Now {
    let wall = at(text);
    let since = wall.duration_since(at("2026-01-01T00:00:00Z"));
    Now {
        wall,
        mono: Duration::try_from(since).unwrap_or_default(),
    }
}

pub fn recurrence(start: &str) -> ScheduleRecurrence {
    ScheduleRecurrence {
        start: start.into(),
        ..ScheduleRecurrence::default()
    }
}

pub fn plan(when: (ScheduleTiming, jiff::tz::TimeZone)) -> SchedulePlan {
    SchedulePlan {
        when: when.0,
        zone: when.1,
        starting_deadline: Duration::from_hours(1),
        suspend: false,
        reason: "kernel".into(),
        mode: HostRebootMode::Soft,
        nodes: Some(TargetChoice {
            names: vec!["n1".into()],
            selector: None,
        }),
        hosts: None,
    }
}

pub fn once(at: &str) -> SchedulePlan {
    plan(ScheduleTiming::new(Some(at), None, None).unwrap())
}

pub fn daily(start: &str) -> SchedulePlan {
    plan(ScheduleTiming::new(None, Some(&recurrence(start)), None).unwrap())
}

pub fn schedule(plan: SchedulePlan) -> Schedule {
    Schedule {
        name: ScheduleName {
            namespace: "dogwatch".into(),
            name: "monthly".into(),
        },
        uid: "u1".into(),
        resource_version: "1".into(),
        generation: Some(1),
        created: at("2026-01-01T00:00:00Z"),
        changed: None,
        deleting: false,
        plan: Ok(plan),
        status: ScheduleStatus::default(),
    }
}

pub fn seen(plan: SchedulePlan) -> ScheduleSnapshot {
    ScheduleSnapshot {
        schedule: schedule(plan),
        living: BTreeSet::from(["u1".to_owned(), "u2".to_owned()]),
        targets: None,
        reboots: Some(without_kind()),
        request_errors: BTreeMap::new(),
    }
}

/// Nodes are asked by annotation; read whenever it is asked for.
pub fn without_kind() -> MadeNodeRebootsRead {
    MadeNodeRebootsRead {
        made: MadeNodeReboots::Unavailable("the kind NodeReboot is not installed".into()),
        refused: None,
        taken: Duration::MAX,
    }
}

pub fn object(name: &str) -> TargetObject {
    TargetObject {
        name: name.into(),
        uid: format!("uid-of-{name}"),
        resource_version: "1".into(),
        created: at("2025-12-01T00:00:00Z"),
        labels: BTreeMap::new(),
        marks: ParsedAnnotation::Absent,
        request: StandingRequest::Absent,
        carries: None,
        power_refusal: None,
    }
}

pub fn labelled(name: &str, value: &str) -> TargetObject {
    TargetObject {
        labels: BTreeMap::from([("pool".to_owned(), value.to_owned())]),
        ..object(name)
    }
}

pub fn pool(value: &str) -> LabelSelector {
    LabelSelector {
        match_labels: BTreeMap::from([("pool".to_owned(), value.to_owned())]),
        match_expressions: Vec::new(),
    }
}

impl ScheduleSnapshot {
    /// An occurrence is being issued to these objects.
    #[must_use]
    pub fn issuing(
        mut self,
        at_: &str,
        nodes: Vec<TargetObject>,
        hosts: Vec<TargetObject>,
        now: Now,
    ) -> Self {
        let current = at(at_);
        self.schedule.status.current = Some(CurrentOccurrence {
            at: current,
            begun: current,
        });
        self.targets = Some(ObservedTargets {
            nodes: Ok(nodes),
            hosts: Ok(hosts),
            taken: now.mono,
        });
        self
    }

    /// Repeats the decision until no more status is written.
    #[must_use]
    pub fn settled(mut self, now: Now) -> (Self, ScheduleDecision) {
        for _ in 0..5 {
            let decision = decide(&self, now);
            let [ScheduleAction::WriteStatus(status)] = decision.actions.as_slice() else {
                return (self, decision);
            };
            self.write(status, &decision);
        }
        panic!("it writes for ever: {self:?}");
    }

    /// Stores the status as the API server does.
    pub fn write(&mut self, status: &ScheduleStatus, decision: &ScheduleDecision) {
        let conditions = decision.report.conditions.iter();
        self.schedule.status = ScheduleStatus {
            conditions: conditions
                .map(|wanted| crate::condition::CurrentCondition {
                    kind: wanted.kind.into(),
                    status: wanted.status.as_str().into(),
                    reason: wanted.reason.clone(),
                    message: wanted.message.clone(),
                    last_transition: None,
                    last_heartbeat: None,
                })
                .collect(),
            ..status.clone()
        };
    }
}

/// The status that a decision writes.
pub fn written(decision: &ScheduleDecision) -> &ScheduleStatus {
    match decision.actions.as_slice() {
        [ScheduleAction::WriteStatus(status)] => status,
        other => panic!("{other:?}"),
    }
}

/// The targets that a decision asks.
pub fn asked(decision: &ScheduleDecision) -> Vec<&RebootRequestPatch> {
    let asks = decision.actions.iter().map(|action| match action {
        ScheduleAction::Ask(ask) => ask.as_ref(),
        other @ (ScheduleAction::WriteStatus(_) | ScheduleAction::CreateReboot(_)) => {
            panic!("{other:?}")
        }
    });
    asks.collect()
}
