//! What our own writes were answered, until the watches show it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::power::Host;
use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::{Machine, PowerRequest};

use crate::healer::eyes::older;

/// An object of which there are versions.
pub(super) trait Versioned {
    fn uid(&self) -> &str;
    fn version(&self) -> &str;
}

/// How an object stands by the answer to a write.
#[derive(Debug)]
enum Answer<V> {
    Is(Arc<V>),
    /// The one of this UID is gone.
    Gone(String),
}

/// Answers about objects of one kind.
#[derive(Debug)]
pub(super) struct Answers<K, V>(BTreeMap<K, Answer<V>>);

impl<K, V> Default for Answers<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone, V: Versioned> Answers<K, V> {
    /// It is this.
    pub(super) fn is(&mut self, name: K, object: V, over: &mut BTreeMap<K, Arc<V>>) {
        let answer = Answer::Is(Arc::new(object));
        if answer.covers(&name, over) {
            self.0.insert(name, answer);
        }
    }

    /// The one of this UID is gone.
    pub(super) fn gone(&mut self, name: K, uid: String, over: &mut BTreeMap<K, Arc<V>>) {
        let answer = Answer::Gone(uid);
        if answer.covers(&name, over) {
            self.0.insert(name, answer);
        }
    }

    /// Puts the answers over what a watch shows now, and forgets those that it has caught up with.
    pub(super) fn lay(&mut self, over: &mut BTreeMap<K, Arc<V>>) {
        self.0.retain(|name, answer| answer.covers(name, over));
    }
}

impl<V: Versioned> Answer<V> {
    /// Puts it over what is shown, if that is older.
    fn covers<K: Ord>(&self, name: &K, over: &mut BTreeMap<K, Arc<V>>) -> bool {
        let Some(shown) = over.get_mut(name) else {
            return false;
        };
        let is_behind = match self {
            Answer::Is(object) => {
                shown.uid() == object.uid() && older(shown.version(), object.version())
            }
            Answer::Gone(uid) => shown.uid() == uid,
        };
        match self {
            Answer::Is(object) if is_behind => *shown = Arc::clone(object),
            Answer::Gone(_) if is_behind => {
                over.remove(name);
            }
            Answer::Is(_) | Answer::Gone(_) => {}
        }
        is_behind
    }
}

impl Versioned for Host {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> &str {
        &self.resource_version
    }
}

impl Versioned for NodeSeen {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> &str {
        &self.resource_version
    }
}

impl Versioned for Machine {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> &str {
        &self.resource_version
    }
}

impl Versioned for PowerRequest {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> &str {
        &self.resource_version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Thing(&'static str, u32, String);

    impl Versioned for Thing {
        fn uid(&self) -> &str {
            self.0
        }

        fn version(&self) -> &str {
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
        let mut answers = Answers::default();
        let mut over = shown(&[thing("a", 1), thing("b", 1)]);
        answers.is(0, thing("a", 9), &mut over);
        answers.is(1, thing("b", 10), &mut over);
        for behind in [1, 8] {
            let mut over = shown(&[thing("a", behind), thing("b", behind)]);
            answers.lay(&mut over);
            assert_eq!((over[&0].1, over[&1].1), (9, 10));
        }
        let mut over = shown(&[thing("a", 11), thing("another", 2)]);
        answers.lay(&mut over);
        assert_eq!((over[&0].1, over[&1].1), (11, 2));
        assert!(answers.0.is_empty());
    }

    #[test]
    fn what_is_deleted_is_not_seen_again_but_another_one_of_its_name_is() {
        let mut answers = Answers::default();
        let mut over = shown(&[thing("a", 1)]);
        answers.gone(0, "a".into(), &mut over);
        assert!(over.is_empty());
        let mut late = shown(&[thing("a", 2)]);
        answers.lay(&mut late);
        assert!(late.is_empty());
        let mut anew = shown(&[thing("b", 3)]);
        answers.lay(&mut anew);
        assert_eq!(anew.len(), 1);
        answers.lay(&mut shown(&[]));
        assert!(answers.0.is_empty());
    }
}
