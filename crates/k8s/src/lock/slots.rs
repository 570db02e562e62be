//! Keeps the slots of one group up to date from a watch. No I/O.

use std::collections::BTreeMap;

use dogwatch_core::Now;
use dogwatch_core::lock::{ObservedLease, merge_observed_lease};
use dogwatch_core::name::GroupName;
use k8s_openapi::api::coordination::v1::Lease;

use super::lease;
use crate::error::Error;
use crate::watch::ObjectEvent;

/// The known slots of one group, merged by `core`'s `merge_observed_lease`.
pub struct GroupSlots {
    group: GroupName,
    seen: BTreeMap<String, ObservedLease>,
    complete: bool,
}

impl GroupSlots {
    pub fn new(group: GroupName) -> Self {
        Self {
            group,
            seen: BTreeMap::new(),
            complete: false,
        }
    }

    /// The slots in order; `None` until the first list is complete.
    pub fn current_leases(&self) -> Option<Vec<ObservedLease>> {
        let mut leases: Vec<ObservedLease> = self.seen.values().cloned().collect();
        leases.sort_by_key(|lease| lease.slot);
        self.complete.then_some(leases)
    }

    /// Applies a watch event. Returns a watch failure: the known slots stay, and may be stale.
    pub fn observe_event(&mut self, event: ObjectEvent<Lease>, now: Now) -> Option<Error> {
        match event {
            ObjectEvent::Restarted(leases) => {
                let listed: Vec<ObservedLease> = leases
                    .iter()
                    .filter_map(|lease| lease::observed_lease(lease, &self.group))
                    .collect();
                self.seen
                    .retain(|name, _| listed.iter().any(|lease| lease.name == *name));
                for lease in listed {
                    self.store_lease(lease, now);
                }
                self.complete = true;
            }
            ObjectEvent::Applied(lease) => {
                if let Some(lease) = lease::observed_lease(&lease, &self.group) {
                    self.store_lease(lease, now);
                }
            }
            ObjectEvent::Deleted(lease) => {
                if let Some(lease) = lease::observed_lease(&lease, &self.group) {
                    self.seen.retain(|_, seen| seen.uid != lease.uid);
                }
            }
            ObjectEvent::Failed(error) => return Some(error),
        }
        None
    }

    /// Applies a Lease from a list or from the answer to a write. Any order is fine.
    pub fn observe_lease(&mut self, lease: ObservedLease, now: Now) {
        self.store_lease(lease, now);
    }

    fn store_lease(&mut self, lease: ObservedLease, now: Now) {
        let lease = merge_observed_lease(self.seen.get(&lease.name), lease, now);
        self.seen.insert(lease.name.clone(), lease);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_api::annotation;
    use serde_json::json;
    use std::time::Duration;

    fn at(second: u64) -> Now {
        Now {
            wall: jiff::Timestamp::UNIX_EPOCH,
            mono: Duration::from_secs(second),
        }
    }

    fn lease(version: u32, holder: Option<&str>, next: &str) -> Lease {
        serde_json::from_value(json!({
            "metadata": {
                "name": "dogwatch-default-0", "uid": "u", "resourceVersion": version.to_string(),
                "annotations": { annotation::NEXT_WAITERS: next },
            },
            "spec": { "holderIdentity": holder },
        }))
        .unwrap()
    }

    fn slots() -> GroupSlots {
        GroupSlots::new(GroupName::default_group())
    }

    fn only(slots: &GroupSlots) -> ObservedLease {
        slots.current_leases().unwrap().remove(0)
    }

    #[test]
    fn nothing_is_known_before_the_first_list() {
        let mut slots = slots();
        assert_eq!(slots.current_leases(), None);
        slots.observe_event(ObjectEvent::Restarted(Vec::new()), at(0));
        assert_eq!(slots.current_leases(), Some(Vec::new()));
    }

    #[test]
    fn becoming_free_is_remembered_until_it_is_held_again() {
        let mut slots = slots();
        slots.observe_event(
            ObjectEvent::Restarted(vec![lease(1, Some("node/a"), "")]),
            at(0),
        );
        slots.observe_event(ObjectEvent::Applied(lease(2, None, "node/b")), at(5));
        assert_eq!(only(&slots).freed_at, Some(Duration::from_secs(5)));
        slots.observe_event(
            ObjectEvent::Restarted(vec![lease(2, None, "node/b")]),
            at(9),
        );
        assert_eq!(only(&slots).freed_at, Some(Duration::from_secs(5)));
        slots.observe_event(
            ObjectEvent::Applied(lease(3, Some("node/b"), "node/b")),
            at(10),
        );
        assert_eq!(only(&slots).freed_at, None);
    }

    #[test]
    fn a_deleted_slot_is_gone_and_its_successor_is_another_one() {
        let mut slots = slots();
        slots.observe_event(
            ObjectEvent::Restarted(vec![lease(5, Some("node/a"), "")]),
            at(0),
        );
        slots.observe_event(ObjectEvent::Deleted(lease(6, Some("node/a"), "")), at(1));
        assert_eq!(slots.current_leases(), Some(Vec::new()));
        let mut anew = lease(2, None, "");
        anew.metadata.uid = Some("other".into());
        slots.observe_event(ObjectEvent::Applied(anew), at(2));
        assert_eq!(only(&slots).freed_at, None, "nobody left this one");
    }
}
