//! What holds a host off, or holds that back: guards, the Lease, the key, the power, the proof.

use super::chain::Chain;
use super::judged::around;
use crate::Now;
use crate::explain::words::{moment, some};
use crate::explain::{ControllerSeen, HostView, Line, Topic, explain_host};
use crate::power::{Confirmation, Host, Owner};
use crate::remedy::{Config, KeyOwner, Stage, cases};

/// How many hosts are named.
const NAMED: usize = 5;

impl Chain<'_> {
    /// What a new key would be held back by, with its numbers.
    pub(super) fn guards(&mut self) {
        if self.case.is_keyed() || !self.case.needs {
            return;
        }
        let all = cases(&self.view.world);
        let around = around(self.view, &all, self.now);
        let others = around.fenced.iter();
        let others = others.filter(|other| other.subject != self.case.subject);
        let off: Vec<String> = others
            .filter(|other| other.stage == Stage::HeldOff)
            .map(|other| other.host.to_string())
            .collect();
        let names = if off.is_empty() {
            String::new()
        } else {
            format!(": {}", some(&off, NAMED))
        };
        let text = format!(
            "{} hosts are held off for remediation, and --max-fenced is {} where the controller is not told otherwise{names}",
            off.len(),
            Config::default().max_fenced
        );
        self.add(Topic::Guard, text);
        if let Some(holder) = &around.control_plane_lock
            && self.case.control_plane
        {
            let text = format!("{holder} holds the control plane's lock for a planned reboot");
            self.add(Topic::Guard, text);
        }
    }

    pub(super) fn lease(&mut self) {
        let Some(name) = &self.case.node_name else {
            return;
        };
        let held = if self.case.leased {
            "is held: planned reboots count this node as out"
        } else {
            "is not held"
        };
        let text = format!("dogwatch-remedy-{name} {held}");
        self.add(Topic::Lock, text);
        if self.case.node.as_ref().is_some_and(|node| node.fenced) {
            let text = "the Node has annotation dogwatch.dev/fencing: nobody drains it";
            self.add(Topic::Lock, text);
        }
    }

    pub(super) fn key(&mut self) {
        let key = self.case.key.key();
        let text = match (self.case.is_keyed(), &self.case.key) {
            (true, KeyOwner::Unnamed) => format!("{key} stands on the host, and is not ours"),
            (true, KeyOwner::Machine(_) | KeyOwner::Node(_) | KeyOwner::Request(_)) => {
                format!("{key} stands on the host: it is held off")
            }
            (false, _) => format!("{key} is not on the host"),
        };
        self.add(Topic::Key, text);
    }

    /// The power side's own explanation of the host, as far as its power goes.
    pub(super) fn power(&mut self) {
        let Ok(host) = &self.case.host else {
            return;
        };
        for line in power_lines(host, self.now) {
            self.add(line.topic, line.text);
        }
    }

    pub(super) fn proof(&mut self) {
        if let Ok(host) = &self.case.host {
            self.word(host);
        }
        let request = self.case.request.as_ref();
        if let Some(proof) = request.and_then(|request| request.status.proof.as_ref()) {
            let by = proof.by.as_ref().map(|by| format!(" ({by})"));
            let text = format!(
                "proved at {} by {}{}",
                moment(proof.confirmed_at),
                proof.source,
                by.unwrap_or_default()
            );
            self.add(Topic::Off, text);
        }
    }

    /// A person's, where one stands on the host.
    fn word(&mut self, host: &Host) {
        let text = match Confirmation::read(host) {
            None => return,
            Some(Ok(said)) => format!(
                "{} says that the host is off, at {}: {}",
                said.by,
                moment(said.at),
                said.reason
            ),
            Some(Err(bad)) => format!("annotation dogwatch.dev/confirmed-off {bad}"),
        };
        self.add(Topic::Off, text);
    }

    pub(super) fn kept(&mut self) {
        let Some(kept) = &self.case.kept else {
            return;
        };
        let backup = kept.backup();
        let text = format!(
            "{} labels, {} annotations and {} taints of node {} are kept in Dogwatch's namespace",
            backup.labels.len(),
            backup.annotations.len(),
            backup.taints.len(),
            backup.node
        );
        self.add(Topic::Kept, text);
    }
}

/// Of the host's explanation what is about its power now.
fn power_lines(host: &Host, now: Now) -> Vec<Line> {
    let view = HostView {
        host: host.clone(),
        owner: Owner::NotYetKnown,
        shared_with: Vec::new(),
        node: None,
        controller: ControllerSeen::Unknown,
    };
    let lines = explain_host(&view, now).chain.into_iter();
    let of_power = [Topic::Power, Topic::Off, Topic::Command];
    let mut lines: Vec<Line> = lines
        .filter(|line| of_power.contains(&line.topic) || line.topic == Topic::Says)
        .collect();
    // The power controller's words: a remediation has words of its own.
    for line in lines.iter_mut().filter(|line| line.topic == Topic::Says) {
        line.topic = Topic::Power;
    }
    lines
}
