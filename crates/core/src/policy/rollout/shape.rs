//! What a policy asks for, and how far it is.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::{PolicyRolloutState, RolloutPhase};
use crate::duration::format_duration;

/// `spec.rollout`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolloutShape {
    pub canary: Option<RolloutCanary>,
    /// Ascending numbers, the first at least 1.
    pub ramp: Vec<u32>,
    pub halt_after_failures: Option<u32>,
}

/// The nodes that go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutCanary {
    pub nodes: u32,
    /// How long nothing begins after them.
    pub soak: Duration,
}

impl RolloutShape {
    pub fn canary_count(&self) -> usize {
        let nodes = self.canary.map_or(0, |canary| canary.nodes);
        usize::try_from(nodes).unwrap_or(usize::MAX)
    }

    pub fn soak_time(&self) -> Duration {
        self.canary.map_or(Duration::ZERO, |canary| canary.soak)
    }

    /// The number of the ramp after so many steps; `None`: the ramp is over.
    pub fn ramp_limit(&self, step: u32) -> Option<u32> {
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        self.ramp.get(step).copied()
    }

    /// The first state of a rollout.
    pub fn first_state(&self) -> PolicyRolloutState {
        let phase = if self.canary_count() == 0 {
            RolloutPhase::Ramping
        } else {
            RolloutPhase::Canary
        };
        PolicyRolloutState {
            shape: self.to_string(),
            phase,
            canaries: Vec::new(),
            soak_ends: None,
            limit: self
                .ramp_limit(0)
                .filter(|_| phase == RolloutPhase::Ramping),
            step: 0,
            successes: 0,
            under_way: Vec::new(),
            failures: 0,
            failed: Vec::new(),
            halted: None,
            quiet_since: None,
        }
    }
}

/// One line that differs for shapes that differ: a state names its shape by it.
impl fmt::Display for RolloutShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(canary) = self.canary {
            parts.push(format!("canary {}", canary.nodes));
            parts.push(format!("soak {}", format_duration(canary.soak)));
        }
        if !self.ramp.is_empty() {
            let numbers: Vec<String> = self.ramp.iter().map(u32::to_string).collect();
            parts.push(format!("ramp {}", numbers.join(" ")));
        }
        if let Some(failures) = self.halt_after_failures {
            parts.push(format!("halt after {failures}"));
        }
        formatter.write_str(&parts.join(", "))
    }
}

/// The shape of a policy's rollout, its state, and what a person said about its halt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyRollout {
    pub shape: Option<RolloutShape>,
    /// `status.rollout`, as the controller wrote it last. It may belong to another shape.
    pub state: Option<PolicyRolloutState>,
    /// Annotation `dogwatch.dev/rollout-resumed`: the halt of this time is to end.
    pub resumed: Option<Timestamp>,
}

impl PolicyRollout {
    /// Whether the policy has a rollout, or a state of one.
    pub fn may_halt(&self) -> bool {
        self.shape.is_some() || self.state.is_some()
    }

    /// The state, if it belongs to the shape of now.
    pub fn current_state(&self) -> Option<&PolicyRolloutState> {
        let shape = self.shape.as_ref()?.to_string();
        self.state.as_ref().filter(|state| state.shape == shape)
    }

    /// How many nodes may be unavailable at once by the ramp; `None`: it sets no limit now.
    pub fn limit_now(&self) -> Option<u32> {
        let (shape, state) = (self.shape.as_ref()?, self.current_state()?);
        match state.phase {
            RolloutPhase::Ramping => shape.ramp_limit(state.step),
            RolloutPhase::Canary | RolloutPhase::Soaking => None,
        }
    }
}

/// How far a rollout is, in a sentence for people.
pub fn describe_rollout(rollout: &PolicyRollout) -> Option<String> {
    let halt = rollout
        .state
        .as_ref()
        .and_then(|state| state.halted.as_ref());
    if let Some(halt) = halt {
        return Some(format!("halted since {}: {}", halt.since, halt.reason));
    }
    let shape = rollout.shape.as_ref()?;
    let Some(state) = rollout.current_state() else {
        return Some(format!("{shape}; not begun"));
    };
    let now = match state.phase {
        RolloutPhase::Canary => describe_canaries(state, shape.canary_count()),
        RolloutPhase::Soaking => match state.soak_ends {
            Some(at) => format!("the canaries are back; nothing begins until {at}"),
            None => "the canaries are back; nothing begins".to_owned(),
        },
        RolloutPhase::Ramping => match rollout.limit_now() {
            Some(limit) => format!(
                "at most {limit} at once; {} of {limit} successes in a row",
                state.successes
            ),
            None => "the ramp is over; maxUnavailable rules".to_owned(),
        },
    };
    let failures = match state.failures {
        0 => String::new(),
        count => format!("; failures: {count}"),
    };
    Some(format!("{shape}; now: {now}{failures}"))
}

fn describe_canaries(state: &PolicyRolloutState, wanted: usize) -> String {
    let done = state.canaries.iter().filter(|canary| canary.done).count();
    let open = state.canaries.iter().filter(|canary| !canary.done);
    let open: Vec<&str> = open.map(|canary| canary.node.as_str()).collect();
    let names = if open.is_empty() {
        String::new()
    } else {
        format!(", now {}", open.join(", "))
    };
    format!("{done} of {wanted} canaries are back{names}")
}
