//! The Leases of the rollout's groups, as an API server would keep them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::lock::{
    self, BidPause, HeldLockLease, HolderId, LockRecord, LockWaiter, ObservedLease,
};
use dogwatch_core::name::GroupName;

/// Every group's slots and waiters.
#[derive(Debug, Default)]
pub(super) struct SlotLeases {
    version: u64,
    /// The version of the latest change in each group.
    group_versions: BTreeMap<GroupName, u64>,
    /// How many slots each group has: each of thousands of nodes asks for them.
    slots: BTreeMap<GroupName, u32>,
    leases: BTreeMap<(GroupName, u32), ObservedLease>,
    holders: BTreeMap<HolderId, (GroupName, u32)>,
    free: BTreeMap<GroupName, BTreeSet<u32>>,
    held: BTreeMap<GroupName, HeldSlots>,
    /// The slot of each group whose holder made room last.
    last_room: BTreeMap<GroupName, u32>,
    waiting: BTreeMap<GroupName, BTreeSet<WaiterPlace>>,
}

/// How long after a release all waiters look at a Lease that no node next in line has taken.
const NEXT_IN_LINE_TIMEOUT: Duration = Duration::from_secs(1);

/// When a free Lease is offered to all: after those that its last holder named, or after the longest
/// pause of a Lease that was given back over budget, in which nobody bids.
pub(super) fn offer_delay(yield_count: u32) -> Duration {
    if yield_count == 0 {
        return NEXT_IN_LINE_TIMEOUT;
    }
    BidPause::after_yield(yield_count, 1.0, Duration::ZERO).until
}

/// The held slots of a group, and how many of their holders have which maximum.
#[derive(Debug, Default)]
struct HeldSlots {
    slots: BTreeSet<u32>,
    maxima: BTreeMap<u32, u32>,
}

impl HeldSlots {
    fn add(&mut self, slot: u32, max: u32) {
        self.slots.insert(slot);
        *self.maxima.entry(max).or_default() += 1;
    }

    fn remove(&mut self, slot: u32, max: u32) {
        if self.slots.remove(&slot) {
            let holders = self.maxima.entry(max).or_default();
            *holders -= 1;
            if *holders == 0 {
                self.maxima.remove(&max);
            }
        }
    }

    /// Whether the holders are as many as the smallest maximum among them allows.
    fn is_full(&self) -> bool {
        let smallest = self.maxima.first_key_value();
        smallest
            .is_some_and(|(max, _)| usize::try_from(*max).is_ok_and(|it| self.slots.len() >= it))
    }
}

/// A waiter in the order of the core. If the policy considers zones, they come before that order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WaiterPlace(pub(super) LockWaiter);

impl Ord for WaiterPlace {
    fn cmp(&self, other: &Self) -> Ordering {
        lock::compare_waiters(&self.0, &other.0)
    }
}

impl PartialOrd for WaiterPlace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How a holder releases its lock.
pub(super) enum ReleaseKind {
    /// It bid and then found the group over budget: it releases at once and names no next in line.
    OverBudget,
    /// It names the next in line, waiters of its own zone first.
    Done {
        /// The holder's zone, if its policy considers zones.
        zone: Option<String>,
    },
}

impl SlotLeases {
    pub(super) fn ensure_slots(&mut self, group: &GroupName, slots: u32) -> u64 {
        let there = self.slots.get(group).copied().unwrap_or_default();
        for slot in there..slots {
            let lease = self.new_lease(group, slot);
            self.leases.insert((group.clone(), slot), lease);
            self.free.entry(group.clone()).or_default().insert(slot);
        }
        if slots > there {
            self.slots.insert(group.clone(), slots);
        }
        u64::from(slots.saturating_sub(there))
    }

    fn record_change(&mut self, group: &GroupName) {
        self.version += 1;
        self.group_versions.insert(group.clone(), self.version);
    }

    /// The version of the latest change in the group.
    pub(super) fn group_version(&self, group: &GroupName) -> u64 {
        self.group_versions.get(group).copied().unwrap_or_default()
    }

    fn new_lease(&mut self, group: &GroupName, slot: u32) -> ObservedLease {
        self.record_change(group);
        ObservedLease {
            name: dogwatch_api::lease::slot_name(group.as_str(), slot),
            slot,
            uid: format!("lease-{group}-{slot}"),
            resource_version: self.version.to_string(),
            holder: None,
            record: None,
            next_waiters: Vec::new(),
            yield_count: 0,
            leftover: false,
            freed_at: None,
            room_since: None,
        }
    }

    /// Returns the Leases that a node sees if it has looked since `since`: its own Lease, otherwise
    /// the free ones and the last one whose holder made room, otherwise (or if the group is full)
    /// one held Lease as an example of all.
    pub(super) fn visible_leases(
        &self,
        group: &GroupName,
        me: &HolderId,
        since: Duration,
    ) -> Vec<ObservedLease> {
        if let Some(key) = self.holders.get(me) {
            return vec![self.leases[key].clone()];
        }
        if self.is_full(group) {
            return self.first_held_lease(group).into_iter().collect();
        }
        let free = self.free.get(group).into_iter().flatten();
        let last = self.last_room.get(group).into_iter();
        // The last one may be free still.
        let slots: BTreeSet<u32> = free.chain(last).copied().collect();
        let mut seen: Vec<ObservedLease> = slots
            .into_iter()
            .map(|slot| self.leases[&(group.clone(), slot)].clone())
            .map(|lease| ObservedLease {
                freed_at: lease.freed_at.filter(|at| *at > since),
                room_since: lease.room_since.filter(|at| *at > since),
                ..lease
            })
            .collect();
        if seen.is_empty() {
            seen.extend(self.first_held_lease(group));
        }
        seen
    }

    /// Whether the holders are as many as the smallest maximum among them allows: no waiter bids
    /// before one of them releases.
    fn is_full(&self, group: &GroupName) -> bool {
        self.held.get(group).is_some_and(HeldSlots::is_full)
    }

    /// Whether the group has a free Lease for which any waiter may bid at this time.
    pub(super) fn has_place_for_all(&self, group: &GroupName, now: Duration) -> bool {
        let is_for_all = |slot: &u32| {
            let lease = &self.leases[&(group.clone(), *slot)];
            let freed_at = lease.freed_at;
            freed_at.is_none_or(|at| at + offer_delay(lease.yield_count) <= now)
        };
        let free = self.free.get(group);
        !self.is_full(group) && free.is_some_and(|free| free.iter().any(is_for_all))
    }

    fn first_held_lease(&self, group: &GroupName) -> Option<ObservedLease> {
        let slot = *self.held.get(group)?.slots.first()?;
        self.leases.get(&(group.clone(), slot)).cloned()
    }

    /// Places a bid or a takeover from an older run; `None` if the Lease has changed since it was
    /// read.
    pub(super) fn place_bid(
        &mut self,
        bid: &ObservedLease,
        me: &HolderId,
        record: &LockRecord,
        now: Duration,
    ) -> Option<ObservedLease> {
        let key = (record.group.clone(), bid.slot);
        let lease = self.leases.get(&key)?;
        let free = lease.holder.as_ref().is_none_or(|holder| holder == me);
        if lease.resource_version != bid.resource_version || !free {
            return None;
        }
        self.record_change(&key.0);
        let lease = self.leases.get_mut(&key)?;
        let held = self.held.entry(key.0.clone()).or_default();
        let mut room_since = lease.room_since;
        if let Some(older) = &lease.record {
            held.remove(key.1, older.max);
            if older.max < record.max {
                room_since = Some(now);
                self.last_room.insert(key.0.clone(), key.1);
            }
        }
        held.add(key.1, record.max);
        *lease = ObservedLease {
            resource_version: self.version.to_string(),
            holder: Some(me.clone()),
            record: Some(record.clone()),
            freed_at: None,
            room_since,
            ..lease.clone()
        };
        let won = lease.clone();
        self.free.entry(key.0.clone()).or_default().remove(&key.1);
        self.holders.insert(me.clone(), key);
        Some(won)
    }

    /// Releases a holder's Lease; returns its new state.
    pub(super) fn release_lease(
        &mut self,
        me: &HolderId,
        leaving: &ReleaseKind,
        now: Duration,
    ) -> Option<ObservedLease> {
        let key = self.holders.remove(me)?;
        let (hint, over_budget) = match leaving {
            ReleaseKind::OverBudget => (Vec::new(), true),
            ReleaseKind::Done { zone } => (self.next_in_line(&key.0, me, zone.as_deref()), false),
        };
        self.record_change(&key.0);
        let lease = self.leases.get_mut(&key)?;
        if let (Some(held), Some(record)) = (self.held.get_mut(&key.0), &lease.record) {
            held.remove(key.1, record.max);
        }
        let given_back = if over_budget {
            lease.yield_count.saturating_add(1)
        } else {
            0
        };
        *lease = ObservedLease {
            resource_version: self.version.to_string(),
            holder: None,
            record: None,
            next_waiters: hint,
            yield_count: given_back,
            freed_at: Some(now),
            room_since: (!over_budget).then_some(now).or(lease.room_since),
            ..lease.clone()
        };
        let free = lease.clone();
        if !over_budget {
            self.last_room.insert(key.0.clone(), key.1);
        }
        self.free.entry(key.0).or_default().insert(key.1);
        Some(free)
    }

    pub(super) fn is_holder(&self, me: &HolderId) -> bool {
        self.holders.contains_key(me)
    }

    /// Uses the real order of the core only if there are zones, because that order reads all
    /// waiters.
    fn next_in_line(&self, group: &GroupName, me: &HolderId, zone: Option<&str>) -> Vec<HolderId> {
        let waiting = || self.waiting.get(group).into_iter().flatten();
        if zone.is_some() {
            let waiters: Vec<LockWaiter> = waiting().map(|place| place.0.clone()).collect();
            return lock::order_next_waiters(&waiters, me, zone, lock::MAX_NEXT_WAITERS);
        }
        waiting()
            .map(|place| &place.0.holder)
            .filter(|holder| *holder != me)
            .take(lock::MAX_NEXT_WAITERS)
            .cloned()
            .collect()
    }

    pub(super) fn add_waiter(&mut self, group: &GroupName, place: WaiterPlace) {
        self.waiting.entry(group.clone()).or_default().insert(place);
    }

    pub(super) fn remove_waiter(&mut self, group: &GroupName, place: &WaiterPlace) {
        self.waiting.entry(group.clone()).or_default().remove(place);
    }

    pub(super) fn first_waiter(&self, group: &GroupName) -> Option<&HolderId> {
        let first = self.waiting.get(group)?.first()?;
        Some(&first.0.holder)
    }

    /// All waiters, in order.
    pub(super) fn list_waiters(&self, group: &GroupName) -> Vec<HolderId> {
        let waiting = self.waiting.get(group).into_iter().flatten();
        waiting.map(|place| place.0.holder.clone()).collect()
    }

    /// How often in a row the Lease was given back over budget; `None` if it has changed since it
    /// was released.
    pub(super) fn yields_while_free(
        &self,
        group: &GroupName,
        slot: u32,
        version: &str,
    ) -> Option<u32> {
        let lease = self.leases.get(&(group.clone(), slot))?;
        let still_free = lease.holder.is_none() && lease.resource_version == version;
        still_free.then_some(lease.yield_count)
    }

    /// All held Leases, in the form that the count of the budget reads.
    pub(super) fn held_leases(&self, group: &GroupName) -> Vec<HeldLockLease> {
        self.holders
            .iter()
            .map(|(holder, key)| {
                let lease = &self.leases[key];
                let record = lease.record.as_ref();
                HeldLockLease {
                    lease: lease.name.clone(),
                    resource_version: lease.resource_version.clone(),
                    slot: (key.0 == *group).then_some(key.1),
                    holder: holder.clone(),
                    node: record.and_then(|record| record.node.clone()),
                    max: record.map(|record| record.max),
                    remediation: None,
                }
            })
            .collect()
    }
}
