//! The wait for one's turn: in this process' queue, and then among all who want the group's lock.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::limit::Limit;
use dogwatch_core::lock::LeaseSeen;
use dogwatch_core::lock::api_lock::{self as rules, NotAllowed, Turn, TurnSeen};
use dogwatch_core::reboot::reason;
use dogwatch_k8s::Error;
use tokio::sync::watch;

use super::hold::max_of;
use super::queue::{InQueue, make_slots};
use super::request::{End, Request};
use super::shared::guard;
use super::target::Target;
use crate::lock::service::LockAnswer;

/// How long the first list of the group's Leases may take for one who does not want to wait.
const FIRST_SIGHT: Duration = Duration::from_secs(5);
/// How often shut gates are asked again.
const ASK_GATES_AGAIN: Duration = Duration::from_secs(10);
/// The wall clock may be set: a window's end is looked at again after this at the latest.
const CLOCK_CHECK: Duration = Duration::from_mins(5);

impl Request {
    /// Waits until it may write its id on a Lease, and answers which.
    pub(super) async fn turn(
        &mut self,
        target: &Target,
        place: &InQueue,
    ) -> Result<LeaseSeen, End> {
        if !self.wait.is_some() && !place.is_first() {
            let why = format!("{} wait before", place.before());
            return Err(End::Answer(LockAnswer::Busy { why }));
        }
        self.in_turn(place).await;
        let slots = Box::pin(self.slots(target)).await.map_err(End::Trouble)?;
        let mut leases = place.queue.leases();
        self.first_sight(&mut leases).await?;
        Box::pin(make_slots(&place.queue, self.shared.locks(), slots))
            .await
            .map_err(End::Trouble)?;
        let mut policies = self.shared.policies.subscribe();
        loop {
            let not = self.forbidden_now(target, &policies.borrow_and_update());
            if let Some(not) = not {
                return Err(self.not_allowed_or_again(&not));
            }
            let seen = leases.borrow_and_update().clone().unwrap_or_default();
            let (at, why) = match self.decide(&seen, slots, place) {
                Turn::Bid { lease } => {
                    return Box::pin(self.through_gates(target, place, *lease)).await;
                }
                Turn::At { at, why } => (at, why),
                Turn::Wait { why } => (self.shared.now().mono + CLOCK_CHECK, why),
            };
            if !self.wait.is_some() {
                return Err(End::Answer(LockAnswer::Busy { why }));
            }
            self.say(reason::LOCK_HELD, &why);
            tokio::select! {
                // The senders are held by the place and by `shared`.
                _ = leases.changed() => {}
                // The group, or its numbers, may be others now.
                _ = policies.changed() => return Err(End::Again),
                () = self.shared.setup.clock.sleep_until(at) => {}
            }
            self.in_turn(place).await;
        }
    }

    /// Waits until nobody is before it here.
    async fn in_turn(&self, place: &InQueue) {
        if !place.is_first() {
            let why = format!(
                "others wait before it for the lock of group {}",
                place.queue.group
            );
            self.say(reason::NOT_OUR_TURN, &why);
            place.first().await;
        }
    }

    fn decide(&self, leases: &[LeaseSeen], slots: u32, place: &InQueue) -> Turn {
        let holder = &self.trace.left.holder;
        let advertised = guard(&self.shared.advertised);
        let ours = |name: &_| advertised.contains(name) || place.queue.has(name);
        let seen = TurnSeen {
            holder,
            called_as: rules::called(leases, holder, ours),
            leases,
            slots,
            jitter: self.jitter,
            arrived: self.arrived,
            bid_after: self.bid_after,
        };
        rules::turn(&seen, self.shared.now())
    }

    /// How many slots there are for it.
    async fn slots(&mut self, target: &Target) -> Result<u32, Error> {
        if matches!(target.max, Limit::Percent(_)) {
            let policies = self.shared.policies.borrow().clone();
            self.group_size = self
                .shared
                .locks()
                .group_size(&target.group, &policies)
                .await?;
        }
        Ok(max_of(target, self.group_size))
    }

    async fn first_sight(
        &self,
        leases: &mut watch::Receiver<Option<Arc<Vec<LeaseSeen>>>>,
    ) -> Result<(), End> {
        let seen = leases.wait_for(Option::is_some);
        if self.wait.is_some() {
            // Its sender is held by the place.
            let _ = seen.await;
            return Ok(());
        }
        match tokio::time::timeout(FIRST_SIGHT, seen).await {
            Ok(_) => Ok(()),
            Err(_) => Err(End::Answer(LockAnswer::Unavailable {
                why: "the group's Leases cannot be listed; nothing is held, ask again".into(),
            })),
        }
    }

    /// Asked only when the lock is to be had: a thousand who wait for it ask nobody.
    async fn through_gates(
        &mut self,
        target: &Target,
        place: &InQueue,
        lease: LeaseSeen,
    ) -> Result<LeaseSeen, End> {
        let shut = self.shared.shut_gates(target).await;
        if shut.is_empty() {
            // It took time: somebody may have come before.
            return if place.is_first() {
                Ok(lease)
            } else {
                Err(End::Again)
            };
        }
        let not = NotAllowed::gates(&shut);
        tracing::info!(holder = %self.trace.left.holder, why = not.message, "waits");
        let end = self.not_allowed_or_again(&not);
        if matches!(end, End::Again) {
            tokio::time::sleep(ASK_GATES_AGAIN).await;
        }
        Err(end)
    }
}
