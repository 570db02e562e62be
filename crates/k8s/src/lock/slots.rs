//! The group's slots as a decision sees them, kept up to date from a watch. No I/O.

use std::collections::BTreeMap;

use dogwatch_core::Now;
use dogwatch_core::lock::{LeaseSeen, seen_again};
use dogwatch_core::name::GroupName;
use k8s_openapi::api::coordination::v1::Lease;

use super::lease;
use crate::error::Error;
use crate::watch::Event;

/// What is known of one group's slots; `core`'s `seen_again` says how.
pub struct Slots {
    group: GroupName,
    seen: BTreeMap<String, LeaseSeen>,
    complete: bool,
}

impl Slots {
    /// Nothing is known yet.
    pub fn new(group: GroupName) -> Self {
        Self {
            group,
            seen: BTreeMap::new(),
            complete: false,
        }
    }

    /// The slots in order; `None` until the first list is complete.
    pub fn leases(&self) -> Option<Vec<LeaseSeen>> {
        let mut leases: Vec<LeaseSeen> = self.seen.values().cloned().collect();
        leases.sort_by_key(|lease| lease.slot);
        self.complete.then_some(leases)
    }

    /// Takes what the watch told. Trouble comes back: what is known stays, it may be old.
    pub fn observe(&mut self, event: Event<Lease>, now: Now) -> Option<Error> {
        match event {
            Event::Restarted(leases) => {
                let listed: Vec<LeaseSeen> = leases
                    .iter()
                    .filter_map(|lease| lease::seen(lease, &self.group))
                    .collect();
                self.seen
                    .retain(|name, _| listed.iter().any(|lease| lease.name == *name));
                for lease in listed {
                    self.put(lease, now);
                }
                self.complete = true;
            }
            Event::Applied(lease) => {
                if let Some(lease) = lease::seen(&lease, &self.group) {
                    self.put(lease, now);
                }
            }
            Event::Deleted(lease) => {
                if let Some(lease) = lease::seen(&lease, &self.group) {
                    self.seen.retain(|_, seen| seen.uid != lease.uid);
                }
            }
            Event::Trouble(error) => return Some(error),
        }
        None
    }

    /// Takes in what a list or the answer to a write showed, in whatever order they come.
    pub fn saw(&mut self, lease: LeaseSeen, now: Now) {
        self.put(lease, now);
    }

    fn put(&mut self, lease: LeaseSeen, now: Now) {
        let lease = seen_again(self.seen.get(&lease.name), lease, now);
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
                "annotations": { annotation::NEXT: next },
            },
            "spec": { "holderIdentity": holder },
        }))
        .unwrap()
    }

    fn slots() -> Slots {
        Slots::new(GroupName::default_group())
    }

    fn only(slots: &Slots) -> LeaseSeen {
        slots.leases().unwrap().remove(0)
    }

    #[test]
    fn nothing_is_known_before_the_first_list() {
        let mut slots = slots();
        assert_eq!(slots.leases(), None);
        slots.observe(Event::Restarted(Vec::new()), at(0));
        assert_eq!(slots.leases(), Some(Vec::new()));
    }

    #[test]
    fn becoming_free_is_remembered_until_it_is_held_again() {
        let mut slots = slots();
        slots.observe(Event::Restarted(vec![lease(1, Some("node/a"), "")]), at(0));
        slots.observe(Event::Applied(lease(2, None, "node/b")), at(5));
        assert_eq!(only(&slots).freed_at, Some(Duration::from_secs(5)));
        slots.observe(Event::Restarted(vec![lease(2, None, "node/b")]), at(9));
        assert_eq!(only(&slots).freed_at, Some(Duration::from_secs(5)));
        slots.observe(Event::Applied(lease(3, Some("node/b"), "node/b")), at(10));
        assert_eq!(only(&slots).freed_at, None);
    }

    #[test]
    fn a_deleted_slot_is_gone_and_its_successor_is_another_one() {
        let mut slots = slots();
        slots.observe(Event::Restarted(vec![lease(5, Some("node/a"), "")]), at(0));
        slots.observe(Event::Deleted(lease(6, Some("node/a"), "")), at(1));
        assert_eq!(slots.leases(), Some(Vec::new()));
        let mut anew = lease(2, None, "");
        anew.metadata.uid = Some("other".into());
        slots.observe(Event::Applied(anew), at(2));
        assert_eq!(only(&slots).freed_at, None, "nobody left this one");
    }
}
