//! Whether the Node is well again. Source: specification §4.2: a healed network must not fence forty healthy
//! nodes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::super::action::Look;
use super::super::beat::Beats;
use super::super::case::Decision;
use super::super::reason;
use super::super::record::Step;
use super::super::seen::Fresh;
use super::flow::Flow;
use crate::decision::{Severity, because};
use crate::name::NodeName;
use crate::reboot::NodeSeen;

/// By how much the kubelet's clock may be behind the API server's.
///
/// The request's time is the API server's, the sign of life's is the kubelet's. The safe side is to take the
/// Node for healthy: that only delays, for a Ready of a dead kubelet falls within some 50 s (the node
/// controller goes by when *it* saw the last renewal), and then the request is served. The other side cuts the
/// power of a machine that works. Hence a minute: as long as a false Ready can last.
const SKEW: SignedDuration = SignedDuration::from_mins(1);

/// How long fresh reads that found a Node healthy hold, as long as the watch says Ready too.
const HOLDS: Duration = Duration::from_mins(1);

/// How often a Node's sign of life is read until it is seen to move: a kubelet gives one each 10 s.
const BEAT_EVERY: Duration = Duration::from_secs(5);

/// For how long a Node that is well again may fail once more and be fenced for this request: a kubelet that is
/// restarted says Ready for a moment. Then the request has ended.
const WELL_FOR_GOOD: Duration = Duration::from_mins(5);

/// What is known of the Node's health.
enum Health {
    /// It is Ready, and gave a sign of life later than the request; until when that holds, if it does not go
    /// by the watch alone.
    Well(Option<Duration>),
    /// It is not.
    Unwell,
    /// The watch says Ready; how late its last sign of life is has to be read.
    Unread,
}

impl Flow<'_> {
    /// A request that finds its Node well when it is first seen has ended: one that was made in advance would
    /// cut the power when the Node fails for a moment, long afterwards. Only a sign of life that is seen to move
    /// shows it: clocks differ, and the Ready of a dead kubelet stands for a while.
    pub(super) fn well_at_first_sight(&mut self) -> Option<Decision> {
        let node = self.case.node.as_ref().filter(|node| node.ready)?;
        if self.status.started_at.is_some() || self.case.is_keyed() {
            return None;
        }
        match self.health() {
            Health::Unwell => None,
            Health::Unread => Some(self.read()),
            Health::Well(_) if self.is_seen_alive(&node.uid) => {
                self.take_up();
                Some(self.ends_well())
            }
            Health::Well(_) => Some(self.watch_beat(node.name.clone())),
        }
    }

    /// Its sign of life was seen to move since the request was first seen.
    fn is_seen_alive(&self, uid: &String) -> bool {
        let beats = self.ctx.known.beats.as_ref();
        let beats = beats.filter(|beats| beats.newest().node_uid.as_ref() == Some(uid));
        beats.is_some_and(|beats| beats.moved().is_some())
    }

    fn watch_beat(&self, node: NodeName) -> Decision {
        let text = "the Node is Ready: waits for its next sign of life";
        let decision = because(reason::TAKEN_UP, text);
        let asked = self.ctx.known.beats.as_ref().map(Beats::asked);
        let due = asked.map_or(Duration::ZERO, |asked| asked + BEAT_EVERY);
        if self.ctx.now.mono < due {
            return decision.wake(due, "the Node's next sign of life");
        }
        let newer_than = asked.map_or(Duration::ZERO, |asked| asked + Duration::from_nanos(1));
        decision.look(Look::Beat { node, newer_than })
    }

    fn read(&self) -> Decision {
        let is_held = self
            .ctx
            .known
            .since
            .is_some_and(|(reason, _)| reason == reason::NODE_HEALTHY);
        let reason = if is_held {
            reason::NODE_HEALTHY
        } else {
            reason::TAKEN_UP
        };
        let text = "the Node is Ready: its signs of life are read";
        because(reason, text).look(self.ctx.look_fresh())
    }

    /// The request is answered, and never served later.
    fn ends_well(&mut self) -> Decision {
        self.ends(Step::Withdrawn);
        let text = "the Node is Ready and gives signs of life: nothing is done; a health check that finds it \
                    failed later makes another request";
        because(reason::NODE_HEALTHY, text).say(Severity::Normal)
    }

    /// Before the first power-off: a Node that is Ready again needs none. Should it fail again soon, it is
    /// served.
    pub(super) fn well(&mut self) -> Option<Decision> {
        let was_off = self
            .status
            .timeline
            .iter()
            .any(|it| it.step == Step::OffProved);
        if was_off || self.case.is_keyed() {
            return None;
        }
        match self.health() {
            Health::Unwell => None,
            Health::Unread => Some(self.read()),
            Health::Well(until) => {
                let for_good = self.ctx.stood(reason::NODE_HEALTHY) + WELL_FOR_GOOD;
                if self.ctx.now.mono >= for_good {
                    return Some(self.ends_well());
                }
                self.end = Some(Step::Withdrawn);
                let text = "the Node is Ready, with a sign of life later than the request: nothing is done, \
                            unless it fails again within 5 minutes";
                let decision = because(reason::NODE_HEALTHY, text);
                let decision = decision.wake(for_good, "a Node that stays well");
                Some(match until {
                    Some(until) => decision.wake(until, "the Node's next sign of life"),
                    None => decision,
                })
            }
        }
    }

    fn health(&self) -> Health {
        let watched = self.case.node.as_ref().filter(|node| node.ready);
        if watched.is_some_and(|node| self.is_later(posted(node))) {
            return Health::Well(None);
        }
        let holds = |read: &&Fresh| self.ctx.now.mono < read.taken + HOLDS;
        let read = match watched {
            Some(_) => self.ctx.known.fresh.as_ref().filter(holds),
            None => self.ctx.fresh(),
        };
        match (read, watched) {
            (Some(read), _) if self.is_well(read) => Health::Well(Some(read.taken + HOLDS)),
            (Some(_), _) | (None, None) => Health::Unwell,
            (None, Some(_)) => Health::Unread,
        }
    }

    fn is_well(&self, read: &Fresh) -> bool {
        let node = read.node.as_ref().filter(|node| node.ready);
        node.is_some_and(|node| {
            let beat = &read.beat;
            let newest = [beat.renewed, beat.posted, posted(node)];
            self.is_later(newest.into_iter().flatten().max())
        })
    }

    /// Later than the request, as far as two clocks tell.
    fn is_later(&self, sign: Option<Timestamp>) -> bool {
        let since = |sign: Timestamp| sign.duration_since(self.request.created);
        sign.is_some_and(|sign| since(sign) > -SKEW)
    }
}

/// `lastHeartbeatTime` of Ready.
fn posted(node: &NodeSeen) -> Option<Timestamp> {
    let mut conditions = node.conditions.iter();
    let ready = conditions.find(|condition| condition.kind == "Ready")?;
    ready.last_heartbeat
}
