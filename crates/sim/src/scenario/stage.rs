//! A cluster with a coordinator on every node, and a person's hand on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::name::NodeName;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::command::Setup;
use super::faults::FaultBox;
use super::minds::Minds;
use crate::api::{ApiServer, Options, Reply, Request};
use crate::chronicle::{Checks, Kind, Names, Observer, PodView, Violation, holder_of};
use crate::clock::TokioClock;
use crate::host::{Coordinator, CoordinatorConfig};
use crate::world::Cluster;
use crate::world::cluster::{BuildError, CONTROLLER_MANAGER, Clients, SCHEDULER, kubelet_user};

/// When every script begins, by the cluster's clock: a Monday.
const EPOCH: &str = "2026-01-05T00:00:00Z";
/// Where a coordinator looks: in a folder that a boot empties, and in one that it does not.
const SENTINELS: [&str; 2] = ["/run/reboot-needed", "/var/lib/reboot-needed"];
/// Who a person is.
const PERSON: &str = "admin";

/// The user name of a node's coordinator.
pub fn coordinator_user(node: &str) -> String {
    format!("coordinator/{node}")
}

/// One node's machine, as far as a script touches it.
pub struct Host {
    /// What runs on it.
    pub coordinator: Arc<Coordinator>,
    /// Its clock.
    pub clock: Arc<TokioClock>,
}

/// Everything that a script acts on.
pub struct Stage {
    /// The API server.
    pub server: ApiServer,
    /// The true time.
    pub clock: Arc<TokioClock>,
    /// Kubelets and controllers.
    pub cluster: Arc<Cluster>,
    /// The machines.
    pub hosts: BTreeMap<String, Host>,
    /// What goes wrong.
    pub faults: FaultBox,
    /// What the coordinators think.
    pub minds: Minds,
    /// What the API server shows.
    pub observer: Observer,
    /// Whether the promises hold.
    pub checks: Checks,
    /// Short names of ids.
    pub names: Names,
}

/// A person's change was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API server answers {code}: {message}")]
pub struct Refused {
    code: u16,
    message: String,
}

impl Stage {
    /// Builds it and waits until the cluster has settled; then the coordinators start.
    pub async fn build(setup: &Setup) -> Result<Self, BuildError> {
        let epoch: Timestamp = EPOCH.parse().expect("a time as RFC 3339 has it");
        let clock = Arc::new(TokioClock::starting_at(epoch));
        let options = Options {
            seed: setup.cluster.seed.0,
            ..Options::default()
        };
        let server = ApiServer::new(Arc::clone(&clock) as Arc<_>, options);
        let clients = Clients::embedded(&server);
        let cluster =
            Cluster::build(setup.cluster.clone(), clients, Arc::clone(&clock) as Arc<_>).await?;
        let mut stage = Self {
            observer: Observer::start(&server),
            server,
            clock,
            cluster: Arc::new(cluster),
            hosts: BTreeMap::new(),
            faults: FaultBox::default(),
            minds: Minds::default(),
            checks: Checks::new(setup.max_out),
            names: Names::default(),
        };
        stage.watch_faults();
        stage.start_coordinators(setup);
        Ok(stage)
    }

    fn watch_faults(&self) {
        let (faults, minds) = (self.faults.clone(), self.minds.clone());
        self.server
            .set_faults(move |request| faults.of(request, &minds));
    }

    fn start_coordinators(&mut self, setup: &Setup) {
        for name in setup.cluster.node_names() {
            let host = self.start_coordinator(setup, &name);
            self.faults
                .know(name.as_str(), Arc::clone(&host.coordinator));
            self.hosts.insert(name.to_string(), host);
        }
    }

    fn start_coordinator(&self, setup: &Setup, node: &NodeName) -> Host {
        let clock = Arc::new(self.clock.skewed(SignedDuration::ZERO));
        let config = CoordinatorConfig {
            client: self.server.client(&coordinator_user(node.as_str())),
            node: node.clone(),
            namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
            config: setup.config.clone(),
            sentinels: SENTINELS.map(str::to_owned).into(),
            seed: setup.cluster.seed,
            clock: Arc::clone(&clock) as Arc<_>,
            watcher: self.minds.of(node.as_str()),
        };
        let kubelet = self
            .cluster
            .kubelet(node.as_str())
            .expect("the cluster has a machine for each of its nodes");
        let (cluster, name) = (Arc::downgrade(&self.cluster), node.clone());
        let minds = self.minds.clone();
        let cycle = move || {
            if let Some(cluster) = cluster.upgrade()
                && let Some(kubelet) = cluster.kubelet(name.as_str())
            {
                minds.note(name.as_str(), "the machine goes down to reboot".into());
                kubelet.reboot();
            }
        };
        let coordinator = Coordinator::start(config, kubelet.power(), Arc::new(cycle));
        Host {
            coordinator: Arc::new(coordinator),
            clock,
        }
    }

    /// Cuts everybody off, or lets everybody in again; a person and the observer stay.
    pub fn users(&self) -> Vec<String> {
        let nodes = self
            .hosts
            .keys()
            .flat_map(|node| self.users_of(node, false));
        nodes
            .chain([CONTROLLER_MANAGER.to_owned(), SCHEDULER.to_owned()])
            .collect()
    }

    /// Who speaks for a node.
    pub fn users_of(&self, node: &str, coordinator_only: bool) -> Vec<String> {
        let kubelet = NodeName::new(node).ok().filter(|_| !coordinator_only);
        let kubelet = kubelet.as_ref().map(kubelet_user);
        [coordinator_user(node)]
            .into_iter()
            .chain(kubelet)
            .collect()
    }

    /// Something that a person does to the cluster.
    pub fn person(&self, method: Method, path: &str, body: &Value) -> Result<(), Refused> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let kind = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = Request::new(PERSON, method, path, body).content_type(kind);
        match self.server.handle(&request) {
            Reply::Response(answer) if answer.code >= 300 => {
                let message = answer.json()["message"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                Err(Refused {
                    code: answer.code,
                    message,
                })
            }
            Reply::Response(_) | Reply::Watch(_) => Ok(()),
        }
    }

    /// Takes in what has changed and judges it.
    pub fn look(&mut self) -> Vec<(crate::chronicle::Change, Vec<Violation>)> {
        let changes = self.observer.take();
        let judge = |change: crate::chronicle::Change| {
            let broken = self.checks.saw(&change, &self.observer);
            (change, broken)
        };
        changes.into_iter().map(judge).collect()
    }

    /// Waits until something has changed, or this moment has come.
    pub async fn until(&mut self, moment: tokio::time::Instant) {
        tokio::select! {
            biased;
            () = self.observer.changed() => {}
            () = self.minds.changed() => {}
            () = tokio::time::sleep_until(moment) => {}
        }
    }

    /// How often the node's reboot command was started.
    pub fn commands(&self, node: &str) -> usize {
        let started = self
            .hosts
            .get(node)
            .map_or(0, |host| host.coordinator.commands_started());
        usize::try_from(started).unwrap_or(usize::MAX)
    }

    /// The holder of a lock, by the end of its Lease's name; `None`: there is no such Lease.
    pub fn lock(&self, name: &str) -> Option<Option<String>> {
        let lease = self
            .observer
            .get(Kind::Lease, &format!("dogwatch-{name}"))?;
        Some(holder_of(lease).map(str::to_owned))
    }

    /// How many pods of an application are ready and stay.
    pub fn ready_pods(&self, app: &str) -> usize {
        let pods = self
            .observer
            .all(Kind::Pod)
            .map(|(_, pod)| PodView::of(pod));
        pods.filter(|pod| pod.app == app && pod.ready && !pod.leaving)
            .count()
    }

    /// Sets a node's clock.
    pub fn set_clock(&self, node: &str, ahead: i64) {
        if let Some(host) = self.hosts.get(node) {
            host.clock.set_skew(SignedDuration::from_secs(ahead));
        }
    }

    /// The true time so long from now.
    pub fn time_in(&self, time: Duration) -> Timestamp {
        use crate::clock::Clock as _;
        let span = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
        self.clock
            .now()
            .saturating_add(span)
            .unwrap_or(Timestamp::MAX)
    }
}
