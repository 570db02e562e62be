//! When each policy may be written again.

use std::collections::BTreeMap;
use std::time::Duration;

/// By the policy's name: the earliest next write (monotonic).
#[derive(Debug, Default)]
pub struct StatusWriteSchedule(BTreeMap<String, Duration>);

impl StatusWriteSchedule {
    /// The earliest next write (monotonic).
    pub fn due_at(&self, name: &str) -> Duration {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Records a write; the next one not before `due`.
    pub fn record_write(&mut self, name: &str, due: Duration) {
        self.0.insert(name.to_owned(), due);
    }

    /// Forgets policies that no longer exist.
    pub fn retain_existing(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_there(name));
    }
}
