//! The lines of a node's explanation about its policy: choice, pause, windows, gates, budget.

use super::chain::NodeExplainer;
use super::explanation::ExplanationTopic;
use super::fleet::leading_reason;
use super::human_format::{format_due, join_first_names, quote_reason};
use crate::policy::rollout::describe_rollout;
use crate::policy::window::{WindowOpening, describe_window, window_opening};
use crate::policy::{self, ClusterPolicies, Policy, PolicyGate};
use crate::reboot::{RebootPhase, RebootReason};

#[cfg(test)]
mod tests;

const MAX_NAMED_WINDOWS: usize = 3;

impl NodeExplainer<'_> {
    /// Names the policy that applies to the node, its content, and the policies of lower
    /// precedence.
    pub(super) fn add_policy(&mut self) {
        let policies = &self.view.fleet.policies;
        match policies {
            ClusterPolicies::NotYetRead => return,
            ClusterPolicies::Unreadable { why } => {
                let text = format!("the policies cannot be read from here: {why}");
                return self.add_line(ExplanationTopic::Policy, text);
            }
            ClusterPolicies::Known(all) if all.is_empty() => return,
            ClusterPolicies::Known(_) => {}
        }
        let labels = &self.node.labels;
        let Some(ruling) = policy::ruling_policy(policies.known_policies(), labels) else {
            let text = "no RebootPolicy applies to this node: the coordinator's flags apply";
            return self.add_line(ExplanationTopic::Policy, text);
        };
        let group = policy::group_of_labels(policies, labels);
        let lost: Vec<String> = policy::losing_policies(policies.known_policies(), labels)
            .iter()
            .map(|policy| format!("{} (priority {})", policy.name, policy.priority))
            .collect();
        let mut text = format!(
            "RebootPolicy {} applies (priority {}), group {group}",
            ruling.name, ruling.priority
        );
        if !lost.is_empty() {
            text.push_str("; it overrides ");
            text.push_str(&join_first_names(&lost, MAX_NAMED_WINDOWS));
        }
        self.add_line(ExplanationTopic::Policy, text);
        for problem in &ruling.problems {
            let text = format!("the policy is invalid: {problem}");
            self.add_line(ExplanationTopic::Policy, text);
        }
        self.add_pause(ruling);
        self.add_rollout(ruling);
        self.add_windows(ruling);
        self.add_interval(ruling);
        self.add_gates(ruling);
    }

    fn add_pause(&mut self, policy: &Policy) {
        let Some(pause) = &policy.paused else {
            return;
        };
        let text = match pause.until {
            Some(until) if until <= self.now.wall => {
                format!("over, it ended {}", format_due(until, self.now))
            }
            Some(until) => format!(
                "paused: {}; the pause ends {}",
                quote_reason(&pause.reason),
                format_due(until, self.now)
            ),
            None => format!(
                "paused: {}; the pause lasts until somebody resumes the policy",
                quote_reason(&pause.reason)
            ),
        };
        self.add_line(ExplanationTopic::Pause, text);
    }

    fn add_rollout(&mut self, policy: &Policy) {
        if let Some(text) = describe_rollout(&policy.rollout) {
            self.add_line(ExplanationTopic::Policy, format!("rollout: {text}"));
        }
    }

    /// Uses the coordinator's rule: a window must stay open for as long as a drain may take.
    fn add_windows(&mut self, policy: &Policy) {
        if policy.windows.is_empty() {
            return;
        }
        let all: Vec<String> = policy.windows.iter().map(describe_window).collect();
        let needs = match self.record_phase() {
            None | Some(RebootPhase::Waiting) => self
                .view
                .fleet
                .rule_of_node(self.node)
                .config
                .longest_drain(),
            Some(
                RebootPhase::Draining
                | RebootPhase::Holding
                | RebootPhase::Rebooting
                | RebootPhase::Returning,
            ) => std::time::Duration::ZERO,
        };
        let opens = |opens: Option<jiff::Timestamp>| match opens {
            Some(at) => format!("the window opens {}", format_due(at, self.now)),
            None => "no window is ever long enough".into(),
        };
        let text = match window_opening(&policy.windows, self.now.wall, needs) {
            WindowOpening::Open { until } => {
                format!(
                    "open; it closes {} at the earliest",
                    format_due(until, self.now)
                )
            }
            WindowOpening::TooShort { ends, opens: next } => format!(
                "open, but it closes {}, and a drain may take {}; {}",
                format_due(ends, self.now),
                crate::duration::format_duration(needs),
                opens(next)
            ),
            WindowOpening::Shut { opens: next } => format!("closed; {}", opens(next)),
        };
        self.add_line(
            ExplanationTopic::Window,
            format!("{text} ({})", join_first_names(&all, MAX_NAMED_WINDOWS)),
        );
    }

    fn add_interval(&mut self, policy: &Policy) {
        let (Some(least), Some(last)) = (policy.min_interval, self.node.last_reboot.get()) else {
            return;
        };
        let next = last
            .finished
            .checked_add(least)
            .unwrap_or(jiff::Timestamp::MAX);
        if next > self.now.wall {
            let text = format!(
                "the last reboot was too recent: {} between two reboots, so the node waits until that time is over, {}",
                crate::duration::format_duration(least),
                format_due(next, self.now)
            );
            self.add_line(ExplanationTopic::Window, text);
        }
    }

    /// Only the coordinator queries the gates; its condition above has the result.
    fn add_gates(&mut self, policy: &Policy) {
        let waits = matches!(
            self.record_phase(),
            Some(RebootPhase::Waiting | RebootPhase::Draining)
        );
        if !waits {
            return;
        }
        let shut = leading_reason(self.node) == Some(RebootReason::GateShut);
        for gate in &policy.gates {
            let says = if shut {
                ", one of the servers queried above"
            } else {
                ""
            };
            self.add_line(
                ExplanationTopic::Gate,
                format!("{}{says}", describe_gate(gate)),
            );
        }
    }

    /// The group's unavailable nodes, as a coordinator that won the lock would count them.
    pub(super) fn add_budget(&mut self) {
        let text = self.view.fleet.budget_of_node(self.node).to_sentence();
        self.add_line(ExplanationTopic::Budget, text);
    }
}

pub fn describe_gate(gate: &PolicyGate) -> String {
    match gate {
        PolicyGate::Pods { selector } => {
            let query = selector.to_query_string();
            let which = if query.is_empty() { "any" } else { &query };
            format!("no pod of {which} on this node")
        }
        PolicyGate::Prometheus(gate) => {
            format!(
                "Prometheus {} returns no result that closes the gate",
                gate.url
            )
        }
    }
}
