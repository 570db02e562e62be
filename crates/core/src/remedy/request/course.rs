//! A request's way beside the table: called off, over, back, ended. Source: specification §4.2.

use std::sync::Arc;

use super::super::action::Action;
use super::super::case::Decision;
use super::super::config::Config;
use super::super::machine::MachineApi;
use super::super::reason;
use super::super::record::Step;
use super::RequestStatus;
use super::flow::Flow;
use crate::decision::{Severity, because};
use crate::duration;
use crate::power::{self, PowerNow};

/// Why nothing more is asked of the host: a reason, and a sentence.
pub(super) struct CalledOff {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Flow<'_> {
    /// Whoever asked has taken it back, or it cannot be served.
    pub(super) fn called_off(&self) -> Option<CalledOff> {
        let off = |reason, message| Some(CalledOff { reason, message });
        if self.request.deleting {
            return off(reason::WITHDRAWN, "the request is deleted".to_owned());
        }
        if self.request.timed_out {
            let text = "the health check has given up on it (annotation nhc-timed-out)";
            return off(reason::TIMED_OUT, text.to_owned());
        }
        if self.status.ended_at.is_some() {
            return None;
        }
        if let Err(wrong) = &self.request.strategy {
            let text = format!("{wrong}: delete this request and make another one");
            return off(reason::BAD_REQUEST, text);
        }
        let text = self.another_host()?;
        off(reason::BAD_REQUEST, text)
    }

    /// The host that it was begun for is another one now.
    fn another_host(&self) -> Option<String> {
        let (name, uid) = self.status.host.as_ref()?;
        let host = self.case.host.as_ref().ok()?;
        let what = if host.name != *name {
            format!("its target is on host {} now", host.name)
        } else if host.uid != *uid {
            format!("host {name} was deleted and made anew")
        } else {
            return None;
        };
        Some(format!(
            "it was begun for host {name}, and {what}: delete this request; a health check that still wants \
             it makes another one"
        ))
    }

    /// Nothing more is asked; what was begun is brought to an end: the key goes, the host comes on, our taint
    /// goes with a new boot. Then nothing of ours is left, and the finalizer goes with a deletion.
    pub(super) fn wind_down(&mut self, off: &CalledOff) -> Decision {
        if let Some(decision) = self.take_key_away(off.reason, &off.message) {
            return decision.say(Severity::Normal);
        }
        if let Some(decision) = self.wait_for_power_on(off) {
            return decision;
        }
        if let Some(decision) = self.lift_taint() {
            return decision;
        }
        let is_bad = off.reason == reason::BAD_REQUEST;
        if self.status.started_at.is_some() && !is_bad {
            let was_off = self.was_off();
            self.ends(if was_off {
                Step::Failed
            } else {
                Step::Withdrawn
            });
        }
        self.lets_go = self.request.deleting;
        let decision = because(off.reason, self.last_words(off));
        if is_bad {
            decision.say(Severity::Warning)
        } else {
            decision
        }
    }

    /// What a person has to know when the request goes: of what stays off.
    fn last_words(&self, off: &CalledOff) -> String {
        let is_on = self.ctx.power() == PowerNow::On || !self.was_off() || self.is_back();
        if is_on {
            return off.message.clone();
        }
        let why = self.kept_off();
        let why = why.unwrap_or_else(|| "it was not seen on in time".to_owned());
        format!("{}; its host is off: {why}", off.message)
    }

    /// Our key goes from the host, whatever the power is: off and on both say so where nothing is needed, and
    /// a key that stays on a host that cannot be read would switch it off the moment that it can.
    pub(super) fn take_key_away(&self, reason: &'static str, why: &str) -> Option<Decision> {
        let host = self.case.host.as_ref().ok()?;
        if !self.case.is_keyed() {
            return None;
        }
        let key = self.case.key.key();
        let record = self.case.record.as_ref();
        let record = record.map(|_| self.record(Step::KeyRemoved));
        let text = format!("{why}; {key} is removed from host {}", host.name);
        Some(because(reason, text).act(Action::RemoveKey {
            host: Arc::clone(host),
            key,
            record,
        }))
    }

    /// A host that our key switched off, or still does (a reboot that was begun is finished), is seen on before
    /// it is forgotten, unless somebody else keeps it off.
    fn wait_for_power_on(&self, off: &CalledOff) -> Option<Decision> {
        let attempt = self.status.attempt.as_ref()?;
        let removed = attempt.key_removed_at?;
        let host = self.case.host.as_ref().ok()?;
        let is_awaited = match self.ctx.power() {
            PowerNow::On => host.status.is_reboot_pending(),
            PowerNow::Off => true,
            PowerNow::Unknown => self.was_off() || host.status.is_reboot_pending(),
        };
        if !is_awaited || self.kept_off().is_some() || self.is_back() {
            return None;
        }
        let left = Config::SAY_AFTER.checked_sub(self.ctx.now.since(removed))?;
        let text = format!(
            "{}; host {} is not seen on yet: {}",
            off.message,
            host.name,
            self.ctx.power_says()
        );
        let until = self.ctx.now.mono + left;
        Some(because(reason::POWERING_ON, text).wake(until, "a host that does not come on"))
    }

    /// The host was proved off in this attempt.
    fn was_off(&self) -> bool {
        self.status.attempt.is_some_and(|it| it.off_at.is_some())
    }

    /// Why the host stays off although our key is gone: that is not ours to end.
    pub(super) fn kept_off(&self) -> Option<String> {
        let host = self.case.host.as_ref().ok()?;
        let ours = self.case.key.key();
        if !host.online {
            return Some(format!("spec.online of host {} is false", host.name));
        }
        let others = power::requests(host).into_iter();
        let mut others = others.filter(|it| it.key.is_some() && it.name != ours);
        let other = others.find(|it| power::is_obeyed(host, it))?;
        Some(format!("{} holds host {} off", other.name, host.name))
    }

    /// Our taint goes when a new boot is Ready, and not before; or with its Node.
    pub(super) fn lift_taint(&mut self) -> Option<Decision> {
        let tainted_at = self.status.tainted_at?;
        let node = self.target().filter(|node| node.out_of_service).cloned();
        let Some(node) = node else {
            self.status.tainted_at = None;
            return None;
        };
        if self.is_back() {
            self.status.tainted_at = None;
            let text = format!(
                "node {} is Ready with a new boot: its taint is lifted",
                node.name
            );
            self.first.push(Action::Untaint { node, tainted_at });
            return Some(because(reason::RESTORING, text));
        }
        let text = format!(
            "the taint out-of-service stays on node {} until a new boot of it is Ready",
            node.name
        );
        Some(because(reason::WAITING_FOR_NODE, text))
    }

    /// A boot other than the one that was to be ended is Ready. Source: specification §1 S4.
    pub(super) fn is_back(&self) -> bool {
        let was = |step| self.status.timeline.iter().any(|it| it.step == step);
        let Some(node) = self.case.node.as_ref().filter(|node| node.ready) else {
            return false;
        };
        if self.case.is_keyed() || !was(Step::KeyAdded) {
            return false;
        }
        match (&self.status.boot_id, &node.boot_id) {
            (Some(old), Some(new)) => old != new.as_str(),
            // The Node told none, or was not there: another one is another boot, for its host was off.
            (None, Some(_)) => {
                was(Step::Released) && self.status.node_uid.as_ref() != Some(&node.uid)
            }
            (Some(_) | None, None) => false,
        }
    }

    /// It came back.
    pub(super) fn succeed(&mut self) -> Decision {
        if let Some(decision) = self.lift_taint() {
            return decision;
        }
        self.ends(Step::NodeReady);
        let text = "the Node is Ready with a new boot";
        because(reason::REMEDIATED, text).say(Severity::Normal)
    }

    /// Why this attempt is over.
    pub(super) fn over(&self) -> Option<String> {
        let attempt = self.status.attempt.filter(|it| it.key_at.is_some())?;
        let number = attempt.number;
        if self.has_expired(&attempt) {
            let timeout = duration::format(self.strategy.timeout);
            return Some(format!("attempt {number} took longer than {timeout}"));
        }
        // An attempt puts its key once: so no attempt cuts the power twice.
        let is_spoiled = !self.case.is_keyed() && attempt.released_at.is_none();
        is_spoiled.then(|| format!("the key of attempt {number} was removed before it was served"))
    }

    /// The key goes; then all again, as often as is allowed.
    pub(super) fn next(&mut self, why: &str) -> Decision {
        if let Some(decision) = self.take_key_away(reason::RETRYING, why) {
            return decision.say(Severity::Warning);
        }
        if self.is_used_up() {
            return self.give_up(why);
        }
        self.begin();
        self.work()
    }

    /// No attempt is left after this one. The limit may have been lowered meanwhile.
    pub(super) fn is_used_up(&self) -> bool {
        let number = self.status.attempt.map_or(0, |it| it.number);
        number > self.strategy.retry_limit
    }

    /// All attempts are used up: the Machine is its owner's again.
    pub(super) fn give_up(&mut self, why: &str) -> Decision {
        let number = self.status.attempt.map_or(0, |it| it.number);
        let text = format!("{why}; that was the last of {number}");
        let machine = self.case.machine.as_ref();
        if let Some(machine) = machine.filter(|it| it.name.api == MachineApi::ClusterApi) {
            self.first.push(Action::HandBack {
                machine: Arc::clone(machine),
                message: text.clone(),
            });
        }
        self.ends(Step::Failed);
        because(reason::ATTEMPTS_USED_UP, text).say(Severity::Warning)
    }

    /// It ended before; what is left is cleared away.
    pub(super) fn after_the_end(&mut self) -> Decision {
        let step = ended_with(&self.status).unwrap_or(Step::Failed);
        self.end = Some(step);
        let (reason, text) = match step {
            Step::NodeReady => (reason::REMEDIATED, "the Node is Ready with a new boot"),
            Step::Withdrawn => (
                reason::NODE_HEALTHY,
                "the Node was well before anything was switched: nothing is done for this request any more",
            ),
            Step::Failed
            | Step::Requested
            | Step::KeyAdded
            | Step::OffProved
            | Step::Released
            | Step::KeyRemoved
            | Step::PoweredOn => (reason::ATTEMPTS_USED_UP, "all attempts are used up"),
        };
        if let Some(decision) = self.take_key_away(reason, text) {
            return decision;
        }
        if let Some(decision) = self.lift_taint() {
            return decision;
        }
        because(reason, text)
    }

    /// It ends so, unless it ended before.
    pub(super) fn ends(&mut self, step: Step) {
        self.end = Some(ended_with(&self.status).unwrap_or(step));
        if self.status.ended_at.is_none() {
            self.status.ended_at = Some(self.wall());
            self.stamp(step);
        }
    }
}

/// How it ended.
pub(super) fn ended_with(status: &RequestStatus) -> Option<Step> {
    status.ended_at?;
    let mut newest = status.timeline.iter().rev();
    newest.find(|it| it.step.is_end()).map(|it| it.step)
}
