//! The policy's links of the chain: which one rules, its pause, windows and gates, its budget.

use super::chain::Chain;
use super::explanation::Topic;
use super::fleet::said;
use super::words::{due, quoted, some};
use crate::policy::window::{Opening, describe, opening};
use crate::policy::{self, Gate, Policies, Policy};
use crate::reboot::{Phase, reason};

#[cfg(test)]
mod tests;

/// How many windows and policies are told.
const NAMED: usize = 3;

impl Chain<'_> {
    /// Which policy rules the node, what that one wants, and whom it has beaten.
    pub(super) fn policy(&mut self) {
        let policies = &self.view.fleet.policies;
        match policies {
            Policies::NotYet => return,
            Policies::Unreadable { why } => {
                let text = format!("they cannot be read from here: {why}");
                return self.add(Topic::Policy, text);
            }
            Policies::Known(all) if all.is_empty() => return,
            Policies::Known(_) => {}
        }
        let labels = &self.node.labels;
        let Some(ruling) = policy::ruling(policies.known(), labels) else {
            let text = "no RebootPolicy rules this node: the coordinator's flags do";
            return self.add(Topic::Policy, text);
        };
        let group = policy::group(policies, labels);
        let lost: Vec<String> = policy::conflicts(policies.known(), labels)
            .iter()
            .map(|policy| format!("{} (priority {})", policy.name, policy.priority))
            .collect();
        let mut text = format!(
            "RebootPolicy {} rules it (priority {}), group {group}",
            ruling.name, ruling.priority
        );
        if !lost.is_empty() {
            text.push_str("; it goes before ");
            text.push_str(&some(&lost, NAMED));
        }
        self.add(Topic::Policy, text);
        for problem in &ruling.problems {
            let text = format!("it cannot be followed: {problem}");
            self.add(Topic::Policy, text);
        }
        self.pause(ruling);
        self.windows(ruling);
        self.interval(ruling);
        self.gates(ruling);
    }

    fn pause(&mut self, policy: &Policy) {
        let Some(pause) = &policy.paused else {
            return;
        };
        let text = match pause.until {
            Some(until) if until <= self.now.wall => {
                format!("over, it ended {}", due(until, self.now))
            }
            Some(until) => format!(
                "paused: {}; it ends {}",
                quoted(&pause.reason),
                due(until, self.now)
            ),
            None => format!(
                "paused: {}; until somebody resumes it",
                quoted(&pause.reason)
            ),
        };
        self.add(Topic::Pause, text);
    }

    /// By the rule that the coordinator goes by; a drain needs a window for as long as it may take.
    fn windows(&mut self, policy: &Policy) {
        if policy.windows.is_empty() {
            return;
        }
        let all: Vec<String> = policy.windows.iter().map(describe).collect();
        let needs = match self.record_phase() {
            None | Some(Phase::Waiting) => self.view.fleet.rule(self.node).config.drain_timeout,
            Some(Phase::Draining | Phase::Rebooting | Phase::Returning) => {
                std::time::Duration::ZERO
            }
        };
        let opens = |opens: Option<jiff::Timestamp>| match opens {
            Some(at) => format!("it opens {}", due(at, self.now)),
            None => "none of them is ever long enough".into(),
        };
        let text = match opening(&policy.windows, self.now.wall, needs) {
            Opening::Open { until } => {
                format!("open, closes {} at the earliest", due(until, self.now))
            }
            Opening::TooShort { ends, opens: next } => format!(
                "open, but closes {}, and a drain may take {}; {}",
                due(ends, self.now),
                crate::duration::format(needs),
                opens(next)
            ),
            Opening::Shut { opens: next } => format!("shut; {}", opens(next)),
        };
        self.add(Topic::Window, format!("{text} ({})", some(&all, NAMED)));
    }

    fn interval(&mut self, policy: &Policy) {
        let (Some(least), Some(last)) = (policy.min_interval, self.node.last.get()) else {
            return;
        };
        let next = last
            .finished
            .checked_add(least)
            .unwrap_or(jiff::Timestamp::MAX);
        if next > self.now.wall {
            let text = format!(
                "the last reboot was too recently: {} between two, so not before that is over, {}",
                crate::duration::format(least),
                due(next, self.now)
            );
            self.add(Topic::Window, text);
        }
    }

    /// What they answer is the coordinator's to ask; its own words are told above.
    fn gates(&mut self, policy: &Policy) {
        let waits = matches!(self.record_phase(), Some(Phase::Waiting | Phase::Draining));
        if !waits {
            return;
        }
        let shut = said(self.node).is_some_and(|condition| condition.reason == reason::GATE_SHUT);
        for gate in &policy.gates {
            let says = if shut {
                ", one of those asked above"
            } else {
                ""
            };
            self.add(Topic::Gate, format!("{}{says}", gate_in_words(gate)));
        }
    }

    /// Who is out beside it, with numbers: what a winner of the lock would count.
    pub(super) fn budget(&mut self) {
        let text = self.view.fleet.budget(self.node).in_words();
        self.add(Topic::Budget, text);
    }
}

/// What a gate asks.
pub fn gate_in_words(gate: &Gate) -> String {
    match gate {
        Gate::Pods { selector } => {
            let query = selector.query();
            let which = if query.is_empty() { "any" } else { &query };
            format!("no pod of {which} on this node")
        }
        Gate::Prometheus(gate) => format!("Prometheus {} has nothing to say against it", gate.url),
    }
}
