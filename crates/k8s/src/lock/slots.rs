//! The group's slots as a decision sees them, kept up to date from a watch and from the answers to
//! our own writes. No I/O.

use std::collections::BTreeMap;

use dogwatch_core::Now;
use dogwatch_core::lock::LeaseSeen;
use dogwatch_core::name::GroupName;
use k8s_openapi::api::coordination::v1::Lease;

use super::lease;
use crate::error::Error;
use crate::watch::Event;

/// What is known of one group's slots.
///
/// Promises: an older version never replaces a newer one, whichever way they came; the moment at
/// which a slot was seen to become free is kept until it is held again.
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

    /// Takes the answer to a write of ours, which may be ahead of the watch or behind it.
    pub fn wrote(&mut self, lease: LeaseSeen, now: Now) {
        self.put(lease, now);
    }

    fn put(&mut self, mut lease: LeaseSeen, now: Now) {
        let known = self
            .seen
            .get(&lease.name)
            .filter(|known| known.uid == lease.uid);
        if known.is_some_and(|known| is_older(&lease.resource_version, &known.resource_version)) {
            return;
        }
        if lease.holder.is_none() {
            lease.freed_at = known.and_then(|known| freed_at(known, &lease, now));
        }
        self.seen.insert(lease.name.clone(), lease);
    }
}

/// When it became free, as far as this process could see. A free Lease whose call or count changed
/// was held in between.
fn freed_at(known: &LeaseSeen, lease: &LeaseSeen, now: Now) -> Option<std::time::Duration> {
    let same_leaver = known.hint == lease.hint && known.given_back == lease.given_back;
    if known.holder.is_none() && same_leaver {
        known.freed_at
    } else {
        Some(now.mono)
    }
}

/// Whether one version of an object is older than another. Versions are decimal numbers that grow
/// (KEP-5504 made that a promise); where they are not, the later message wins.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        (Ok(_), Err(_)) | (Err(_), Ok(_) | Err(_)) => false,
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
    fn a_lease_found_free_is_free_since_first_seen() {
        let mut slots = slots();
        slots.observe(Event::Restarted(vec![lease(1, None, "")]), at(3));
        assert_eq!(only(&slots).freed_at, None);
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
    fn a_hold_that_a_new_list_skipped_still_makes_it_newly_free() {
        let mut slots = slots();
        slots.observe(Event::Restarted(vec![lease(1, None, "node/a")]), at(0));
        slots.observe(Event::Restarted(vec![lease(9, None, "node/c")]), at(7));
        assert_eq!(only(&slots).freed_at, Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_late_message_never_undoes_what_our_own_write_was_answered() {
        let mut slots = slots();
        slots.observe(Event::Restarted(vec![lease(1, None, "")]), at(0));
        let won =
            lease::seen(&lease(10, Some("node/me"), ""), &GroupName::default_group()).unwrap();
        slots.wrote(won, at(1));
        slots.observe(Event::Applied(lease(9, Some("node/other"), "")), at(2));
        assert_eq!(only(&slots).holder.unwrap().as_str(), "node/me");
        slots.observe(Event::Applied(lease(11, None, "")), at(3));
        assert_eq!(only(&slots).holder, None);
    }

    #[test]
    fn an_answer_that_comes_after_the_watch_is_old() {
        let mut slots = slots();
        slots.observe(Event::Restarted(vec![lease(11, None, "")]), at(0));
        let won =
            lease::seen(&lease(10, Some("node/me"), ""), &GroupName::default_group()).unwrap();
        slots.wrote(won, at(1));
        assert_eq!(only(&slots).holder, None);
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
