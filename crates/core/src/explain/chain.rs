//! The chain of a node's explanation, from the trigger to what the node waits for.

use dogwatch_api::node_reboot::RebootMethod;

use super::deadline::describe_deadline;
use super::explanation::{ExplanationLine, ExplanationTopic, NodeExplanation};
use super::fleet::{
    NodeReportInput, ObservedCoordinator, condition_message, find_true_condition, leading_condition,
};
use super::human_format::{describe_trigger, format_age, format_since, format_time, quote_reason};
use super::requested_reboots::{list_requested_reboots, summarize_requested_reboots};
use super::{advice, human_format};
use crate::Now;
use crate::condition::CurrentCondition;
use crate::drain::DrainStart;
use crate::reboot::{ObservedNode, ParsedAnnotation, RebootPhase, RebootRecord};

/// A message of this age may describe an older state than the drain shows now.
const MIN_MESSAGE_AGE: std::time::Duration = std::time::Duration::from_secs(5);
/// At most this many slots and names are listed.
pub(super) const MAX_NAMED_ITEMS: usize = 5;
/// Conditions that are explained besides the leading ones.
const WARNING_CONDITIONS: [&str; 2] = ["RebootTriggerUnknown", "SentinelSurvivedReboot"];

/// `None` if the fleet has no such node.
pub fn explain_node(view: &NodeReportInput, now: Now) -> Option<NodeExplanation> {
    let node = view.fleet.find_node(&view.node)?;
    let mut chain = NodeExplainer {
        view,
        node,
        now,
        lines: Vec::new(),
    };
    chain.add_request();
    chain.add_requested_reboots();
    chain.add_abort_request();
    if let Some(record) = node.record.get() {
        chain.add_phase(record);
    }
    chain.add_decision();
    chain.add_policy();
    chain.add_lock();
    chain.add_order();
    if chain.record_phase() == Some(RebootPhase::Waiting) {
        chain.add_budget();
    }
    chain.add_drain();
    chain.add_boot();
    if let Some(record) = node.record.get() {
        let rule = view.fleet.rule_of_node(node);
        chain.add_line(
            ExplanationTopic::Deadline,
            describe_deadline(record, rule.policy, now),
        );
    }
    chain.add_healer();
    chain.add_conditions();
    chain.add_cordon();
    chain.add_last_reboot();
    chain.add_coordinator();
    Some(NodeExplanation {
        node: node.name.to_string(),
        summary: chain.summary_line(),
        advice: advice::node_advice(view, node, now),
        chain: chain.lines,
    })
}

pub(super) struct NodeExplainer<'a> {
    pub(super) view: &'a NodeReportInput,
    pub(super) node: &'a ObservedNode,
    pub(super) now: Now,
    lines: Vec<ExplanationLine>,
}

impl NodeExplainer<'_> {
    pub(super) fn add_line(&mut self, topic: ExplanationTopic, text: impl Into<String>) {
        self.lines.push(ExplanationLine {
            topic,
            text: text.into(),
        });
    }

    pub(super) fn record_phase(&self) -> Option<RebootPhase> {
        self.node.record.get().map(|record| record.phase)
    }

    fn summary_line(&self) -> String {
        let name = &self.node.name;
        match &self.node.record {
            ParsedAnnotation::Absent => match &self.node.request {
                ParsedAnnotation::Absent => self.idle_summary(),
                ParsedAnnotation::Is(_) | ParsedAnnotation::Bad { .. } => {
                    format!(
                        "{name}: a reboot is requested, and its coordinator has not accepted the request"
                    )
                }
            },
            ParsedAnnotation::Bad { .. } => {
                format!("{name}: stopped, because the record of its reboot cannot be read")
            }
            ParsedAnnotation::Is(record) => {
                let reason =
                    leading_condition(self.node).map(|condition| format!(": {}", condition.reason));
                let age = format_age(self.now.elapsed_since(record.since));
                format!(
                    "{name}: {} for {age}{}",
                    record.phase.as_str(),
                    reason.unwrap_or_default()
                )
            }
        }
    }

    /// The summary of a node whose coordinator does nothing. A caller of the lock API may hold the
    /// node's lock, and a NodeReboot may not have reached the Node.
    fn idle_summary(&self) -> String {
        let name = &self.node.name;
        if let Some(host) = self.view.fleet.waiting_host_for(name) {
            let age = format_age(self.now.elapsed_since(host.since));
            return format!(
                "{name}: a lock call over HTTP has waited for {age}: {}",
                host.reason
            );
        }
        if self.node.api_lock || self.view.fleet.lease_locked_through_api(name).is_some() {
            return format!("{name}: locked through the lock API");
        }
        summarize_requested_reboots(self.view, self.node)
            .unwrap_or_else(|| format!("{name}: nothing is under way"))
    }

    fn add_request(&mut self) {
        if let Some(record) = self.node.record.get() {
            let asked = describe_trigger(&record.trigger);
            let text = format!("{asked}, {}", format_since(record.planned, self.now));
            self.add_line(ExplanationTopic::Asked, text);
        }
        match &self.node.request {
            ParsedAnnotation::Is(request) if self.node.record.get().is_none() => {
                let text = match request.not_before {
                    Some(at) => format!(", {}", human_format::format_due(at, self.now)),
                    None => String::new(),
                };
                let (by, reason) = (&request.requester, quote_reason(&request.reason));
                self.add_line(
                    ExplanationTopic::Asked,
                    format!("request by {by}: {reason}{text}"),
                );
            }
            ParsedAnnotation::Bad { why } => {
                let text =
                    format!("annotation dogwatch.dev/reboot-requested cannot be read: {why}");
                self.add_line(ExplanationTopic::Asked, text);
            }
            ParsedAnnotation::Absent if self.is_unasked() => self.add_line(
                ExplanationTopic::Asked,
                "nothing that this command can see (only the node's coordinator sees sentinels)",
            ),
            ParsedAnnotation::Absent | ParsedAnnotation::Is(_) => {}
        }
    }

    fn is_unasked(&self) -> bool {
        self.node.record == ParsedAnnotation::Absent
            && list_requested_reboots(self.view, self.node).is_empty()
    }

    fn add_abort_request(&mut self) {
        match &self.node.abort {
            ParsedAnnotation::Absent => {}
            ParsedAnnotation::Is(abort) => {
                let text = format!(
                    "abort requested by {}: {}",
                    abort.requester,
                    quote_reason(&abort.reason)
                );
                self.add_line(ExplanationTopic::Asked, text);
            }
            ParsedAnnotation::Bad { .. } => {
                let text = "abort requested (annotation dogwatch.dev/abort-requested cannot be read, and is obeyed)";
                self.add_line(ExplanationTopic::Asked, text);
            }
        }
    }

    fn add_phase(&mut self, record: &RebootRecord) {
        let mut text = format!(
            "{} {}",
            record.phase.as_str(),
            format_since(record.since, self.now)
        );
        if record.attempts > 0 {
            text.push_str(", attempt ");
            text.push_str(&record.attempts.to_string());
        }
        if record.deleting {
            text.push_str(", what is left is deleted (--on-drain-timeout delete)");
        }
        if let Some(but) = record.message.strip_prefix("drained; ") {
            text.push_str("; ");
            text.push_str(but);
        }
        if record.forced {
            text.push_str(", the drain was cut short (--on-drain-timeout force)");
        }
        self.add_line(ExplanationTopic::Phase, text);
    }

    fn add_decision(&mut self) {
        if let Some(condition) = leading_condition(self.node) {
            let written = self.written_ago(condition);
            let text = format!(
                "{}: {}{written}",
                condition.reason,
                condition_message(condition)
            );
            self.add_line(ExplanationTopic::Says, text);
            return;
        }
        match &self.node.record {
            ParsedAnnotation::Bad { why } => {
                self.add_line(
                    ExplanationTopic::Says,
                    format!("annotation dogwatch.dev/reboot cannot be read: {why}"),
                );
            }
            ParsedAnnotation::Is(record) if !record.message.is_empty() => {
                self.add_line(ExplanationTopic::Says, record.message.clone());
            }
            ParsedAnnotation::Is(_) | ParsedAnnotation::Absent => {}
        }
    }

    /// The age of a message that may be outdated: progress alone is written every 30 s.
    fn written_ago(&self, condition: &CurrentCondition) -> String {
        let is_progress = self.record_phase() > Some(RebootPhase::Waiting);
        let age_of = condition
            .last_heartbeat
            .map(|at| self.now.elapsed_since(at));
        match age_of.filter(|age| is_progress && *age >= MIN_MESSAGE_AGE) {
            Some(age_of) => format!(" (written {} ago)", format_age(age_of)),
            None => String::new(),
        }
    }

    fn add_drain(&mut self) {
        let drains = matches!(
            self.record_phase(),
            Some(RebootPhase::Draining | RebootPhase::Rebooting)
        );
        if let (true, Some(on_node)) = (drains, &self.view.node_pods) {
            let rule = self.view.fleet.rule_of_node(self.node);
            let since = self.node.record.get().map(|record| record.since);
            let start = DrainStart {
                seen: self.now.mono,
                before: since.map_or(std::time::Duration::ZERO, |since| {
                    self.now.elapsed_since(since)
                }),
            };
            let rules = &rule.config.pod_rules;
            for text in on_node.describe_drain_waits(rules, start, self.now) {
                self.add_line(ExplanationTopic::Drain, text);
            }
        }
    }

    fn add_boot(&mut self) {
        let posted = match &self.node.boot_id {
            Some(boot) => boot.to_string(),
            None => "none".into(),
        };
        let Some(record) = self.node.record.get() else {
            return self.add_line(
                ExplanationTopic::Boot,
                format!("{posted} (reported by the kubelet)"),
            );
        };
        if record.trigger.method == RebootMethod::Hold {
            let text = format!("{posted}; a boot does not end the hold");
            return self.add_line(ExplanationTopic::Boot, text);
        }
        let ended = &record.boot_id;
        let text = if self.node.boot_id.as_ref() == Some(ended) {
            match record.phase {
                RebootPhase::Waiting | RebootPhase::Draining => {
                    format!("{ended}, which the reboot ends")
                }
                RebootPhase::Holding => ended.to_string(),
                RebootPhase::Rebooting => {
                    format!(
                        "{ended}, which the reboot ends; the kubelet has not reported a newer boot yet"
                    )
                }
                RebootPhase::Returning if record.soft => {
                    format!("{ended}, which goes on: it was a soft reboot")
                }
                RebootPhase::Returning => {
                    format!("{ended} has ended; the kubelet has not reported the new boot yet")
                }
            }
        } else {
            format!("{ended}, which the reboot ends; the kubelet has reported {posted}")
        };
        self.add_line(ExplanationTopic::Boot, text);
    }

    fn add_conditions(&mut self) {
        for condition in WARNING_CONDITIONS
            .iter()
            .filter_map(|kind| find_true_condition(self.node, kind))
        {
            let text = format!(
                "{} ({}): {}",
                condition.kind, condition.reason, condition.message
            );
            self.add_line(ExplanationTopic::Condition, text);
        }
    }

    fn add_cordon(&mut self) {
        let ours = self
            .node
            .record
            .get()
            .is_some_and(|record| record.cordoned_by_us);
        if self.node.unschedulable && self.node.api_lock {
            self.add_line(
                ExplanationTopic::Cordon,
                "the lock API has cordoned and locked the node: unlock uncordons it, unless it was cordoned before",
            );
        } else if self.node.unschedulable && !ours {
            self.add_line(
                ExplanationTopic::Cordon,
                "somebody else cordoned the node: Dogwatch will not uncordon it",
            );
        }
        if self.node.quarantined {
            self.add_line(
                ExplanationTopic::Cordon,
                "annotation quarantineHealthEvent: NVSentinel has quarantined the node, so Dogwatch will not uncordon it",
            );
        }
        if self.node.keep_cordoned {
            self.add_line(
                ExplanationTopic::Cordon,
                "annotation dogwatch.dev/keep-cordoned: it stays cordoned after the reboot",
            );
        }
    }

    fn add_last_reboot(&mut self) {
        match &self.node.last_reboot {
            ParsedAnnotation::Absent => {}
            ParsedAnnotation::Bad { why } => {
                self.add_line(
                    ExplanationTopic::Last,
                    format!("annotation dogwatch.dev/last-reboot cannot be read: {why}"),
                );
            }
            ParsedAnnotation::Is(last) => {
                let took = last.finished.duration_since(last.planned);
                let took = std::time::Duration::try_from(took).unwrap_or_default();
                let soft = if last.soft { " (a soft reboot)" } else { "" };
                let text = format!(
                    "{} at {}, {} after it was requested ({}); boot {} → {}{soft}",
                    last.outcome.as_str(),
                    format_time(last.finished),
                    format_age(took),
                    quote_reason(&last.trigger.reason),
                    last.old_boot_id,
                    last.new_boot_id
                );
                self.add_line(ExplanationTopic::Last, text);
            }
        }
    }

    fn add_coordinator(&mut self) {
        match &self.view.coordinator {
            ObservedCoordinator::Unknown | ObservedCoordinator::NoDaemonSet => {}
            ObservedCoordinator::NoPod => self.add_line(
                ExplanationTopic::Coordinator,
                "no pod of its DaemonSet is on this node",
            ),
            ObservedCoordinator::Pod { name, ready, state } => {
                let ready = if *ready { "ready" } else { "not ready" };
                self.add_line(
                    ExplanationTopic::Coordinator,
                    format!("pod {name} is {state}, {ready}"),
                );
            }
        }
    }
}
