//! The lines about what holds a host off, or delays that: guards, Lease, key, power, proof.

use super::assessment::concurrent_remediations;
use super::chain::RemediationExplainer;
use crate::Now;
use crate::explain::human_format::{format_time, join_first_names};
use crate::explain::{
    ExplanationLine, ExplanationTopic, HostReportInput, ObservedController, explain_host,
};
use crate::power::{HostOwner, HostSnapshot, OffConfirmation};
use crate::remediation::{KeyOwner, RemediationConfig, RemediationStage, discover_remediations};

const MAX_NAMED_HOSTS: usize = 5;

impl RemediationExplainer<'_> {
    /// What would delay a new key, with numbers.
    pub(super) fn add_guards(&mut self) {
        if self.remediation.is_keyed() || !self.remediation.needs_remediation {
            return;
        }
        let all = discover_remediations(&self.view.snapshot);
        let around = concurrent_remediations(self.view, &all, self.now);
        let others = around.fenced.iter();
        let others = others.filter(|other| other.subject != self.remediation.subject);
        let off: Vec<String> = others
            .filter(|other| other.stage == RemediationStage::HeldOff)
            .map(|other| other.host.to_string())
            .collect();
        let names = if off.is_empty() {
            String::new()
        } else {
            format!(": {}", join_first_names(&off, MAX_NAMED_HOSTS))
        };
        let text = format!(
            "{} hosts are kept off for remediation, and --max-fenced is {} unless the controller \
             has another value{names}",
            off.len(),
            RemediationConfig::default().max_fenced
        );
        self.add_line(ExplanationTopic::Guard, text);
        if let Some(holder) = around.planned.control_plane_locks.first()
            && self.remediation.control_plane
        {
            let text = format!("{holder} holds the control plane's lock for a planned reboot");
            self.add_line(ExplanationTopic::Guard, text);
        }
    }

    pub(super) fn add_lease(&mut self) {
        let Some(name) = &self.remediation.node_name else {
            return;
        };
        let held = if self.remediation.held_lease.is_some() {
            "is held: planned reboots count this node as unavailable"
        } else {
            "is not held"
        };
        let text = format!("dogwatch-remedy-{name} {held}");
        self.add_line(ExplanationTopic::Lock, text);
        if self
            .remediation
            .node
            .as_ref()
            .is_some_and(|node| node.being_fenced)
        {
            let text = "the Node has annotation dogwatch.dev/fencing: nobody drains it";
            self.add_line(ExplanationTopic::Lock, text);
        }
    }

    pub(super) fn add_key(&mut self) {
        let key = self.remediation.key.annotation_name();
        let text = match (self.remediation.is_keyed(), &self.remediation.key) {
            (true, KeyOwner::Foreign) => {
                format!("the host has {key}, and Dogwatch did not write it")
            }
            (true, KeyOwner::Machine(_) | KeyOwner::Node(_) | KeyOwner::Request(_)) => {
                format!("the host has {key}: it is kept off")
            }
            (false, _) => format!("the host does not have {key}"),
        };
        self.add_line(ExplanationTopic::Key, text);
    }

    /// The lines about the power, from the host's own explanation.
    pub(super) fn add_power(&mut self) {
        let Ok(host) = &self.remediation.host else {
            return;
        };
        for line in power_lines(host, self.now) {
            self.add_line(line.topic, line.text);
        }
    }

    pub(super) fn add_proof(&mut self) {
        if let Ok(host) = &self.remediation.host {
            self.add_manual_confirmation(host);
        }
        let request = self.remediation.request.as_ref();
        if let Some(proof) = request.and_then(|request| request.status.proof.as_ref()) {
            let by = proof.by.as_ref().map(|by| format!(" ({by})"));
            let text = format!(
                "proved off at {} by {}{}",
                format_time(proof.confirmed_at),
                proof.source,
                by.unwrap_or_default()
            );
            self.add_line(ExplanationTopic::Off, text);
        }
    }

    /// Adds the off confirmation that a person has written on the host.
    fn add_manual_confirmation(&mut self, host: &HostSnapshot) {
        let text = match OffConfirmation::read_from_host(host) {
            None => return,
            Some(Ok(said)) => format!(
                "{} confirmed that the host is off, at {}: {}",
                said.by,
                format_time(said.at),
                said.reason
            ),
            Some(Err(bad)) => format!("annotation dogwatch.dev/confirmed-off {bad}"),
        };
        self.add_line(ExplanationTopic::Off, text);
    }

    pub(super) fn add_node_backup(&mut self) {
        let Some(kept) = &self.remediation.host_backup else {
            return;
        };
        let backup = kept.node_backup();
        let text = format!(
            "{} labels, {} annotations and {} taints of node {} are saved in Dogwatch's namespace",
            backup.labels.len(),
            backup.annotations.len(),
            backup.taints.len(),
            backup.node
        );
        self.add_line(ExplanationTopic::Kept, text);
    }
}

/// The lines of the host's explanation that are about its present power.
fn power_lines(host: &HostSnapshot, now: Now) -> Vec<ExplanationLine> {
    let view = HostReportInput {
        host: host.clone(),
        owner: HostOwner::NotYetKnown,
        shared_with: Vec::new(),
        node: None,
        controller: ObservedController::Unknown,
    };
    let lines = explain_host(&view, now).chain.into_iter();
    let of_power = [
        ExplanationTopic::Power,
        ExplanationTopic::Off,
        ExplanationTopic::Command,
    ];
    let mut lines: Vec<ExplanationLine> = lines
        .filter(|line| of_power.contains(&line.topic) || line.topic == ExplanationTopic::Says)
        .collect();
    // Only the power controller's lines: a remediation has its own line for its decision.
    for line in lines
        .iter_mut()
        .filter(|line| line.topic == ExplanationTopic::Says)
    {
        line.topic = ExplanationTopic::Power;
    }
    lines
}
