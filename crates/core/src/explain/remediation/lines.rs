//! Texts that several parts of a remediation's explanation use.

use std::time::Duration;

use crate::explain::human_format::format_age;
use crate::remediation::{Remediation, RemediationSubject};

/// A duration: with tenths of a second below 10 s, because a release takes only that long.
pub fn format_millis(ms: u64) -> String {
    if ms < 10_000 {
        format!("{}.{}s", ms / 1000, ms % 1000 / 100)
    } else {
        format_age(Duration::from_millis(ms))
    }
}

/// The subject for a sentence; a host as the subject means what a remediation left on it.
pub(super) fn subject_text(case: &Remediation) -> String {
    match &case.subject {
        RemediationSubject::Machine(_)
        | RemediationSubject::Node(_)
        | RemediationSubject::Request(_) => case.subject.to_string(),
        RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_) => {
            format!("{} (what was left there)", case.subject)
        }
    }
}
