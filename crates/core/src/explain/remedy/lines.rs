//! Words that more than one part of an explanation uses.

use std::time::Duration;

use crate::explain::words::age;
use crate::remedy::{Case, Subject};

/// How long something took: tenths below ten seconds, for a release is a matter of those.
pub fn lasted(ms: u64) -> String {
    if ms < 10_000 {
        format!("{}.{}s", ms / 1000, ms % 1000 / 100)
    } else {
        age(Duration::from_millis(ms))
    }
}

/// Whom a case is about, for a sentence: a host's case is about what was left there.
pub(super) fn whom(case: &Case) -> String {
    match &case.subject {
        Subject::Machine(_) | Subject::Node(_) | Subject::Request(_) => case.subject.to_string(),
        Subject::Host(_) => format!("{} (what was left there)", case.subject),
    }
}
