//! One schedule, and what is around it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::Now;
use crate::reboot::Parsed;
use crate::schedule::*;
use crate::selector::LabelSelector;

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A moment of that wall clock; the monotonic one goes with it from 2026 on.
pub fn now(text: &str) -> Now {
    let wall = at(text);
    let since = wall.duration_since(at("2026-01-01T00:00:00Z"));
    Now {
        wall,
        mono: Duration::try_from(since).unwrap_or_default(),
    }
}

pub fn recurrence(start: &str) -> Recurrence {
    Recurrence {
        start: start.into(),
        ..Recurrence::default()
    }
}

pub fn plan(when: (When, jiff::tz::TimeZone)) -> Plan {
    Plan {
        when: when.0,
        zone: when.1,
        starting_deadline: Duration::from_hours(1),
        suspend: false,
        reason: "kernel".into(),
        mode: Mode::Soft,
        nodes: Some(Chosen {
            names: vec!["n1".into()],
            selector: None,
        }),
        hosts: None,
    }
}

pub fn once(at: &str) -> Plan {
    plan(When::new(Some(at), None, None).unwrap())
}

pub fn daily(start: &str) -> Plan {
    plan(When::new(None, Some(&recurrence(start)), None).unwrap())
}

pub fn schedule(plan: Plan) -> Schedule {
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
        status: Status::default(),
    }
}

pub fn seen(plan: Plan) -> Seen {
    Seen {
        schedule: schedule(plan),
        living: BTreeSet::from(["u1".to_owned(), "u2".to_owned()]),
        targets: None,
        trouble: BTreeMap::new(),
    }
}

pub fn object(name: &str) -> Object {
    Object {
        name: name.into(),
        uid: format!("uid-of-{name}"),
        resource_version: "1".into(),
        created: at("2025-12-01T00:00:00Z"),
        labels: BTreeMap::new(),
        marks: Parsed::Absent,
        request: StandingRequest::Absent,
        carries: None,
        not_by_power: None,
    }
}

pub fn labelled(name: &str, value: &str) -> Object {
    Object {
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

impl Seen {
    /// An occurrence is being issued, and these are there.
    #[must_use]
    pub fn issuing(mut self, at_: &str, nodes: Vec<Object>, hosts: Vec<Object>, now: Now) -> Self {
        let current = at(at_);
        self.schedule.status.current = Some(Current {
            at: current,
            begun: current,
        });
        self.targets = Some(TargetsSeen {
            nodes: Ok(nodes),
            hosts: Ok(hosts),
            taken: now.mono,
        });
        self
    }

    /// Once the status has been written as often as is wanted.
    #[must_use]
    pub fn settled(mut self, now: Now) -> (Self, Decision) {
        for _ in 0..5 {
            let decision = decide(&self, now);
            let [Action::WriteStatus(status)] = decision.actions.as_slice() else {
                return (self, decision);
            };
            self.write(status, &decision);
        }
        panic!("it writes for ever: {self:?}");
    }

    /// What the API server keeps of it.
    pub fn write(&mut self, status: &Status, decision: &Decision) {
        let conditions = decision.report.conditions.iter();
        self.schedule.status = Status {
            conditions: conditions
                .map(|wanted| crate::condition::Condition {
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
pub fn written(decision: &Decision) -> &Status {
    match decision.actions.as_slice() {
        [Action::WriteStatus(status)] => status,
        other => panic!("{other:?}"),
    }
}

/// Whom a decision asks.
pub fn asked(decision: &Decision) -> Vec<&Ask> {
    let asks = decision.actions.iter().map(|action| match action {
        Action::Ask(ask) => ask.as_ref(),
        Action::WriteStatus(status) => panic!("{status:?}"),
    });
    asks.collect()
}
