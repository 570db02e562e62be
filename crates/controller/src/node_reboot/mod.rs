//! Carries each `NodeReboot` to its Node, and writes what becomes of it.
//!
//! **For:** one domain of the loop ([`dogwatch_runtime::reconcile`]); decided by
//! [`node_reboot::decide`].
//! **May touch:** what [`NodeRebootClient`] may.
//! **Promises:** those of the loop. Nodes come from the watch that all components share.

mod memory;
mod node_reboot_metrics;
mod perform;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{
    self, NodeRebootAction, NodeRebootSnapshot, ObservedNodeReboot, RebootNodeRead,
};
use dogwatch_k8s::node_reboot::{NodeRebootClient, NodeRebootWatch};
use dogwatch_runtime::jitter::JitterSource;
use dogwatch_runtime::reconcile::{CallEnd, DecisionOf, LoopLimits, ReconcileDomain};

use self::memory::NodeRebootMemory;
use self::perform::{NodeRebootAnswer, NodeRebootCalls};
use crate::ControllerContext;
use crate::cluster_views::ClusterViewReceiver;
use crate::context::RETRY_PAUSES;
use crate::metrics::MetricsRegistry;
use crate::watch_error_log::WatchErrorLog;

pub async fn run_node_reboots(context: ControllerContext) {
    context
        .run_domain_while_leading(|| NodeRebootDomain::new(&context))
        .await;
}

struct NodeRebootDomain {
    watch: NodeRebootWatch,
    cluster: ClusterViewReceiver,
    calls: Arc<NodeRebootCalls>,
    metrics: MetricsRegistry,
    memories: BTreeMap<NodeRebootKey, NodeRebootMemory>,
    /// The NodeReboots that have not ended, by their Node.
    open: BTreeMap<NodeName, Vec<Arc<ObservedNodeReboot>>>,
    watch_error: WatchErrorLog,
}

/// A NodeReboot that was deleted and created again is another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NodeRebootKey {
    name: String,
    uid: String,
}

impl fmt::Display for NodeRebootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl NodeRebootDomain {
    fn new(context: &ControllerContext) -> Self {
        let jitter = JitterSource::of_process(&context.process);
        Self {
            watch: NodeRebootWatch::new(context.client.clone(), move || jitter.next_fraction()),
            cluster: context.cluster.clone(),
            calls: Arc::new(NodeRebootCalls {
                client: NodeRebootClient::new(context.client.clone()),
                clock: context.clock.clone(),
            }),
            metrics: context.metrics.clone(),
            memories: BTreeMap::new(),
            open: BTreeMap::new(),
            watch_error: WatchErrorLog::default(),
        }
    }

    fn index_open_reboots(&mut self) {
        self.open.clear();
        let all = self.memories.values().map(NodeRebootMemory::latest_reboot);
        for reboot in all.filter(|reboot| !reboot.is_final()) {
            if let Ok(plan) = &reboot.plan {
                let of_node = self.open.entry(plan.node.clone()).or_default();
                of_node.push(Arc::clone(reboot));
            }
        }
    }
}

impl ReconcileDomain for NodeRebootDomain {
    type Key = NodeRebootKey;
    type Calls = NodeRebootCalls;

    const LIMITS: LoopLimits = LoopLimits {
        name: "node-reboots",
        retry: RETRY_PAUSES,
        concurrent_actions: 1,
    };

    fn domain_calls(&self) -> Arc<NodeRebootCalls> {
        Arc::clone(&self.calls)
    }

    /// Nodes matter only while a NodeReboot has not ended: each of thousands changes every few
    /// minutes.
    async fn wait_for_change(&mut self) {
        let needs_nodes = !self.open.is_empty() || !self.cluster.current_view().synced;
        tokio::select! {
            biased;
            () = self.watch.wait_for_change() => {}
            _ = self.cluster.next_view(), if needs_nodes => {}
        }
    }

    fn list_keys(&mut self) -> Option<Vec<NodeRebootKey>> {
        let view = self.watch.current_view();
        self.watch_error
            .log_change(view.error.as_ref(), "failed to read the NodeReboots");
        if !view.synced || !self.cluster.current_view().synced {
            return None;
        }
        let mut keys = Vec::new();
        for (name, reboot) in &view.reboots {
            let (name, uid) = (name.clone(), reboot.uid.clone());
            let key = NodeRebootKey { name, uid };
            let memory = self.memories.entry(key.clone());
            memory
                .or_insert_with(|| NodeRebootMemory::new(reboot))
                .observe_reboot(reboot);
            keys.push(key);
        }
        self.memories.retain(|key, _| {
            let reboot = view.reboots.get(&key.name);
            reboot.is_some_and(|reboot| reboot.uid == key.uid)
        });
        self.index_open_reboots();
        Some(keys)
    }

    fn object_generation(&self, key: &NodeRebootKey) -> Option<i64> {
        self.memories[key].latest_reboot().generation
    }

    fn build_snapshot(&self, key: &NodeRebootKey) -> NodeRebootSnapshot {
        let memory = &self.memories[key];
        let plan = memory.latest_reboot().plan.as_ref().ok();
        let node = plan.map(|plan| &plan.node);
        let others = node.and_then(|node| self.open.get(node));
        let others = others.into_iter().flatten();
        let view = self.cluster.current_view();
        let watched = node.and_then(|node| view.nodes.get(node));
        memory.build_snapshot(
            others.filter(|other| other.uid != key.uid).cloned(),
            watched,
        )
    }

    fn decide(&self, seen: &NodeRebootSnapshot, now: Now) -> DecisionOf<NodeRebootCalls> {
        node_reboot::decide(seen, now)
    }

    fn apply_action_end(
        &mut self,
        key: &NodeRebootKey,
        seen: &NodeRebootSnapshot,
        action: &NodeRebootAction,
        end: CallEnd<NodeRebootAnswer>,
    ) {
        let Some(memory) = self.memories.get_mut(key) else {
            return;
        };
        match (action, end) {
            (_, CallEnd::Done(NodeRebootAnswer::Reboot(reboot))) => {
                node_reboot_metrics::record_end(&self.metrics, &seen.own, &reboot);
                memory.observe_reboot(&reboot);
            }
            (_, CallEnd::Done(NodeRebootAnswer::Node(node))) => memory.observe_written_node(node),
            // The watch shows what has changed, and the action is decided again.
            (_, CallEnd::Done(NodeRebootAnswer::Gone) | CallEnd::Changed | CallEnd::Failed(_)) => {}
        }
    }

    fn apply_finding(&mut self, key: &NodeRebootKey, read: RebootNodeRead) {
        if let Some(memory) = self.memories.get_mut(key) {
            memory.observe_read(read);
        }
    }

    fn publish_metrics(&self) {
        let all = self.memories.values().map(NodeRebootMemory::latest_reboot);
        node_reboot_metrics::publish_phases(&self.metrics, all);
    }

    fn clear_metrics(&self) {
        node_reboot_metrics::publish_phases(&self.metrics, std::iter::empty());
    }
}
