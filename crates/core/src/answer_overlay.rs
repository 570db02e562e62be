//! Answers to our own writes, which count until the watches show them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lock::ObservedLease;
use crate::power::HostSnapshot;
use crate::reboot::ObservedNode;
use crate::remediation::{ObservedMachine, PowerRequest};
use crate::resource_version::is_older_version;

pub trait VersionedObject {
    fn object_uid(&self) -> &str;
    fn object_version(&self) -> &str;
}

/// The state of an object by the answer to a write.
#[derive(Debug, Clone)]
enum AnsweredObject<V> {
    Is(V),
    /// The object of this UID was deleted.
    Gone(String),
}

/// Answers about objects of one kind. An answer counts while the watch shows an older version of
/// the same object.
#[derive(Debug, Clone)]
pub struct AnswerOverlay<K, V>(BTreeMap<K, AnsweredObject<V>>);

impl<K, V> Default for AnswerOverlay<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone, V: VersionedObject + Clone> AnswerOverlay<K, V> {
    /// Records an answer, and applies it to what the watch shows now.
    pub fn record_object(&mut self, name: K, object: V, over: &mut BTreeMap<K, V>) {
        let answer = AnsweredObject::Is(object);
        if answer.apply_if_newer(&name, over) {
            self.0.insert(name, answer);
        }
    }

    /// Records an answer for the next time at which what the watch shows is looked at.
    pub fn remember_object(&mut self, name: K, object: V) {
        self.0.insert(name, AnsweredObject::Is(object));
    }

    /// The object of this UID was deleted.
    pub fn record_deleted(&mut self, name: K, uid: String, over: &mut BTreeMap<K, V>) {
        let answer = AnsweredObject::Gone(uid);
        if answer.apply_if_newer(&name, over) {
            self.0.insert(name, answer);
        }
    }

    /// Applies the answers to what a watch shows now, and forgets those that the watch has caught
    /// up with.
    pub fn apply_overlay(&mut self, over: &mut BTreeMap<K, V>) {
        self.0
            .retain(|name, answer| answer.apply_if_newer(name, over));
    }

    /// Forgets the answers that the watch has caught up with, and returns the others. `shown` is
    /// what the watch shows.
    pub fn objects_ahead_of<'a>(
        &mut self,
        shown: impl Fn(&K) -> Option<&'a V>,
    ) -> impl Iterator<Item = (&K, &V)>
    where
        V: 'a,
    {
        self.0
            .retain(|name, answer| shown(name).is_some_and(|shown| answer.is_ahead_of(shown)));
        self.0.iter().filter_map(|(name, answer)| match answer {
            AnsweredObject::Is(object) => Some((name, object)),
            AnsweredObject::Gone(_) => None,
        })
    }
}

impl<V: VersionedObject + Clone> AnsweredObject<V> {
    /// Whether the watch, which shows `shown`, lags behind this answer.
    fn is_ahead_of(&self, shown: &V) -> bool {
        match self {
            AnsweredObject::Is(object) => {
                shown.object_uid() == object.object_uid()
                    && is_older_version(shown.object_version(), object.object_version())
            }
            AnsweredObject::Gone(uid) => shown.object_uid() == uid,
        }
    }

    /// Applies the answer to `over` if the version there is older. Returns whether it was.
    fn apply_if_newer<K: Ord>(&self, name: &K, over: &mut BTreeMap<K, V>) -> bool {
        let shown = over.get_mut(name);
        let Some(shown) = shown.filter(|shown| self.is_ahead_of(shown)) else {
            return false;
        };
        match self {
            AnsweredObject::Is(object) => shown.clone_from(object),
            AnsweredObject::Gone(_) => {
                over.remove(name);
            }
        }
        true
    }
}

impl<V: VersionedObject> VersionedObject for Arc<V> {
    fn object_uid(&self) -> &str {
        self.as_ref().object_uid()
    }

    fn object_version(&self) -> &str {
        self.as_ref().object_version()
    }
}

/// For the snapshots of objects, which all have these two fields.
macro_rules! versioned_objects {
    ($($object:ty),+) => {$(
        impl VersionedObject for $object {
            fn object_uid(&self) -> &str {
                &self.uid
            }

            fn object_version(&self) -> &str {
                &self.resource_version
            }
        }
    )+};
}

versioned_objects!(
    HostSnapshot,
    ObservedLease,
    ObservedMachine,
    ObservedNode,
    PowerRequest
);

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

    fn shown(things: &[Thing]) -> BTreeMap<u8, Thing> {
        let all = (0..).zip(things.iter().cloned());
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

    #[test]
    fn a_remembered_answer_is_returned_while_the_watch_lags() {
        let mut answers = AnswerOverlay::default();
        answers.remember_object(0, thing("a", 9));
        answers.remember_object(1, thing("b", 9));
        let ahead = |answers: &mut AnswerOverlay<u8, Thing>, things: &[Thing]| {
            let shown = shown(things);
            let ahead = answers.objects_ahead_of(|name| shown.get(name));
            ahead.map(|(name, _)| *name).collect::<Vec<u8>>()
        };
        assert_eq!(ahead(&mut answers, &[thing("a", 8), thing("b", 9)]), [0]);
        assert!(ahead(&mut answers, &[thing("a", 9)]).is_empty());
        assert!(ahead(&mut answers, &[thing("a", 8)]).is_empty());
    }
}
