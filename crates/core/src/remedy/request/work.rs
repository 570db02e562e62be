//! A request that is wanted: the table, and what goes around each of its rows. Source: specification §4.2.

use std::sync::Arc;
use std::time::Duration;

use super::super::action::{Action, Look};
use super::super::case::Decision;
use super::super::clear::{self, Release};
use super::super::link::Problem;
use super::super::record::Step;
use super::super::seen::Leftovers;
use super::super::table::{Bits, Move, by_request};
use super::super::{marked, prepare, reason};
use super::flow::Flow;
use super::observe::LEFTOVERS_EVERY;
use super::{Attempt, StrategyType};
use crate::decision::{Severity, because};
use crate::power::{Host, PowerNow};
use crate::reboot::NodeSeen;

impl Flow<'_> {
    /// What the table says, with "needs remediation" 1.
    pub(super) fn work(&mut self) -> Decision {
        if let Some((reason, text)) = self.case.trouble.clone() {
            let taken = self.take_key_away(reason, &text);
            return taken.map_or_else(
                || self.blocked(reason, &text),
                |decision| decision.say(Severity::Warning),
            );
        }
        let host = match &self.case.host {
            Ok(host) => Arc::clone(host),
            Err((reason, text)) => return self.blocked(reason, text),
        };
        if let Some((reason, text)) = self.replaced() {
            return self.blocked(reason, &text);
        }
        if let Some(decision) = self.well() {
            return decision;
        }
        if prepare::is_of_a_person(&self.ctx) {
            return self.take_over(&host);
        }
        match by_request(self.bits()) {
            Move::AddKey => self.add_key(&host),
            Move::Release => self.release(),
            // Both are rows of a request that is served: it is seen so before the table is asked.
            Move::RemoveNeed | Move::RemoveKey => self.come_back(),
            Move::Nothing if self.case.is_keyed() => {
                self.until_timeout(marked::going_off(&self.ctx, self.ctx.power()))
            }
            Move::Nothing => {
                let text = format!(
                    "whether host {} is on is not known, so nothing is asked of it: {}{}",
                    host.name,
                    self.ctx.power_says(),
                    self.ctx.say_so()
                );
                self.blocked(reason::POWER_UNKNOWN, &text)
            }
        }
    }

    fn bits(&self) -> Bits {
        Bits {
            node: self.is_there(),
            needs: true,
            power: self.ctx.power(),
            key: self.case.is_keyed(),
        }
    }

    /// Another Node of that name is there, and not because we deleted the first.
    fn replaced(&self) -> Option<Problem> {
        let timeline = &self.status.timeline;
        let was_released = timeline.iter().any(|it| it.step == Step::Released);
        if was_released || self.case.is_keyed() || self.target().is_some() {
            return None;
        }
        let node = self.case.node.as_ref()?;
        let text = format!(
            "node {} was deleted and made anew since the request was taken up: delete the request; a health \
             check that finds the new one failed makes another",
            node.name
        );
        Some((reason::NODE_REPLACED, text))
    }

    /// Nothing can be begun, and no guard is the reason: time runs, so that whoever asked hears of it.
    fn blocked(&mut self, reason: &'static str, text: &str) -> Decision {
        let open = self.status.attempt.filter(|it| it.key_at.is_none());
        let attempt = match open {
            Some(attempt) if !self.has_expired(&attempt) => attempt,
            Some(_) if self.is_used_up() => return self.give_up(text),
            Some(_) | None => self.begin(),
        };
        let decision = because(reason, text);
        let decision = decision.wake(self.deadline(&attempt), "the end of this attempt");
        // Not known is how every host begins.
        if reason == reason::POWER_UNKNOWN {
            decision
        } else {
            decision.say(Severity::Warning)
        }
    }

    /// The next attempt begins.
    pub(super) fn begin(&mut self) -> Attempt {
        let attempt = Attempt {
            number: self
                .status
                .attempt
                .map_or(1, |it| it.number.saturating_add(1)),
            started_at: self.wall(),
            key_at: None,
            off_at: None,
            released_at: None,
            key_removed_at: None,
        };
        self.status.attempt = Some(attempt);
        attempt
    }

    /// Guards, Lease, mark and fresh reads; then the attempt is written down, and the key goes on.
    fn add_key(&mut self, host: &Host) -> Decision {
        // What is held back by a guard uses no attempt up. Half its time is left for a BMC that does not
        // answer for a moment: that does.
        let is_late = |it: &Attempt| self.ctx.now.since(it.started_at) >= self.strategy.timeout / 2;
        if let Some(attempt) = self.status.attempt.filter(is_late) {
            let started_at = self.wall();
            self.status.attempt = Some(Attempt {
                started_at,
                ..attempt
            });
        }
        let (fresh, host) = match prepare::prepare(&self.ctx, host, self.strategy.kind) {
            Ok(ready) => ready,
            Err(decision) => return decision,
        };
        if self.status.attempt.is_none() {
            self.begin();
        }
        self.take_boot(fresh.node.as_deref());
        prepare::add_key(&self.ctx, host, self.record(Step::KeyAdded))
    }

    /// The key is a person's, with their word: its boot and its record are what our own would have.
    fn take_over(&mut self, host: &Arc<Host>) -> Decision {
        let node = self.target().cloned();
        self.take_boot(node.as_deref());
        let is_off = self.status.attempt.is_some_and(|it| it.off_at.is_some());
        let step = if is_off {
            Step::OffProved
        } else {
            Step::KeyAdded
        };
        prepare::take_over(&self.ctx, host, self.record(step))
    }

    /// The boot that is to be ended is the one that runs now.
    fn take_boot(&mut self, node: Option<&NodeSeen>) {
        let Some(node) = node else { return };
        self.status.node_uid = Some(node.uid.clone());
        if let Some(boot_id) = &node.boot_id {
            self.status.boot_id = Some(boot_id.to_string());
        }
    }

    /// The host is off, and the workloads are still there.
    fn release(&mut self) -> Decision {
        let how = self.strategy.kind;
        let is_tainted = self.target().is_some_and(|node| node.out_of_service);
        if how == StrategyType::OutOfServiceTaint && is_tainted {
            return self.wait_for_leftovers();
        }
        let cleared = match clear::clear(&self.ctx, how) {
            Ok(cleared) => cleared,
            Err(decision) => return self.until_timeout(decision),
        };
        // It may have rebooted by itself after the key came: the boot that ends is the last one before off.
        if let Some(fresh) = self.ctx.fresh() {
            self.take_boot(fresh.node.as_deref());
        }
        let tainted_at = self.status.tainted_at.unwrap_or_else(|| self.second());
        let reason = match how {
            StrategyType::DeleteNode => reason::RELEASED,
            StrategyType::OutOfServiceTaint => {
                self.status.tainted_at = Some(tainted_at);
                reason::RELEASING
            }
        };
        let text = clear::said(&self.ctx, &cleared);
        let release = Release {
            cleared,
            how,
            tainted_at,
        };
        because(reason, text)
            .act(Action::Release(release))
            .say(Severity::Normal)
    }

    /// This moment in whole seconds, as Kubernetes keeps `timeAdded`.
    fn second(&self) -> jiff::Timestamp {
        let now = self.ctx.now.wall;
        jiff::Timestamp::from_second(now.as_second()).unwrap_or(now)
    }

    /// The taint stands: Kubernetes deletes the pods and detaches the volumes.
    fn wait_for_leftovers(&self) -> Decision {
        let left = self.ctx.known.leftovers.as_ref();
        let text = left.map_or_else(
            || "looking what is left on the Node".to_owned(),
            |left| format!("the Node is tainted; left are {}", named(left)),
        );
        let decision = self.until_timeout(because(reason::RELEASING, text));
        let Some(node) = self.case.node_name.clone() else {
            return decision;
        };
        let taken = left.map(|left| left.taken);
        let due = taken.map_or(Duration::ZERO, |taken| taken + LEFTOVERS_EVERY);
        if self.ctx.now.mono < due {
            return decision.wake(due, "what is left on the Node");
        }
        let newer_than = taken.unwrap_or(Duration::ZERO);
        decision.look(Look::Leftovers { node, newer_than })
    }

    /// The workloads are released: the key goes, the host comes on, the Node becomes Ready.
    pub(super) fn come_back(&mut self) -> Decision {
        let why = "the workloads are released";
        if let Some(decision) = self.take_key_away(reason::POWERING_ON, why) {
            return decision.say(Severity::Normal);
        }
        let decision = match (self.ctx.power(), self.kept_off()) {
            (PowerNow::On, _) => because(
                reason::WAITING_FOR_NODE,
                "the host is on; its Node is not Ready with a new boot yet",
            ),
            (PowerNow::Off | PowerNow::Unknown, Some(why)) => {
                let text = format!("nothing of ours holds the host off any more, but {why}");
                because(reason::POWERING_ON, text).say(Severity::Warning)
            }
            (PowerNow::Off | PowerNow::Unknown, None) => {
                let text = format!("the host is to come on: {}", self.ctx.power_says());
                because(reason::POWERING_ON, text)
            }
        };
        self.until_timeout(decision)
    }

    /// Decided again at the latest when the attempt's time is up.
    fn until_timeout(&self, decision: Decision) -> Decision {
        match &self.status.attempt {
            Some(attempt) => decision.wake(self.deadline(attempt), "the end of this attempt"),
            None => decision,
        }
    }
}

/// The first of each, and how many more.
fn named(left: &Leftovers) -> String {
    let of = |what: &str, names: &[String]| {
        let first: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
        match names.len() {
            0 => None,
            n if n > first.len() => Some(format!("{n} {what} ({}, …)", first.join(", "))),
            _ => Some(format!("{what} {}", first.join(", "))),
        }
    };
    let parts = [
        of("pods", &left.pods),
        of("volume attachments", &left.attachments),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        "none, by an answer that is old".to_owned()
    } else {
        parts.join(" and ")
    }
}
