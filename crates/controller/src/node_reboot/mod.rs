//! Carries each `NodeReboot` to its Node, and writes what becomes of it.
//!
//! **For:** one domain of the loop ([`dogwatch_runtime::reconcile`]); decided by
//! [`node_reboot::decide`], and for keys on hosts that no NodeReboot answers for by
//! [`node_reboot::decide_host_key`].
//! **May touch:** what [`NodeRebootClient`] may; [`HostRegistry`](crate::power::HostRegistry) to
//! read the power of hosts.
//! **Promises:** those of the loop. Nodes come from the watch that all components share. Nothing is
//! read of hosts while no power cycle is asked for.

mod host_access;
mod host_key_memory;
mod keys;
mod memory;
mod node_reboot_metrics;
mod perform;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{self, NodeRebootAction, NodeRebootSnapshot, ObservedNodeReboot};
use dogwatch_k8s::node_reboot::{NodeRebootClient, NodeRebootWatch};
use dogwatch_runtime::jitter::JitterSource;
use dogwatch_runtime::reconcile::{CallEnd, DecisionOf, LoopLimits, ReconcileDomain};

use self::host_access::HostAccess;
pub use self::host_access::PowerCycleAccess;
use self::host_key_memory::HostKeyMemory;
use self::keys::{KeySnapshot, NodeRebootAnswer, NodeRebootFinding, NodeRebootKey, NodeRebootName};
use self::memory::NodeRebootMemory;
use self::perform::NodeRebootCalls;
use crate::ControllerContext;
use crate::cluster_views::ClusterViewReceiver;
use crate::context::RETRY_PAUSES;
use crate::metrics::MetricsRegistry;
use crate::rollout_estimate::EstimateReceiver;
use crate::watch_error_log::WatchErrorLog;

/// `power`: the power controller of this process, if it runs one.
pub async fn run_node_reboots(
    context: ControllerContext,
    power: Option<PowerCycleAccess>,
    estimates: EstimateReceiver,
) {
    context
        .run_domain_while_leading(|| {
            NodeRebootDomain::new(&context, power.clone(), estimates.clone())
        })
        .await;
}

struct NodeRebootDomain {
    watch: NodeRebootWatch,
    cluster: ClusterViewReceiver,
    calls: Arc<NodeRebootCalls>,
    metrics: MetricsRegistry,
    hosts: HostAccess,
    estimates: EstimateReceiver,
    memories: BTreeMap<NodeRebootName, NodeRebootMemory>,
    host_keys: HostKeyMemory,
    /// The NodeReboots that have not ended, by their Node.
    open: BTreeMap<NodeName, Vec<Arc<ObservedNodeReboot>>>,
    watch_error: WatchErrorLog,
}

impl NodeRebootDomain {
    fn new(
        context: &ControllerContext,
        power: Option<PowerCycleAccess>,
        estimates: EstimateReceiver,
    ) -> Self {
        let jitter = JitterSource::of_process(&context.process);
        Self {
            watch: NodeRebootWatch::new(context.client.clone(), move || jitter.next_fraction()),
            cluster: context.cluster.clone(),
            calls: Arc::new(NodeRebootCalls {
                client: NodeRebootClient::new(context.client.clone()),
                clock: context.clock.clone(),
            }),
            metrics: context.metrics.clone(),
            hosts: HostAccess::new(power),
            estimates,
            memories: BTreeMap::new(),
            host_keys: HostKeyMemory::default(),
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

    fn build_reboot_snapshot(&self, name: &NodeRebootName) -> NodeRebootSnapshot {
        let memory = &self.memories[name];
        let plan = memory.latest_reboot().plan.as_ref().ok();
        let node = plan.map(|plan| &plan.node);
        let others = node.and_then(|node| self.open.get(node));
        let others = others.into_iter().flatten();
        let view = self.cluster.current_view();
        let watched = node.and_then(|node| view.nodes.get(node));
        let estimate = node.map(|node| self.estimates.estimate_of_node(node));
        NodeRebootSnapshot {
            host: self.hosts.build_view(memory, self.calls.clock.now()),
            estimate: estimate.unwrap_or_default(),
            ..memory.build_snapshot(
                others.filter(|other| other.uid != name.uid).cloned(),
                watched,
            )
        }
    }

    fn apply_reboot_action_end(
        &mut self,
        name: &NodeRebootName,
        seen: &NodeRebootSnapshot,
        action: &NodeRebootAction,
        end: CallEnd<NodeRebootAnswer>,
    ) {
        let now = self.calls.clock.now().mono;
        let Some(memory) = self.memories.get_mut(name) else {
            return;
        };
        match (action, end) {
            (_, CallEnd::Done(NodeRebootAnswer::LateAskBlocked(node))) => {
                memory.observe_blocked_node(node);
            }
            (_, CallEnd::Done(NodeRebootAnswer::Reboot(reboot))) => {
                node_reboot_metrics::record_end(&self.metrics, &seen.own, &reboot);
                memory.observe_reboot(&reboot);
            }
            (_, CallEnd::Done(NodeRebootAnswer::Node(node))) => memory.observe_written_node(node),
            (_, CallEnd::Done(NodeRebootAnswer::Host(host))) => {
                memory.observe_written_host(*host, now);
            }
            (NodeRebootAction::PatchHost(_), CallEnd::Changed | CallEnd::Failed(_)) => {
                memory.forget_host_read();
            }
            (NodeRebootAction::BlockLateAsk(_), CallEnd::Changed) => memory.forget_node_read(),
            (NodeRebootAction::PatchNode(patch), CallEnd::Failed(_))
                if patch.asks_for(&seen.own) =>
            {
                memory.record_unanswered_ask(patch);
            }
            // The watch shows what has changed, and the action is decided again.
            (_, CallEnd::Done(NodeRebootAnswer::Gone) | CallEnd::Changed | CallEnd::Failed(_)) => {}
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
            () = self.hosts.wait_for_change() => {}
            _ = self.cluster.next_view(), if needs_nodes => {}
            () = self.estimates.wait_for_change(), if !self.open.is_empty() => {}
        }
    }

    fn list_keys(&mut self) -> Option<Vec<NodeRebootKey>> {
        let view = self.watch.current_view();
        self.watch_error
            .log_change(view.error.as_ref(), "failed to read the NodeReboots");
        if !view.synced || !self.cluster.current_view().synced {
            return None;
        }
        for (name, reboot) in &view.reboots {
            let (name, uid) = (name.clone(), reboot.uid.clone());
            let memory = self.memories.entry(NodeRebootName { name, uid });
            memory
                .or_insert_with(|| NodeRebootMemory::new(reboot))
                .observe_reboot(reboot);
        }
        self.memories.retain(|key, _| {
            let reboot = view.reboots.get(&key.name);
            reboot.is_some_and(|reboot| reboot.uid == key.uid)
        });
        self.index_open_reboots();
        let all = self.memories.values().map(NodeRebootMemory::latest_reboot);
        self.host_keys
            .observe_hosts(&self.hosts.list_keyed_hosts(), all);
        let reboots = self.memories.keys().cloned().map(NodeRebootKey::Reboot);
        let host_keys = self.host_keys.list_names().cloned();
        Some(
            reboots
                .chain(host_keys.map(NodeRebootKey::HostKey))
                .collect(),
        )
    }

    fn object_generation(&self, key: &NodeRebootKey) -> Option<i64> {
        match key {
            NodeRebootKey::Reboot(name) => self.memories[name].latest_reboot().generation,
            NodeRebootKey::HostKey(_) => None,
        }
    }

    fn build_snapshot(&self, key: &NodeRebootKey) -> KeySnapshot {
        match key {
            NodeRebootKey::Reboot(name) => {
                KeySnapshot::Reboot(Box::new(self.build_reboot_snapshot(name)))
            }
            NodeRebootKey::HostKey(name) => {
                KeySnapshot::HostKey(self.host_keys.build_snapshot(name))
            }
        }
    }

    fn decide(&self, seen: &KeySnapshot, now: Now) -> DecisionOf<NodeRebootCalls> {
        match seen {
            KeySnapshot::Reboot(seen) => node_reboot::decide(seen, now),
            KeySnapshot::HostKey(seen) => node_reboot::decide_host_key(seen, now),
        }
    }

    fn apply_action_end(
        &mut self,
        key: &NodeRebootKey,
        seen: &KeySnapshot,
        action: &NodeRebootAction,
        end: CallEnd<NodeRebootAnswer>,
    ) {
        match (key, seen) {
            (NodeRebootKey::Reboot(name), KeySnapshot::Reboot(seen)) => {
                self.apply_reboot_action_end(name, seen, action, end);
            }
            (NodeRebootKey::HostKey(name), _) => {
                if let CallEnd::Done(NodeRebootAnswer::Host(host)) = end {
                    self.host_keys.observe_written_host(name, *host);
                }
            }
            (NodeRebootKey::Reboot(_), KeySnapshot::HostKey(_)) => {}
        }
    }

    fn apply_finding(&mut self, key: &NodeRebootKey, finding: NodeRebootFinding) {
        match (key, finding) {
            (NodeRebootKey::HostKey(name), NodeRebootFinding::KeyOwner(read)) => {
                self.host_keys.observe_read(name, read);
            }
            (NodeRebootKey::Reboot(name), NodeRebootFinding::Node(read)) => {
                if let Some(memory) = self.memories.get_mut(name) {
                    memory.observe_read(read);
                }
            }
            (NodeRebootKey::Reboot(name), NodeRebootFinding::Host(read)) => {
                if let Some(memory) = self.memories.get_mut(name) {
                    memory.observe_host_read(read);
                }
            }
            (NodeRebootKey::HostKey(_) | NodeRebootKey::Reboot(_), _) => {}
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
