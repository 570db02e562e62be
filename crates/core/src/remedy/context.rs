//! What a decision starts from, with the questions that all its parts ask.

use std::time::Duration;

use super::action::Look;
use super::around::Around;
use super::case::{Case, Decision};
use super::config::Config;
use super::reason;
use super::record::{Record, Stamp, Step};
use super::seen::{Fresh, Known, PowerSeen};
use super::table::Bits;
use crate::Now;
use crate::decision::{Severity, because};
use crate::power::{Host, OffProof, PowerNow, Request, requests};

/// The arguments of [`super::decide`].
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) case: &'a Case,
    pub(super) known: &'a Known,
    pub(super) around: &'a Around,
    pub(super) config: &'a Config,
    pub(super) now: Now,
}

impl<'a> Context<'a> {
    /// What the table asks.
    pub(super) fn bits(&self) -> Bits {
        Bits {
            node: self.case.node.is_some(),
            needs: self.case.needs,
            power: self.power(),
            key: self.case.is_keyed(),
        }
    }

    /// On or off; off as well by a proof for our key where nothing can be read: a person's word.
    pub(super) fn power(&self) -> PowerNow {
        match self.power_now() {
            PowerNow::Unknown if self.proof().is_some() => PowerNow::Off,
            now @ (PowerNow::On | PowerNow::Off | PowerNow::Unknown) => now,
        }
    }

    fn power_now(&self) -> PowerNow {
        let power = self.known.power.as_ref();
        power.map_or(PowerNow::Unknown, |power| power.now)
    }

    /// What the power side says of the host.
    pub(super) fn power_says(&self) -> String {
        let because = self
            .known
            .power
            .as_ref()
            .and_then(|power| power.because.as_ref());
        because.map_or_else(
            || "its power was not read yet".to_owned(),
            |(reason, text)| format!("{reason}: {text}"),
        )
    }

    /// What a person can do about a power that cannot be read.
    pub(super) fn say_so(&self) -> String {
        let host = self.case.host.as_ref().ok();
        host.map_or_else(String::new, |host| {
            format!(
                "; once you have made sure that it is off, say so: dogwatch confirm-off {}",
                host.name
            )
        })
    }

    /// When the first of the newest unbroken readings of off was asked.
    pub(super) fn off_since(&self) -> Option<Duration> {
        let power: &PowerSeen = self.known.power.as_ref()?;
        power.off_since
    }

    /// The proof that the host is off, later than our key as it stands on the host that is watched.
    pub(super) fn proof(&self) -> Option<&'a OffProof> {
        let proof = self.known.power.as_ref()?.proof.as_ref()?;
        let host = self.case.host.as_ref().ok()?;
        self.proves(proof, host).then_some(proof)
    }

    /// Whether it is of this host, and later than our key as it stands there.
    pub(super) fn proves(&self, proof: &OffProof, host: &Host) -> bool {
        let is_same = *proof.host() == host.name && proof.uid() == host.uid;
        is_same && self.request(host).is_some_and(|key| proof.is_for(&key))
    }

    /// Our key on this host, as the power side names it.
    fn request(&self, host: &Host) -> Option<Request> {
        let name = self.case.key.key();
        let is_ours = self.case.key.is_on(host);
        let mut requests = requests(host).into_iter();
        requests.find(|request| is_ours && request.name == name)
    }

    /// Fresh reads, if they are young enough to rest a write on.
    pub(super) fn fresh(&self) -> Option<&'a Fresh> {
        let fresh = self.known.fresh.as_ref()?;
        (self.now.mono < Self::until(fresh)).then_some(fresh)
    }

    /// Until when something may rest on these reads.
    pub(super) fn until(fresh: &Fresh) -> Duration {
        fresh.taken + Config::RELEASE_WITHIN
    }

    /// Asks for reads to rest a write on.
    pub(super) fn look_fresh(&self) -> Look {
        let newer_than = self.now.mono.saturating_sub(Config::RELEASE_WITHIN);
        let newer_than = match &self.known.fresh {
            // Not the ones that were just found wanting.
            Some(fresh) => newer_than.max(fresh.taken + Duration::from_nanos(1)),
            None => newer_than,
        };
        Look::Fresh { newer_than }
    }

    /// A step that is done now.
    pub(super) fn stamp(&self, step: Step) -> Stamp {
        let at = crate::time::micros(self.now.wall);
        Stamp { step, at }
    }

    /// The wall clock at a monotonic moment that has passed.
    pub(super) fn wall(&self, mono: Duration) -> jiff::Timestamp {
        let ago = self.now.mono.saturating_sub(mono);
        let ago = jiff::SignedDuration::try_from(ago).unwrap_or(jiff::SignedDuration::MAX);
        let at = self.now.wall.checked_sub(ago).unwrap_or(self.now.wall);
        crate::time::micros(at)
    }

    /// The time of day at a monotonic moment that lies ahead, in whole seconds: two looks at two clocks differ
    /// by less, and a sentence is to stay as it was.
    pub(super) fn clock(&self, mono: Duration) -> String {
        let at = self.now.plus(mono.saturating_sub(self.now.mono));
        let half = jiff::SignedDuration::from_millis(500);
        let at = at.checked_add(half).unwrap_or(at);
        at.strftime("%H:%M:%SZ").to_string()
    }

    /// The remediation under way, as the host remembers it.
    pub(super) fn open_record(&self) -> Option<&'a Record> {
        let record = self.case.record.as_ref();
        record.filter(|record| record.ended().is_none())
    }

    /// What is in the way is said at once.
    pub(super) fn refuse((reason, message): (&'static str, String)) -> Decision {
        because(reason, message).say(Severity::Warning)
    }

    /// Why nothing may be begun or released.
    pub(super) fn trouble(&self) -> Option<Decision> {
        let trouble = self.case.trouble.clone()?;
        Some(Self::refuse(trouble))
    }

    /// What this process has seen stand for so long for this reason; and when it will have.
    pub(super) fn stood(&self, reason: &'static str) -> Duration {
        let since = self.known.since.filter(|(same, _)| *same == reason);
        since.map_or(self.now.mono, |(_, since)| since)
    }

    /// Signs of life are looked at: from the key on, and again once the host was read off.
    pub(super) fn look_beat(&self, decision: Decision) -> Decision {
        let Some(node) = &self.case.node else {
            return decision;
        };
        let off_since = self.off_since().unwrap_or_default();
        let newer_than = match &self.known.beats {
            None => off_since,
            Some(beats) if beats.newest().node_uid.as_ref() != Some(&node.uid) => {
                off_since.max(beats.asked() + Duration::from_nanos(1))
            }
            Some(beats) if beats.asked() < off_since => off_since,
            Some(_) => return decision,
        };
        let node = node.name.clone();
        decision.look(Look::Beat { node, newer_than })
    }

    /// Nothing for now; `reason` is one of those that say that nothing is to be done.
    pub(super) fn rest(text: impl Into<String>) -> Decision {
        because(reason::NOT_NEEDED, text)
    }
}
