//! The input of the decision about one `NodeReboot`.

use std::sync::Arc;
use std::time::Duration;

use super::types::ObservedNodeReboot;
use crate::Now;
use crate::reboot::ObservedNode;

/// Fresh reads older than this are repeated.
pub(super) const MAX_READ_AGE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq)]
pub struct NodeRebootSnapshot {
    pub own: Arc<ObservedNodeReboot>,
    /// The other NodeReboots of the same Node.
    pub others: Vec<Arc<ObservedNodeReboot>>,
    /// The Node by the watch, or by the answer to our own write or read if that is newer. `None`:
    /// the watch shows no such Node.
    pub node: Option<Arc<ObservedNode>>,
    /// A read of the Node that was sent after `own` had its present version.
    pub read: Option<RebootNodeRead>,
}

/// A fresh read of the Node.
#[derive(Debug, Clone, PartialEq)]
pub struct RebootNodeRead {
    /// `None`: there is no such Node; or why it could not be read.
    pub node: Result<Option<Arc<ObservedNode>>, String>,
    /// When the read was sent, in monotonic time.
    pub taken: Duration,
}

impl NodeRebootSnapshot {
    pub(super) fn fresh_read(&self, now: Now) -> Option<&RebootNodeRead> {
        let read = self.read.as_ref();
        read.filter(|read| now.mono.saturating_sub(read.taken) < MAX_READ_AGE)
    }
}
