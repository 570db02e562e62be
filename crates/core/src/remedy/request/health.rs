//! Whether the Node is well again. Source: specification §4.2: a healed network must not fence forty healthy
//! nodes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::super::case::Decision;
use super::super::reason;
use super::super::record::Step;
use super::super::seen::Fresh;
use super::flow::Flow;
use crate::decision::because;
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
    /// Before the first power-off: a Node that is Ready again needs none. It is no end: should it fail again
    /// while the request stands, it is served.
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
            Health::Unread => {
                let text = "the Node is Ready: its signs of life are read";
                Some(because(reason::TAKEN_UP, text).look(self.ctx.look_fresh()))
            }
            Health::Well(until) => {
                self.end = Some(Step::Withdrawn);
                let text = "the Node is Ready, with a sign of life later than the request: nothing is done, \
                            unless it fails again";
                let decision = because(reason::NODE_HEALTHY, text);
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
