//! Chooses the cipher suite to try first.
//!
//! Suite 17 (RAKP-HMAC-SHA256) if the BMC has it, 3 (RAKP-HMAC-SHA1) on older BMCs. Without a given
//! suite, ipmitool asks the BMC for its list first; that takes 10 s if the BMC does not answer
//! (measured on `ipmi_sim`).

use std::sync::atomic::{AtomicU8, Ordering};

const DEFAULT_SUITES: [u8; 2] = [17, 3];
const NO_SUITE: u8 = u8::MAX;

/// The suite that the address names; otherwise the one that worked, then the others.
#[derive(Debug)]
pub(super) struct CipherSuites {
    fixed: Option<u8>,
    worked: AtomicU8,
}

impl CipherSuites {
    pub(super) fn new(fixed: Option<u8>) -> Self {
        Self {
            fixed,
            worked: AtomicU8::new(NO_SUITE),
        }
    }

    /// The suite that the address names or that worked last.
    pub(super) fn working_suite(&self) -> Option<u8> {
        let worked = Some(self.worked.load(Ordering::Relaxed)).filter(|suite| *suite != NO_SUITE);
        self.fixed.or(worked)
    }

    /// The suites to try, at least one.
    pub(super) fn suites_in_order(&self) -> Vec<u8> {
        if let Some(fixed) = self.fixed {
            return vec![fixed];
        }
        let worked = self.worked.load(Ordering::Relaxed);
        let mut order = DEFAULT_SUITES.to_vec();
        order.sort_by_key(|suite| *suite != worked);
        order
    }

    /// Records that a session was made with this suite.
    pub(super) fn record_success(&self, suite: u8) {
        self.worked.store(suite, Ordering::Relaxed);
    }

    /// Forgets a suite with which no session was made, for instance after a change of the BMC's
    /// firmware or settings.
    pub(super) fn record_failure(&self, suite: u8) {
        let _ = self
            .worked
            .compare_exchange(suite, NO_SUITE, Ordering::Relaxed, Ordering::Relaxed);
    }
}
