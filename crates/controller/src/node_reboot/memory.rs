//! What the leader knows of one NodeReboot beyond the watches: answers to its own writes and reads.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::node_reboot::{
    HostLookup, LateAsk, NodeHostRead, NodeHostView, NodeRebootEstimate, NodeRebootSnapshot,
    NodeRequestPatch, ObservedNodeReboot, RebootNodeRead,
};
use dogwatch_core::power::{HostName, HostSnapshot};
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::resource_version::{is_newer_version, is_older_version};

pub(super) struct NodeRebootMemory {
    /// From the watch, or from the answer to our own write if that is newer.
    reboot: Arc<ObservedNodeReboot>,
    /// The Node in the answer to our last patch, or as that patch met it.
    written: Option<Arc<ObservedNode>>,
    late_ask: LateAsk,
    /// Sent after `reboot` had its present version.
    read: Option<RebootNodeRead>,
    /// The last reads of the Node's host, or the host in the answer to our last patch.
    host_reads: Vec<NodeHostRead>,
}

impl NodeRebootMemory {
    pub(super) fn new(reboot: &Arc<ObservedNodeReboot>) -> Self {
        Self {
            reboot: Arc::clone(reboot),
            written: None,
            late_ask: find_earlier_ask(reboot),
            read: None,
            host_reads: Vec::new(),
        }
    }

    pub(super) fn latest_reboot(&self) -> &Arc<ObservedNodeReboot> {
        &self.reboot
    }

    /// Applies a version from the watch or from an answer, unless it is older.
    pub(super) fn observe_reboot(&mut self, reboot: &Arc<ObservedNodeReboot>) {
        let known = &self.reboot.resource_version;
        if is_older_version(&reboot.resource_version, known) || reboot.resource_version == *known {
            return;
        }
        self.read = None;
        self.reboot = Arc::clone(reboot);
    }

    pub(super) fn observe_written_node(&mut self, node: Option<Arc<ObservedNode>>) {
        self.written = node;
    }

    /// A request was sent to the Node, and it is not known whether it was written.
    pub(super) fn record_unanswered_ask(&mut self, patch: &NodeRequestPatch) {
        // What an earlier leader sent may be for a version that this process has not seen.
        if self.late_ask != LateAsk::Unknown {
            self.late_ask = LateAsk::ForVersion(patch.resource_version.clone());
        }
    }

    /// No request of ours for an older version of the Node can be written any more.
    pub(super) fn observe_blocked_node(&mut self, node: Option<Arc<ObservedNode>>) {
        self.late_ask = LateAsk::None;
        self.written = node;
    }

    pub(super) fn observe_read(&mut self, read: RebootNodeRead) {
        self.read = Some(read);
    }

    /// The Node is gone since.
    pub(super) fn forget_node_read(&mut self) {
        self.read = None;
    }

    pub(super) fn observe_host_read(&mut self, read: NodeHostRead) {
        read.replace_in(&mut self.host_reads);
    }

    /// The host as our own patch left it. What was read by links is older than that.
    pub(super) fn observe_written_host(&mut self, host: HostSnapshot, taken: Duration) {
        self.host_reads = vec![NodeHostRead {
            lookup: HostLookup::ByName(host.name.clone()),
            found: Ok(Ok(Arc::new(host))),
            taken,
        }];
    }

    /// What a refused patch of the host rested on is read again.
    pub(super) fn forget_host_read(&mut self) {
        self.host_reads.clear();
        self.read = None;
    }

    /// The host that a power cycle is about. `None`: no power cycle, or the host is not known yet.
    pub(super) fn concerned_host(&self) -> Option<HostName> {
        if self.reboot.is_final() {
            return None;
        }
        let attempt = self.reboot.open_attempt();
        if let Some(power) = attempt.and_then(|attempt| attempt.power.as_ref()) {
            let (namespace, name) = power.host.split_once('/')?;
            return Some(HostName::new(namespace, name));
        }
        let mut found = self.host_reads.iter().map(|read| &read.found);
        found.find_map(|found| match found {
            Ok(Ok(host)) => Some(host.name.clone()),
            Ok(Err(_)) | Err(_) => None,
        })
    }

    pub(super) fn host_reads(&self) -> &[NodeHostRead] {
        &self.host_reads
    }

    pub(super) fn build_snapshot(
        &self,
        others: impl Iterator<Item = Arc<ObservedNodeReboot>>,
        watched: Option<&Arc<ObservedNode>>,
    ) -> NodeRebootSnapshot {
        NodeRebootSnapshot {
            own: Arc::clone(&self.reboot),
            others: others.collect(),
            node: self.newest_node(watched),
            read: self.read.clone(),
            late_ask: self.late_ask.clone(),
            host: NodeHostView::default(),
            estimate: NodeRebootEstimate::default(),
        }
    }

    /// The watch may be behind our own patch, and behind a fresh read. A Node that the watch does
    /// not show any more was deleted after our patch.
    fn newest_node(&self, watched: Option<&Arc<ObservedNode>>) -> Option<Arc<ObservedNode>> {
        let read = self.read.as_ref().and_then(|read| read.node.as_ref().ok());
        if let Some(None) = read {
            return None;
        }
        let read = read.and_then(Option::as_ref);
        let written = self.written.as_ref().filter(|_| watched.is_some());
        let known = [watched, written, read].into_iter().flatten();
        let newest = known.reduce(|newest, other| {
            if is_newer_version(&other.resource_version, &newest.resource_version) {
                other
            } else {
                newest
            }
        });
        newest.cloned()
    }
}

/// Whether an earlier leader may have asked the Node: the attempt is in the status before that.
fn find_earlier_ask(reboot: &ObservedNodeReboot) -> LateAsk {
    match reboot.open_attempt() {
        Some(attempt) if attempt.finished_at.is_none() => LateAsk::Unknown,
        Some(_) | None => LateAsk::None,
    }
}
