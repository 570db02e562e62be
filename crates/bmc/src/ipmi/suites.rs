//! Which cipher suite is tried first.
//!
//! 17 (RAKP-HMAC-SHA256) where the BMC has it, 3 (RAKP-HMAC-SHA1) on older ones. Asked for no particular one, ipmitool
//! asks the BMC for its list first, which takes 10 s where the BMC does not answer that (measured on `ipmi_sim`).

use std::sync::atomic::{AtomicU8, Ordering};

const TRIED: [u8; 2] = [17, 3];
const NONE: u8 = u8::MAX;

/// The one the address names, or else the one that worked, and then the rest.
#[derive(Debug)]
pub(super) struct Suites {
    fixed: Option<u8>,
    worked: AtomicU8,
}

impl Suites {
    pub(super) fn new(fixed: Option<u8>) -> Self {
        Self {
            fixed,
            worked: AtomicU8::new(NONE),
        }
    }

    /// The one that is certain to do as far as anybody knows.
    pub(super) fn known(&self) -> Option<u8> {
        let worked = Some(self.worked.load(Ordering::Relaxed)).filter(|suite| *suite != NONE);
        self.fixed.or(worked)
    }

    /// At least one.
    pub(super) fn in_order(&self) -> Vec<u8> {
        if let Some(fixed) = self.fixed {
            return vec![fixed];
        }
        let worked = self.worked.load(Ordering::Relaxed);
        let mut order = TRIED.to_vec();
        order.sort_by_key(|suite| *suite != worked);
        order
    }

    /// A session was made with it.
    pub(super) fn worked(&self, suite: u8) {
        self.worked.store(suite, Ordering::Relaxed);
    }

    /// No session was made with it: after a change of the BMC's firmware or settings.
    pub(super) fn failed(&self, suite: u8) {
        let _ = self
            .worked
            .compare_exchange(suite, NONE, Ordering::Relaxed, Ordering::Relaxed);
    }
}
