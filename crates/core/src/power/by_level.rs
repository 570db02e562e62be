//! A small map from level numbers to values.

/// A map by level. A host has one level, or a few: a list takes a tenth of the memory of a map, and
/// there is one for each of 10,000 hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByLevel<T>(Vec<(usize, T)>);

impl<T> Default for ByLevel<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByLevel<T> {
    pub fn get(&self, level: usize) -> Option<&T> {
        let mut all = self.0.iter();
        all.find_map(|(of, known)| (*of == level).then_some(known))
    }

    pub(super) fn get_mut(&mut self, level: usize) -> Option<&mut T> {
        let mut all = self.0.iter_mut();
        all.find_map(|(of, known)| (*of == level).then_some(known))
    }

    /// In the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.0.iter().map(|(level, known)| (*level, known))
    }

    pub(super) fn insert(&mut self, level: usize, known: T) {
        self.remove(level);
        self.0.reserve_exact(1);
        self.0.push((level, known));
    }

    pub(super) fn remove(&mut self, level: usize) {
        self.0.retain(|(of, _)| *of != level);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_newer_replaces_what_was_known_of_its_level_alone() {
        let mut known = ByLevel::default();
        known.insert(1, "a");
        known.insert(0, "b");
        known.insert(1, "c");
        assert_eq!((known.get(0), known.get(1)), (Some(&"b"), Some(&"c")));
        assert_eq!(known.iter().count(), 2);
        known.remove(1);
        assert_eq!((known.get(0), known.get(1)), (Some(&"b"), None));
        known.clear();
        assert_eq!(known, ByLevel::default());
    }
}
