//! From what asked for a reboot to what is waited for.

use super::deadline::deadline;
use super::explanation::{Explanation, Line, Topic};
use super::fleet::{CoordinatorSeen, View, is_true, message_of, said};
use super::words::{age, moment, quoted, since};
use super::{advice, words};
use crate::Now;
use crate::condition::Condition;
use crate::reboot::{NodeSeen, Parsed, Phase, Record};

/// A message of this age may be behind what the drain shows now.
const WORTH_SAYING: std::time::Duration = std::time::Duration::from_secs(5);
/// How many slots and names are told one by one.
pub(super) const NAMED: usize = 5;
/// Conditions beside the leading ones.
const TROUBLES: [&str; 2] = ["RebootTriggerUnknown", "SentinelSurvivedReboot"];

/// Explains a node. `None`: the fleet has no such node.
pub fn explain(view: &View, now: Now) -> Option<Explanation> {
    let node = view.fleet.node(&view.node)?;
    let mut chain = Chain {
        view,
        node,
        now,
        lines: Vec::new(),
    };
    chain.asked();
    chain.stop_asked();
    if let Some(record) = node.record.get() {
        chain.phase(record);
    }
    chain.says();
    chain.policy();
    chain.lock();
    chain.order();
    if chain.record_phase() == Some(Phase::Waiting) {
        chain.budget();
    }
    chain.drain();
    chain.boot();
    if let Some(record) = node.record.get() {
        let rule = view.fleet.rule(node);
        chain.add(Topic::Deadline, deadline(record, rule.policy, now));
    }
    chain.healer();
    chain.conditions();
    chain.cordon();
    chain.last();
    chain.coordinator();
    Some(Explanation {
        node: node.name.to_string(),
        summary: chain.summary(),
        advice: advice::advice(view, node, now),
        chain: chain.lines,
    })
}

pub(super) struct Chain<'a> {
    pub(super) view: &'a View,
    pub(super) node: &'a NodeSeen,
    pub(super) now: Now,
    lines: Vec<Line>,
}

impl Chain<'_> {
    pub(super) fn add(&mut self, topic: Topic, text: impl Into<String>) {
        self.lines.push(Line {
            topic,
            text: text.into(),
        });
    }

    pub(super) fn record_phase(&self) -> Option<Phase> {
        self.node.record.get().map(|record| record.phase)
    }

    fn summary(&self) -> String {
        let name = &self.node.name;
        match &self.node.record {
            Parsed::Absent => match &self.node.request {
                Parsed::Absent => self.through_api_summary(),
                Parsed::Is(_) | Parsed::Bad { .. } => {
                    format!("{name}: a reboot is requested and not taken up")
                }
            },
            Parsed::Bad { .. } => {
                format!("{name}: stopped, because the record of its reboot cannot be read")
            }
            Parsed::Is(record) => {
                let reason = said(self.node).map(|condition| format!(": {}", condition.reason));
                let age = age(self.now.since(record.since));
                format!(
                    "{name}: {} for {age}{}",
                    record.phase.as_str(),
                    reason.unwrap_or_default()
                )
            }
        }
    }

    /// Nothing that its coordinator does; a caller of the lock API may have it in hand.
    fn through_api_summary(&self) -> String {
        let name = &self.node.name;
        if let Some(host) = self.view.fleet.asks_for(name) {
            let age = age(self.now.since(host.since));
            return format!(
                "{name}: a request for the lock over HTTP waits for {age}: {}",
                host.reason
            );
        }
        if self.node.api_lock || self.view.fleet.locked_by_api(name).is_some() {
            return format!("{name}: locked through the lock API");
        }
        format!("{name}: nothing is under way")
    }

    fn asked(&mut self) {
        if let Some(record) = self.node.record.get() {
            let by = record
                .trigger
                .requester
                .as_deref()
                .map(|by| format!(" by {by}"));
            self.add(
                Topic::Asked,
                format!(
                    "{}{}: {}, {}",
                    record.trigger.source,
                    by.unwrap_or_default(),
                    quoted(&record.trigger.reason),
                    since(record.planned, self.now)
                ),
            );
        }
        match &self.node.request {
            Parsed::Is(request) if self.node.record.get().is_none() => {
                let text = match request.not_before {
                    Some(at) => format!(", {}", words::due(at, self.now)),
                    None => String::new(),
                };
                let (by, reason) = (&request.requester, quoted(&request.reason));
                self.add(Topic::Asked, format!("request by {by}: {reason}{text}"));
            }
            Parsed::Bad { why } => {
                let text =
                    format!("annotation dogwatch.dev/reboot-requested cannot be read: {why}");
                self.add(Topic::Asked, text);
            }
            Parsed::Absent if self.node.record == Parsed::Absent => self.add(
                Topic::Asked,
                "nothing that shows here (sentinels are seen by the node's coordinator only)",
            ),
            Parsed::Absent | Parsed::Is(_) => {}
        }
    }

    fn stop_asked(&mut self) {
        match &self.node.abort {
            Parsed::Absent => {}
            Parsed::Is(abort) => {
                let text = format!(
                    "to be stopped, by {}: {}",
                    abort.requester,
                    quoted(&abort.reason)
                );
                self.add(Topic::Asked, text);
            }
            Parsed::Bad { .. } => {
                let text = "to be stopped (annotation dogwatch.dev/abort-requested cannot be read, and is obeyed)";
                self.add(Topic::Asked, text);
            }
        }
    }

    fn phase(&mut self, record: &Record) {
        let mut text = format!(
            "{} {}",
            record.phase.as_str(),
            since(record.since, self.now)
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
        self.add(Topic::Phase, text);
    }

    fn says(&mut self) {
        if let Some(condition) = said(self.node) {
            let written = self.written(condition);
            let text = format!("{}: {}{written}", condition.reason, message_of(condition));
            self.add(Topic::Says, text);
            return;
        }
        match &self.node.record {
            Parsed::Bad { why } => {
                self.add(
                    Topic::Says,
                    format!("annotation dogwatch.dev/reboot cannot be read: {why}"),
                );
            }
            Parsed::Is(record) if !record.message.is_empty() => {
                self.add(Topic::Says, record.message.clone());
            }
            Parsed::Is(_) | Parsed::Absent => {}
        }
    }

    /// When a sentence was written that may be old: progress alone is written every 30 s.
    fn written(&self, condition: &Condition) -> String {
        let is_progress = self.record_phase() > Some(Phase::Waiting);
        let age_of = condition.last_heartbeat.map(|at| self.now.since(at));
        match age_of.filter(|age| is_progress && *age >= WORTH_SAYING) {
            Some(age_of) => format!(" (written {} ago)", age(age_of)),
            None => String::new(),
        }
    }

    fn drain(&mut self) {
        let drains = matches!(
            self.record_phase(),
            Some(Phase::Draining | Phase::Rebooting)
        );
        if let (true, Some(on_node)) = (drains, &self.view.on_node) {
            let rule = self.view.fleet.rule(self.node);
            for text in on_node.waits_for(rule.config.exclude.as_ref(), self.now) {
                self.add(Topic::Drain, text);
            }
        }
    }

    fn boot(&mut self) {
        let posted = match &self.node.boot_id {
            Some(boot) => boot.to_string(),
            None => "none".into(),
        };
        let Some(record) = self.node.record.get() else {
            return self.add(Topic::Boot, format!("{posted} (as the kubelet posted it)"));
        };
        let ended = &record.boot_id;
        let text = if self.node.boot_id.as_ref() == Some(ended) {
            match record.phase {
                Phase::Waiting | Phase::Draining => format!("{ended}, which the reboot ends"),
                Phase::Rebooting => {
                    format!(
                        "{ended}, which the reboot ends; the kubelet has posted no newer one yet"
                    )
                }
                Phase::Returning => {
                    format!("{ended} has ended; the kubelet has not posted the new one yet")
                }
            }
        } else {
            format!("{ended}, which the reboot ends; the kubelet has posted {posted}")
        };
        self.add(Topic::Boot, text);
    }

    fn conditions(&mut self) {
        for condition in TROUBLES.iter().filter_map(|kind| is_true(self.node, kind)) {
            let text = format!(
                "{} ({}): {}",
                condition.kind, condition.reason, condition.message
            );
            self.add(Topic::Condition, text);
        }
    }

    fn cordon(&mut self) {
        let ours = self
            .node
            .record
            .get()
            .is_some_and(|record| record.cordoned_by_us);
        if self.node.unschedulable && self.node.api_lock {
            self.add(
                Topic::Cordon,
                "the node is cordoned and locked through the lock API: unlock uncordons it, unless it was cordoned before",
            );
        } else if self.node.unschedulable && !ours {
            self.add(
                Topic::Cordon,
                "the node is cordoned, and not by Dogwatch: nobody here will uncordon it",
            );
        }
        if self.node.keep_cordoned {
            self.add(
                Topic::Cordon,
                "annotation dogwatch.dev/keep-cordoned: it stays cordoned after the reboot",
            );
        }
    }

    fn last(&mut self) {
        match &self.node.last {
            Parsed::Absent => {}
            Parsed::Bad { why } => {
                self.add(
                    Topic::Last,
                    format!("annotation dogwatch.dev/last-reboot cannot be read: {why}"),
                );
            }
            Parsed::Is(last) => {
                let took = last.finished.duration_since(last.planned);
                let took = std::time::Duration::try_from(took).unwrap_or_default();
                let text = format!(
                    "{} at {}, {} after it was wanted ({}); boot {} → {}",
                    last.outcome.as_str(),
                    moment(last.finished),
                    age(took),
                    quoted(&last.trigger.reason),
                    last.old_boot_id,
                    last.new_boot_id
                );
                self.add(Topic::Last, text);
            }
        }
    }

    fn coordinator(&mut self) {
        match &self.view.coordinator {
            CoordinatorSeen::Unknown | CoordinatorSeen::NoDaemonSet => {}
            CoordinatorSeen::NoPod => self.add(
                Topic::Coordinator,
                "no pod of its DaemonSet is on this node",
            ),
            CoordinatorSeen::Pod { name, ready, state } => {
                let ready = if *ready { "ready" } else { "not ready" };
                self.add(
                    Topic::Coordinator,
                    format!("pod {name} is {state}, {ready}"),
                );
            }
        }
    }
}
