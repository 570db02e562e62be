//! The Leases of the rollout's groups, as an API server would keep them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::lock::{self, HeldSeen, HolderId, LeaseSeen, LockRecord, Waiter};
use dogwatch_core::name::GroupName;

/// Every group's slots, and who waits for them.
#[derive(Debug, Default)]
pub(super) struct Slots {
    version: u64,
    leases: BTreeMap<(GroupName, u32), LeaseSeen>,
    holders: BTreeMap<HolderId, (GroupName, u32)>,
    free: BTreeMap<GroupName, BTreeSet<u32>>,
    waiting: BTreeMap<GroupName, BTreeSet<Place>>,
}

/// A waiter's place in the order: control plane last, longest waiting first, then by name; where
/// the policy goes by zones they come before that.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) control_plane: bool,
    pub(super) since: jiff::Timestamp,
    pub(super) holder: HolderId,
    pub(super) zone: Option<String>,
}

impl Place {
    fn waiter(&self) -> Waiter {
        Waiter {
            holder: self.holder.clone(),
            control_plane: self.control_plane,
            zone: self.zone.clone(),
            since: Some(self.since),
        }
    }
}

/// How a holder leaves.
pub(super) enum Leaving {
    /// It gives back at once; nobody is called.
    OverBudget,
    /// It calls the next ones, of its own zone first.
    Done {
        /// Where its policy goes by one.
        zone: Option<String>,
    },
}

impl Slots {
    pub(super) fn ensure(&mut self, group: &GroupName, slots: u32) -> u64 {
        let mut made = 0;
        for slot in 0..slots {
            let key = (group.clone(), slot);
            if self.leases.contains_key(&key) {
                continue;
            }
            let lease = self.fresh(group, slot);
            self.leases.insert(key, lease);
            self.free.entry(group.clone()).or_default().insert(slot);
            made += 1;
        }
        made
    }

    fn fresh(&mut self, group: &GroupName, slot: u32) -> LeaseSeen {
        self.version += 1;
        LeaseSeen {
            name: dogwatch_api::lease::slot_name(group.as_str(), slot),
            slot,
            uid: format!("lease-{group}-{slot}"),
            resource_version: self.version.to_string(),
            holder: None,
            record: None,
            hint: Vec::new(),
            given_back: 0,
            leftover: false,
            freed_at: None,
        }
    }

    /// What a node that looks since `since` knows: its own Lease, the free ones, or else one that is
    /// held, which stands for all that are.
    pub(super) fn view(&self, group: &GroupName, me: &HolderId, since: Duration) -> Vec<LeaseSeen> {
        if let Some(key) = self.holders.get(me) {
            return vec![self.leases[key].clone()];
        }
        let free = self.free.get(group).into_iter().flatten();
        let mut seen: Vec<LeaseSeen> = free
            .map(|slot| self.leases[&(group.clone(), *slot)].clone())
            .map(|lease| LeaseSeen {
                freed_at: lease.freed_at.filter(|at| *at > since),
                ..lease
            })
            .collect();
        if seen.is_empty() {
            seen.extend(self.leases.get(&(group.clone(), 0)).cloned());
        }
        seen
    }

    /// A bid, or a takeover from an older run: `None` if the Lease has changed since it was seen.
    pub(super) fn bid(
        &mut self,
        bid: &LeaseSeen,
        me: &HolderId,
        record: &LockRecord,
    ) -> Option<LeaseSeen> {
        let key = (record.group.clone(), bid.slot);
        let lease = self.leases.get_mut(&key)?;
        let free = lease.holder.as_ref().is_none_or(|holder| holder == me);
        if lease.resource_version != bid.resource_version || !free {
            return None;
        }
        self.version += 1;
        *lease = LeaseSeen {
            resource_version: self.version.to_string(),
            holder: Some(me.clone()),
            record: Some(record.clone()),
            freed_at: None,
            ..lease.clone()
        };
        let won = lease.clone();
        self.free.entry(key.0.clone()).or_default().remove(&key.1);
        self.holders.insert(me.clone(), key);
        Some(won)
    }

    /// A release by its holder; answers the Lease as it is now.
    pub(super) fn release(
        &mut self,
        me: &HolderId,
        leaving: &Leaving,
        now: Duration,
    ) -> Option<LeaseSeen> {
        let key = self.holders.remove(me)?;
        let (hint, over_budget) = match leaving {
            Leaving::OverBudget => (Vec::new(), true),
            Leaving::Done { zone } => (self.next(&key.0, me, zone.as_deref()), false),
        };
        self.version += 1;
        let lease = self.leases.get_mut(&key)?;
        let given_back = if over_budget {
            lease.given_back.saturating_add(1)
        } else {
            0
        };
        *lease = LeaseSeen {
            resource_version: self.version.to_string(),
            holder: None,
            record: None,
            hint,
            given_back,
            freed_at: Some(now),
            ..lease.clone()
        };
        let free = lease.clone();
        self.free.entry(key.0).or_default().insert(key.1);
        Some(free)
    }

    pub(super) fn holds(&self, me: &HolderId) -> bool {
        self.holders.contains_key(me)
    }

    /// As the leaver's own order has it; it is asked only where there are zones, for they make it
    /// look at everybody who waits.
    fn next(&self, group: &GroupName, me: &HolderId, zone: Option<&str>) -> Vec<HolderId> {
        let waiting = || self.waiting.get(group).into_iter().flatten();
        if zone.is_some() {
            let waiters: Vec<Waiter> = waiting().map(Place::waiter).collect();
            return lock::hint(&waiters, me, zone, lock::HINT_LENGTH);
        }
        waiting()
            .map(|place| &place.holder)
            .filter(|holder| *holder != me)
            .take(lock::HINT_LENGTH)
            .cloned()
            .collect()
    }

    pub(super) fn wait(&mut self, group: &GroupName, place: Place) {
        self.waiting.entry(group.clone()).or_default().insert(place);
    }

    pub(super) fn no_longer_waits(&mut self, group: &GroupName, place: &Place) {
        self.waiting.entry(group.clone()).or_default().remove(place);
    }

    /// Everybody who waits, in order.
    pub(super) fn waiters(&self, group: &GroupName) -> Vec<HolderId> {
        let waiting = self.waiting.get(group).into_iter().flatten();
        waiting.map(|place| place.holder.clone()).collect()
    }

    /// Whether the Lease is still as it was when it was freed.
    pub(super) fn still_free(&self, group: &GroupName, slot: u32, version: &str) -> bool {
        self.leases
            .get(&(group.clone(), slot))
            .is_some_and(|lease| lease.resource_version == version)
    }

    /// Every held Lease, as the budget's count reads them.
    pub(super) fn held(&self, group: &GroupName) -> Vec<HeldSeen> {
        self.holders
            .iter()
            .map(|(holder, key)| {
                let lease = &self.leases[key];
                let record = lease.record.as_ref();
                HeldSeen {
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
