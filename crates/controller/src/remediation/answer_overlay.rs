//! Applies the answers to our own writes until the watches show them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{ObservedMachine, PowerRequest};

use crate::healer::observer::is_older_version;

pub(super) trait VersionedObject {
    fn object_uid(&self) -> &str;
    fn object_version(&self) -> &str;
}

/// The state of an object by the answer to a write.
#[derive(Debug)]
enum AnsweredObject<V> {
    Is(Arc<V>),
    /// The object of this UID was deleted.
    Gone(String),
}

/// Answers about objects of one kind.
#[derive(Debug)]
pub(super) struct AnswerOverlay<K, V>(BTreeMap<K, AnsweredObject<V>>);

impl<K, V> Default for AnswerOverlay<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone, V: VersionedObject> AnswerOverlay<K, V> {
    pub(super) fn record_object(&mut self, name: K, object: V, over: &mut BTreeMap<K, Arc<V>>) {
        let answer = AnsweredObject::Is(Arc::new(object));
        if answer.apply_if_newer(&name, over) {
            self.0.insert(name, answer);
        }
    }

    /// The object of this UID was deleted.
    pub(super) fn record_deleted(&mut self, name: K, uid: String, over: &mut BTreeMap<K, Arc<V>>) {
        let answer = AnsweredObject::Gone(uid);
        if answer.apply_if_newer(&name, over) {
            self.0.insert(name, answer);
        }
    }

    /// Applies the answers to what a watch shows now, and forgets those that the watch has caught
    /// up with.
    pub(super) fn apply_overlay(&mut self, over: &mut BTreeMap<K, Arc<V>>) {
        self.0
            .retain(|name, answer| answer.apply_if_newer(name, over));
    }
}

impl<V: VersionedObject> AnsweredObject<V> {
    /// Applies the answer to `over` if the version there is older. Returns whether it was.
    fn apply_if_newer<K: Ord>(&self, name: &K, over: &mut BTreeMap<K, Arc<V>>) -> bool {
        let Some(shown) = over.get_mut(name) else {
            return false;
        };
        let is_behind = match self {
            AnsweredObject::Is(object) => {
                shown.object_uid() == object.object_uid()
                    && is_older_version(shown.object_version(), object.object_version())
            }
            AnsweredObject::Gone(uid) => shown.object_uid() == uid,
        };
        match self {
            AnsweredObject::Is(object) if is_behind => *shown = Arc::clone(object),
            AnsweredObject::Gone(_) if is_behind => {
                over.remove(name);
            }
            AnsweredObject::Is(_) | AnsweredObject::Gone(_) => {}
        }
        is_behind
    }
}

impl VersionedObject for HostSnapshot {
    fn object_uid(&self) -> &str {
        &self.uid
    }

    fn object_version(&self) -> &str {
        &self.resource_version
    }
}

impl VersionedObject for ObservedNode {
    fn object_uid(&self) -> &str {
        &self.uid
    }

    fn object_version(&self) -> &str {
        &self.resource_version
    }
}

impl VersionedObject for ObservedMachine {
    fn object_uid(&self) -> &str {
        &self.uid
    }

    fn object_version(&self) -> &str {
        &self.resource_version
    }
}

impl VersionedObject for PowerRequest {
    fn object_uid(&self) -> &str {
        &self.uid
    }

    fn object_version(&self) -> &str {
        &self.resource_version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Thing(&'static str, u32, String);

    impl VersionedObject for Thing {
        fn object_uid(&self) -> &str {
            self.0
        }

        fn object_version(&self) -> &str {
            &self.2
        }
    }

    fn thing(uid: &'static str, version: u32) -> Thing {
        Thing(uid, version, version.to_string())
    }

    fn shown(things: &[Thing]) -> BTreeMap<u8, Arc<Thing>> {
        let all = (0..).zip(things.iter().cloned().map(Arc::new));
        all.collect()
    }

    #[test]
    fn an_answer_stands_until_the_watch_has_caught_up() {
        let mut answers = AnswerOverlay::default();
        let mut over = shown(&[thing("a", 1), thing("b", 1)]);
        answers.record_object(0, thing("a", 9), &mut over);
        answers.record_object(1, thing("b", 10), &mut over);
        for behind in [1, 8] {
            let mut over = shown(&[thing("a", behind), thing("b", behind)]);
            answers.apply_overlay(&mut over);
            assert_eq!((over[&0].1, over[&1].1), (9, 10));
        }
        let mut over = shown(&[thing("a", 11), thing("another", 2)]);
        answers.apply_overlay(&mut over);
        assert_eq!((over[&0].1, over[&1].1), (11, 2));
        assert!(answers.0.is_empty());
    }

    #[test]
    fn what_is_deleted_is_not_seen_again_but_another_one_of_its_name_is() {
        let mut answers = AnswerOverlay::default();
        let mut over = shown(&[thing("a", 1)]);
        answers.record_deleted(0, "a".into(), &mut over);
        assert!(over.is_empty());
        let mut late = shown(&[thing("a", 2)]);
        answers.apply_overlay(&mut late);
        assert!(late.is_empty());
        let mut anew = shown(&[thing("b", 3)]);
        answers.apply_overlay(&mut anew);
        assert_eq!(anew.len(), 1);
        answers.apply_overlay(&mut shown(&[]));
        assert!(answers.0.is_empty());
    }
}
