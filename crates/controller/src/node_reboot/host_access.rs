//! What the power controller of this process knows of the hosts of power cycles.

use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::node_reboot::{NodeHostPower, NodeHostView, host_keys};
use dogwatch_core::power::{self, HostName, HostSnapshot, PowerConfig};
use tokio::sync::watch;

use super::memory::NodeRebootMemory;
use crate::power::{HostRegistry, summarize_power};

/// The power controller of this process.
#[derive(Debug, Clone)]
pub struct PowerCycleAccess {
    pub board: HostRegistry,
    /// Its settings, which proofs depend on.
    pub config: PowerConfig,
    /// `--require-host-identity`.
    pub is_identity_required: bool,
}

pub(super) struct HostAccess {
    /// `None`: this process does not control the power of hosts.
    access: Option<(PowerCycleAccess, watch::Receiver<u64>)>,
}

impl HostAccess {
    pub(super) fn new(access: Option<PowerCycleAccess>) -> Self {
        let access = access.map(|access| {
            let changes = access.board.subscribe_changes();
            (access, changes)
        });
        Self { access }
    }

    /// Cancel-safe.
    pub(super) async fn wait_for_change(&mut self) {
        let Some((_, changes)) = &mut self.access else {
            return std::future::pending().await;
        };
        if changes.changed().await.is_err() {
            // The registry is gone with the process.
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn build_view(&self, memory: &NodeRebootMemory, now: Now) -> NodeHostView {
        let Some((access, _)) = &self.access else {
            return NodeHostView::default();
        };
        let host = memory.concerned_host();
        NodeHostView {
            is_power_controlled: true,
            is_identity_required: access.is_identity_required,
            reads: memory.host_reads().to_vec(),
            power: host.and_then(|host| observe_host(access, &host, now)),
        }
    }

    /// The hosts that carry a key of a NodeReboot.
    pub(super) fn list_keyed_hosts(&self) -> Vec<Arc<HostSnapshot>> {
        let Some((access, _)) = &self.access else {
            return Vec::new();
        };
        let has_key = |host: &HostSnapshot| host_keys(host).next().is_some();
        access.board.select_hosts(has_key)
    }
}

fn observe_host(access: &PowerCycleAccess, host: &HostName, now: Now) -> Option<NodeHostPower> {
    let (board, config) = (&access.board, &access.config);
    board.inspect_host(host, |seen, decision| NodeHostPower {
        host: Arc::clone(&seen.host),
        obstacle: power::find_switching_obstacle(seen, config, now),
        observed: summarize_power(seen, decision, config, now),
    })
}
