//! The workload clusters that the Machines name now, for the remediator's loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::reboot::WatchedReboots;
use dogwatch_core::remediation::{MachineName, ObjectName, ObservedMachine, PlannedReboots};
use dogwatch_k8s::workload_cluster::{KubeconfigSecret, WorkloadConnector};
use dogwatch_runtime::jitter::JitterSource;
use tokio::sync::watch;

use super::registry::{ObservedWorkloadCluster, WorkloadRegistry};
use super::watcher::WorkloadWatchSettings;
use crate::ControllerContext;
use crate::remediation::concurrency;

/// The workload clusters of one leader; dropping it ends their tasks.
pub(in crate::remediation) struct FollowedWorkloads {
    registry: WorkloadRegistry,
    changes: watch::Receiver<u64>,
    /// `None`: all Nodes are in the controller's own cluster.
    settings: Option<WorkloadWatchSettings>,
    wanted: BTreeSet<ObjectName>,
    /// When each planned reboot entered its present phase.
    reboots: BTreeMap<ObjectName, WatchedReboots>,
    planned: BTreeMap<ObjectName, PlannedReboots>,
}

impl FollowedWorkloads {
    pub(in crate::remediation) fn new(
        context: &ControllerContext,
        which: Option<KubeconfigSecret>,
        registry: WorkloadRegistry,
    ) -> Self {
        let settings = which.map(|which| WorkloadWatchSettings {
            connector: WorkloadConnector::new(context.client.clone(), which),
            namespace: context.namespace.clone(),
            jitter: JitterSource::of_process(&context.process),
        });
        Self {
            changes: registry.subscribe_changes(),
            registry,
            settings,
            wanted: BTreeSet::new(),
            reboots: BTreeMap::new(),
            planned: BTreeMap::new(),
        }
    }

    /// Cancel-safe.
    pub(in crate::remediation) async fn wait_for_change(&mut self) {
        // The registry holds the sender.
        let _: Result<(), watch::error::RecvError> = self.changes.changed().await;
    }

    /// Follows the clusters of these Machines, as far as they may have a host.
    pub(in crate::remediation) fn follow_machines(
        &mut self,
        machines: &BTreeMap<MachineName, Arc<ObservedMachine>>,
    ) {
        let Some(settings) = &self.settings else {
            return;
        };
        let named = machines.values().filter(|machine| machine.may_have_host());
        let wanted: BTreeSet<ObjectName> = named
            .filter_map(|machine| {
                let cluster = machine.cluster.as_deref()?;
                Some(ObjectName::new(&machine.name.object.namespace, cluster))
            })
            .collect();
        if wanted != self.wanted {
            self.registry.follow_clusters(&wanted, settings);
            self.wanted = wanted;
        }
    }

    /// The clusters as they are seen now; `None`: all Nodes are in the controller's own cluster.
    pub(in crate::remediation) fn observe_clusters(
        &mut self,
        now: Now,
    ) -> Option<BTreeMap<ObjectName, ObservedWorkloadCluster>> {
        self.settings.as_ref()?;
        let clusters = self.registry.list_clusters();
        self.reboots.retain(|name, _| clusters.contains_key(name));
        self.planned.clear();
        for (name, state) in &clusters {
            if let ObservedWorkloadCluster::Readable(access) = state {
                let nodes = access.view.nodes.values().map(AsRef::as_ref);
                let reboots = self.reboots.entry(name.clone()).or_default();
                reboots.observe_nodes(nodes, now);
                let planned = concurrency::planned_reboots(&access.view, reboots);
                self.planned.insert(name.clone(), planned);
            }
        }
        Some(clusters)
    }

    pub(in crate::remediation) fn planned_reboots(&self) -> BTreeMap<ObjectName, PlannedReboots> {
        self.planned.clone()
    }
}

impl Drop for FollowedWorkloads {
    fn drop(&mut self) {
        self.registry.end_all();
    }
}
