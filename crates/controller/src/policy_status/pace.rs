//! When each policy may be written again.

use std::collections::BTreeMap;
use std::time::Duration;

/// By the policy's name, from when on it may be written.
#[derive(Debug, Default)]
pub struct Pace(BTreeMap<String, Duration>);

impl Pace {
    /// From when on it may be written, monotonic.
    pub fn due(&self, name: &str) -> Duration {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// It was written; not again before `due`.
    pub fn wrote(&mut self, name: &str, due: Duration) {
        self.0.insert(name.to_owned(), due);
    }

    /// Forgets policies that are gone.
    pub fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_there(name));
    }
}
