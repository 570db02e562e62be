//! What is known about each workload cluster, for the loop and for its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use dogwatch_core::remediation::{ObjectName, RemediationReason};
use dogwatch_k8s::Client;
use dogwatch_k8s::cluster::ClusterView;
use dogwatch_runtime::mutex::lock_ignoring_poison;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::watcher::{WorkloadWatchSettings, WorkloadWatcher};

/// A workload cluster, as it was seen last.
#[derive(Clone)]
pub(in crate::remediation) enum ObservedWorkloadCluster {
    /// Its kubeconfig names the controller's own cluster.
    IsManagement,
    Readable(WorkloadAccess),
    /// A reason, and a message.
    Unreadable(RemediationReason, String),
}

/// The way into a workload cluster, and what its watches show.
#[derive(Clone)]
pub(in crate::remediation) struct WorkloadAccess {
    pub(in crate::remediation) client: Client,
    pub(in crate::remediation) uid: String,
    pub(in crate::remediation) has_dogwatch: bool,
    /// Dogwatch's namespace there.
    pub(in crate::remediation) namespace: String,
    pub(in crate::remediation) view: Arc<ClusterView>,
}

/// All workload clusters that a Machine names. Clones share them.
#[derive(Clone)]
pub(in crate::remediation) struct WorkloadRegistry {
    clusters: Arc<Mutex<BTreeMap<ObjectName, WorkloadEntry>>>,
    changes: watch::Sender<u64>,
}

struct WorkloadEntry {
    state: ObservedWorkloadCluster,
    /// Asks the cluster's task to check its connection at once.
    check: Arc<Notify>,
    task: AbortHandle,
}

impl Default for WorkloadRegistry {
    fn default() -> Self {
        Self {
            clusters: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl WorkloadRegistry {
    pub(super) fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn list_clusters(&self) -> BTreeMap<ObjectName, ObservedWorkloadCluster> {
        let clusters = self.lock_clusters();
        let states = clusters.iter();
        states
            .map(|(name, entry)| (name.clone(), entry.state.clone()))
            .collect()
    }

    /// The way into the cluster of this UID, if it can be reached.
    pub(in crate::remediation) fn find_access(
        &self,
        name: &ObjectName,
        uid: &str,
    ) -> Option<WorkloadAccess> {
        match &self.lock_clusters().get(name)?.state {
            ObservedWorkloadCluster::Readable(access) if access.uid == uid => Some(access.clone()),
            ObservedWorkloadCluster::Readable(_)
            | ObservedWorkloadCluster::IsManagement
            | ObservedWorkloadCluster::Unreadable(..) => None,
        }
    }

    /// The cluster refused the credential: its Secret is read again at once.
    pub(in crate::remediation) fn request_check(&self, name: &ObjectName) {
        if let Some(entry) = self.lock_clusters().get(name) {
            entry.check.notify_one();
        }
    }

    /// Starts a task for each new cluster, and ends those of clusters that no Machine names.
    pub(super) fn follow_clusters(
        &self,
        wanted: &BTreeSet<ObjectName>,
        settings: &WorkloadWatchSettings,
    ) {
        let mut clusters = self.lock_clusters();
        clusters.retain(|name, entry| {
            let is_wanted = wanted.contains(name);
            if !is_wanted {
                entry.task.abort();
            }
            is_wanted
        });
        for name in wanted {
            if !clusters.contains_key(name) {
                let entry = self.start_task(name.clone(), settings.clone());
                clusters.insert(name.clone(), entry);
            }
        }
        drop(clusters);
        self.count_change();
    }

    fn count_change(&self) {
        self.changes
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    fn start_task(&self, name: ObjectName, settings: WorkloadWatchSettings) -> WorkloadEntry {
        let check = Arc::new(Notify::new());
        let text = format!("workload cluster {name} is being read");
        let watcher = WorkloadWatcher::new(name, settings, self.clone(), Arc::clone(&check));
        WorkloadEntry {
            state: ObservedWorkloadCluster::Unreadable(RemediationReason::TakenUp, text),
            check,
            task: tokio::spawn(watcher.follow_cluster()).abort_handle(),
        }
    }

    pub(super) fn publish_state(&self, name: &ObjectName, state: ObservedWorkloadCluster) {
        if let Some(entry) = self.lock_clusters().get_mut(name) {
            entry.state = state;
        }
        self.count_change();
    }

    /// Ends all tasks: this process does not lead any more.
    pub(super) fn end_all(&self) {
        let clusters = std::mem::take(&mut *self.lock_clusters());
        for entry in clusters.into_values() {
            entry.task.abort();
        }
    }

    fn lock_clusters(&self) -> MutexGuard<'_, BTreeMap<ObjectName, WorkloadEntry>> {
        lock_ignoring_poison(&self.clusters)
    }
}
