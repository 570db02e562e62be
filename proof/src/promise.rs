//! The promises of the specification that the searches check.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Promise {
    /// S1
    MutualExclusion,
    /// S2
    ProofBeforeRelease,
    /// S3
    NothingForeignUndone,
    /// S4
    NewBootId,
    /// S5
    OneReboot,
    /// S6
    NobodyLeftBehind,
}

impl Promise {
    pub fn short_name(self) -> &'static str {
        match self {
            Promise::MutualExclusion => "S1",
            Promise::ProofBeforeRelease => "S2",
            Promise::NothingForeignUndone => "S3",
            Promise::NewBootId => "S4",
            Promise::OneReboot => "S5",
            Promise::NobodyLeftBehind => "S6",
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short_name())
    }
}

/// A promise that was broken on the way to a state, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BrokenPromise {
    pub promise: Promise,
    pub how: &'static str,
}

/// Whether the state's way there broke no such promise.
pub fn keeps_promise(broken: Option<&BrokenPromise>, promise: Promise) -> bool {
    broken.is_none_or(|broken| broken.promise != promise)
}
