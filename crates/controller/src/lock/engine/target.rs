//! Finds a request's target: the group, the Node if the host is one, and the rules that apply.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use dogwatch_core::fleetlock::fleetlock_client_id;
use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::lock::HolderId;
use dogwatch_core::lock::api_lock::{ApiNode, fleetlock_group};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::{
    self, ClusterPolicies, MinInterval, Policy, PolicyGate, RebootAllowance, RolloutCandidate,
};
use dogwatch_core::reboot::RebootConfig;
use dogwatch_k8s::lock::api_lock;
use dogwatch_k8s::{Error, node};
use futures::StreamExt as _;

use super::lock_state::{LockState, jitter_of};
use crate::lock::service::LockRequester;

/// The identity under which a client holds the lock.
pub(super) fn holder_of_client(client: &LockRequester) -> HolderId {
    match client {
        LockRequester::Api { host } => HolderId::for_api_host(host),
        LockRequester::FleetLock { group, id } => HolderId::for_fleetlock_client(group, id),
    }
}

/// A host, and the Node that it is, if any.
#[derive(Debug, Clone)]
pub(super) struct LockHost {
    client: LockRequester,
    node: HostNodeName,
}

/// The Node's name never changes; whether the Node exists does.
#[derive(Debug, Clone)]
enum HostNodeName {
    /// The Node is found by its machine id.
    Unknown,
    Named(String),
    None,
    /// These Nodes have the host's machine id, and only one of them is the host.
    Shared(Vec<NodeName>),
}

#[derive(Debug, Clone)]
pub(super) struct LockTarget {
    client: LockRequester,
    pub(super) group: GroupName,
    /// The Node to cordon and drain.
    pub(super) node: Option<ApiNode>,
    /// How many nodes of the group may be unavailable.
    pub(super) max: UnavailabilityLimit,
    pub(super) config: RebootConfig,
    /// The policies whose pauses and windows apply.
    pub(super) ruling: Vec<Policy>,
    pub(super) control_plane: bool,
    pub(super) zone: Option<String>,
}

impl LockHost {
    pub(super) fn client(&self) -> &LockRequester {
        &self.client
    }

    /// Why it is unknown which Node the host is.
    pub(super) fn describe_shared_id(&self) -> Option<String> {
        let HostNodeName::Shared(nodes) = &self.node else {
            return None;
        };
        let nodes: Vec<&str> = nodes.iter().map(NodeName::as_str).collect();
        Some(format!(
            "nodes {} have the same machine id, so it is unknown which of them this host is, and none is \
             drained: give each machine an /etc/machine-id of its own, or delete the Node whose machine is gone",
            nodes.join(", ")
        ))
    }
}

impl LockTarget {
    pub(super) fn node_name(&self) -> Option<&NodeName> {
        self.node.as_ref().map(|node| &node.seen.name)
    }

    pub(super) fn allowance_now(
        &self,
        policies: &ClusterPolicies,
        now: jiff::Timestamp,
    ) -> RebootAllowance {
        let last = self
            .node
            .as_ref()
            .and_then(|node| node.seen.last_reboot.get());
        let interval = MinInterval::since_last_reboot(last);
        let drain = match &self.node {
            Some(_) => self.config.longest_drain(),
            None => Duration::ZERO,
        };
        self.combine_allowances(|policy| {
            let candidate = RolloutCandidate::LockHost;
            policy::may_reboot_begin(policies, policy, drain, interval, candidate, now)
        })
    }

    pub(super) fn drain_allowance(
        &self,
        policies: &ClusterPolicies,
        now: jiff::Timestamp,
    ) -> RebootAllowance {
        self.combine_allowances(|policy| policy::may_reboot_continue(policies, policy, now))
    }

    /// The first refusal, else when the first of the windows closes.
    fn combine_allowances(
        &self,
        ask: impl Fn(Option<&Policy>) -> RebootAllowance,
    ) -> RebootAllowance {
        let ruling = self.ruling.iter().map(Some).chain([None]);
        let mut soonest = None;
        for policy in ruling {
            match ask(policy) {
                no @ RebootAllowance::No { .. } => return no,
                RebootAllowance::Yes { until } => {
                    soonest = [soonest, until].into_iter().flatten().min();
                }
            }
        }
        RebootAllowance::Yes { until: soonest }
    }
}

impl LockState {
    pub(super) fn host_of_client(&self, client: LockRequester) -> LockHost {
        let node = match &client {
            LockRequester::Api { host } => HostNodeName::Named(host.clone()),
            LockRequester::FleetLock { .. } if self.setup.fleetlock_drain => HostNodeName::Unknown,
            LockRequester::FleetLock { .. } => HostNodeName::None,
        };
        LockHost { client, node }
    }

    /// Reads the host's Node, if it is one.
    pub(super) async fn read_target(
        &self,
        host: &mut LockHost,
        policies: &ClusterPolicies,
    ) -> Result<LockTarget, Error> {
        let node = self.read_node_of(host).await?;
        Ok(self.build_target(&host.client, node, policies))
    }

    pub(super) fn target_under_policies(
        &self,
        target: &LockTarget,
        policies: &ClusterPolicies,
    ) -> LockTarget {
        self.build_target(&target.client, target.node.clone(), policies)
    }

    fn build_target(
        &self,
        client: &LockRequester,
        node: Option<ApiNode>,
        policies: &ClusterPolicies,
    ) -> LockTarget {
        let no_labels = BTreeMap::new();
        let labels = node.as_ref().map_or(&no_labels, |node| &node.seen.labels);
        let flags = &self.setup.flags;
        let rule = policy::resolve_policy(policies, labels, flags);
        let of_name = |name: &str| {
            policies
                .known_policies()
                .iter()
                .find(|policy| policy.name.as_str() == name)
        };
        let (group, max, groups) = match client {
            LockRequester::Api { .. } if node.is_some() => {
                (rule.group.clone(), rule.config.max_unavailable, None)
            }
            LockRequester::Api { .. } => {
                let policy = of_name(GroupName::default_group().as_str());
                let max = limit_under_policy(policy, flags.max_unavailable);
                (GroupName::default_group(), max, policy)
            }
            LockRequester::FleetLock { group, .. } => {
                let policy = of_name(group);
                let max = limit_under_policy(policy, UnavailabilityLimit::Count(1));
                (fleetlock_group(group), max, policy)
            }
        };
        let own = rule.policy.filter(|_| node.is_some());
        let mut ruling: Vec<Policy> = own.into_iter().chain(groups).cloned().collect();
        ruling.dedup_by(|a, b| a.name == b.name);
        LockTarget {
            client: client.clone(),
            group,
            max,
            control_plane: policy::is_control_plane(labels),
            zone: policy::zone_of_labels(policies, labels),
            config: if own.is_some() {
                rule.config
            } else {
                flags.clone()
            },
            ruling,
            node,
        }
    }

    /// Whether the host is still the Node that `target` has, or still none.
    pub(super) async fn is_same_node(
        &self,
        target: &LockTarget,
        host: &mut LockHost,
    ) -> Result<bool, Error> {
        if self.setup.fleetlock_drain && matches!(host.node, HostNodeName::None) {
            // It may have become a Node since.
            host.node = HostNodeName::Unknown;
        }
        let now = self.read_node_of(host).await?;
        if matches!(host.node, HostNodeName::Shared(_)) {
            return Ok(false);
        }
        let uid = |node: &ApiNode| node.seen.uid.clone();
        Ok(now.as_ref().map(uid) == target.node.as_ref().map(uid))
    }

    /// Reads the host's Node afresh; `None` if the host is no Node.
    pub(super) async fn read_node_of(&self, host: &mut LockHost) -> Result<Option<ApiNode>, Error> {
        let kube = &self.setup.client;
        if let (HostNodeName::Unknown, LockRequester::FleetLock { id, .. }) =
            (&host.node, &host.client)
        {
            let nodes = api_lock::list_machine_ids(kube).await?;
            let own = |(_, machine): &(NodeName, String)| {
                fleetlock_client_id(machine).as_ref() == Some(id)
            };
            let own = nodes.into_iter().filter(own).map(|(name, _)| name);
            host.node = match own.collect::<Vec<_>>().as_slice() {
                [] => HostNodeName::None,
                [name] => HostNodeName::Named(name.to_string()),
                several => HostNodeName::Shared(several.to_vec()),
            };
        }
        match &host.node {
            HostNodeName::Named(name) => api_lock::read_api_node(kube, name).await,
            HostNodeName::Unknown | HostNodeName::None | HostNodeName::Shared(_) => Ok(None),
        }
    }

    /// The reasons that keep the gates of the Node's policy shut; empty means open.
    pub(super) async fn list_shut_gates(&self, target: &LockTarget) -> Vec<String> {
        let Some(name) = target.node_name() else {
            return Vec::new();
        };
        let mut shut = Vec::new();
        for gate in target.ruling.iter().flat_map(|policy| &policy.gates) {
            shut.extend(match gate {
                PolicyGate::Pods { selector } => {
                    let pods =
                        node::list_blocking_pods(&self.setup.client, name.as_str(), selector).await;
                    pods.unwrap_or_else(|error| {
                        vec![format!(
                            "the pods of node {name} cannot be read: {}",
                            error.error_chain()
                        )]
                    })
                }
                PolicyGate::Prometheus(gate) => {
                    self.setup.gate_checker.list_shut_reasons(gate).await
                }
            });
        }
        shut
    }
}

/// Watches the policies for as long as the engine lives.
pub(super) fn spawn_policy_watch(shared: &Arc<LockState>) {
    let seed = shared.setup.process.clone();
    let draws = std::sync::atomic::AtomicU64::new(0);
    let draw = move || {
        let draw = draws.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        jitter_of(&format!("{seed}/policies/{draw}"))
    };
    let seen = dogwatch_k8s::policy::watch_policies(shared.setup.client.clone(), draw);
    let engine = Arc::downgrade(shared);
    tokio::spawn(async move {
        let mut seen = std::pin::pin!(seen);
        while let Some(seen) = seen.next().await {
            let Some(shared) = Weak::upgrade(&engine) else {
                return;
            };
            shared.policies.publish_watched(seen.policies);
        }
    });
}

fn limit_under_policy(
    policy: Option<&Policy>,
    default: UnavailabilityLimit,
) -> UnavailabilityLimit {
    policy.map_or(default, |policy| policy.limit_nodes_over(default))
}
