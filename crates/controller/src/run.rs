//! The process: its parts wired together, from the start to the last release.

use std::time::Duration;

/// How long components may take to finish once they are told to stop. The Deployment's
/// `terminationGracePeriodSeconds` is longer.
pub const FINISH_WITHIN: Duration = Duration::from_secs(20);
