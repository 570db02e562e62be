//! Whose lock is asked for: the group, the Node if the host is one, and the rules that hold for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use dogwatch_core::fleetlock::fleetlock_id;
use dogwatch_core::limit::Limit;
use dogwatch_core::lock::HolderId;
use dogwatch_core::lock::api_lock::{ApiNode, fleetlock_group};
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::{self, Allowance, Gate, MinInterval, Policies, Policy};
use dogwatch_core::reboot::Config;
use dogwatch_k8s::lock::api_lock;
use dogwatch_k8s::{Error, node};
use futures::StreamExt as _;

use super::shared::{Shared, jitter};
use crate::lock::service::Client;

/// The identity under which a client holds.
pub(super) fn holder(client: &Client) -> HolderId {
    match client {
        Client::Api { host } => HolderId::api(host),
        Client::FleetLock { group, id } => HolderId::fleetlock(group, id),
    }
}

/// A host, and which Node it is.
#[derive(Debug, Clone)]
pub(super) struct Host {
    client: Client,
    node: NodeOf,
}

/// The Node's name never changes; whether there is such a Node does.
#[derive(Debug, Clone)]
enum NodeOf {
    /// To be found by its machine id.
    Unknown,
    Named(String),
    None,
}

/// What holds for one host as things are.
#[derive(Debug, Clone)]
pub(super) struct Target {
    client: Client,
    pub(super) group: GroupName,
    /// The Node that is cordoned and drained.
    pub(super) node: Option<ApiNode>,
    /// How many of the group may be out.
    pub(super) max: Limit,
    /// What holds for the drain.
    pub(super) config: Config,
    /// Whose pause and windows hold for it.
    pub(super) ruling: Vec<Policy>,
    pub(super) control_plane: bool,
    pub(super) zone: Option<String>,
}

impl Host {
    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

impl Target {
    pub(super) fn node_name(&self) -> Option<&NodeName> {
        self.node.as_ref().map(|node| &node.seen.name)
    }

    /// Whether a lock may be asked for now.
    pub(super) fn allowed(&self, policies: &Policies, now: jiff::Timestamp) -> Allowance {
        let last = self.node.as_ref().and_then(|node| node.seen.last.get());
        let interval = MinInterval::of(last);
        let drain = match &self.node {
            Some(_) => self.config.drain_timeout,
            None => Duration::ZERO,
        };
        self.each(|policy| policy::allowed(policies, policy, drain, interval, now))
    }

    /// Whether a drain under way may go on.
    pub(super) fn still_allowed(&self, policies: &Policies, now: jiff::Timestamp) -> Allowance {
        self.each(|policy| policy::still_allowed(policies, policy, now))
    }

    /// The first that says no, else when the first of their windows closes.
    fn each(&self, ask: impl Fn(Option<&Policy>) -> Allowance) -> Allowance {
        let ruling = self.ruling.iter().map(Some).chain([None]);
        let mut soonest = None;
        for policy in ruling {
            match ask(policy) {
                no @ Allowance::No { .. } => return no,
                Allowance::Yes { until } => {
                    soonest = [soonest, until].into_iter().flatten().min();
                }
            }
        }
        Allowance::Yes { until: soonest }
    }
}

impl Shared {
    pub(super) fn host(&self, client: Client) -> Host {
        let node = match &client {
            Client::Api { host } => NodeOf::Named(host.clone()),
            Client::FleetLock { .. } if self.setup.fleetlock_drain => NodeOf::Unknown,
            Client::FleetLock { .. } => NodeOf::None,
        };
        Host { client, node }
    }

    /// Reads the host's Node, if it is one.
    pub(super) async fn target(
        &self,
        host: &mut Host,
        policies: &Policies,
    ) -> Result<Target, Error> {
        let node = self.node_of(host).await?;
        Ok(self.target_of(&host.client, node, policies))
    }

    /// The same host under other policies.
    pub(super) fn again(&self, target: &Target, policies: &Policies) -> Target {
        self.target_of(&target.client, target.node.clone(), policies)
    }

    fn target_of(&self, client: &Client, node: Option<ApiNode>, policies: &Policies) -> Target {
        let no_labels = BTreeMap::new();
        let labels = node.as_ref().map_or(&no_labels, |node| &node.seen.labels);
        let flags = &self.setup.flags;
        let rule = policy::rule(policies, labels, flags);
        let of_name = |name: &str| {
            policies
                .known()
                .iter()
                .find(|policy| policy.name.as_str() == name)
        };
        let (group, max, groups) = match client {
            Client::Api { .. } if node.is_some() => {
                (rule.group.clone(), rule.config.max_unavailable, None)
            }
            Client::Api { .. } => {
                let policy = of_name(GroupName::default_group().as_str());
                let max = policy.and_then(|policy| policy.max_unavailable);
                (
                    GroupName::default_group(),
                    max.unwrap_or(flags.max_unavailable),
                    policy,
                )
            }
            Client::FleetLock { group, .. } => {
                let policy = of_name(group);
                let max = policy.and_then(|policy| policy.max_unavailable);
                (
                    fleetlock_group(group),
                    max.unwrap_or(Limit::Count(1)),
                    policy,
                )
            }
        };
        let own = rule.policy.filter(|_| node.is_some());
        let mut ruling: Vec<Policy> = own.into_iter().chain(groups).cloned().collect();
        ruling.dedup_by(|a, b| a.name == b.name);
        Target {
            client: client.clone(),
            group,
            max,
            control_plane: policy::is_control_plane(labels),
            zone: policy::zone(policies, labels),
            config: if own.is_some() {
                rule.config
            } else {
                flags.clone()
            },
            ruling,
            node,
        }
    }

    /// Reads the host's Node afresh; `None` if it is none.
    pub(super) async fn node_of(&self, host: &mut Host) -> Result<Option<ApiNode>, Error> {
        let kube = &self.setup.client;
        if let (NodeOf::Unknown, Client::FleetLock { id, .. }) = (&host.node, &host.client) {
            let nodes = api_lock::machine_ids(kube).await?;
            let own =
                |(_, machine): &(NodeName, String)| fleetlock_id(machine).as_ref() == Some(id);
            let own = nodes.into_iter().find(own);
            host.node = own.map_or(NodeOf::None, |(name, _)| NodeOf::Named(name.to_string()));
        }
        match &host.node {
            NodeOf::Named(name) => api_lock::read(kube, name).await,
            NodeOf::Unknown | NodeOf::None => Ok(None),
        }
    }

    /// What keeps the gates of the Node's policy shut; empty is open.
    pub(super) async fn shut_gates(&self, target: &Target) -> Vec<String> {
        let Some(name) = target.node_name() else {
            return Vec::new();
        };
        let mut shut = Vec::new();
        for gate in target.ruling.iter().flat_map(|policy| &policy.gates) {
            shut.extend(match gate {
                Gate::Pods { selector } => {
                    let pods =
                        node::blocking_pods(&self.setup.client, name.as_str(), selector).await;
                    pods.unwrap_or_else(|error| {
                        vec![format!(
                            "the pods of node {name} cannot be read: {}",
                            error.in_words()
                        )]
                    })
                }
                Gate::Prometheus(gate) => self.setup.gatekeeper.prometheus(gate).await,
            });
        }
        shut
    }
}

/// The policies as they are now, for as long as the engine lives.
pub(super) fn watch_policies(shared: &Arc<Shared>) {
    let seed = shared.setup.process.clone();
    let draws = std::sync::atomic::AtomicU64::new(0);
    let draw = move || {
        let draw = draws.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        jitter(&format!("{seed}/policies/{draw}"))
    };
    let seen = dogwatch_k8s::policy::watch_policies(shared.setup.client.clone(), draw);
    let engine = Arc::downgrade(shared);
    tokio::spawn(async move {
        let mut seen = std::pin::pin!(seen);
        while let Some(seen) = seen.next().await {
            let Some(shared) = Weak::upgrade(&engine) else {
                return;
            };
            shared.saw_policies(seen.policies);
        }
    });
}
