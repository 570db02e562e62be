//! A cluster with a coordinator on every node, and a person's hand on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::reboot_policy::{API_VERSION, KIND};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::Config;
use http::Method;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::{Value, json};

use super::caller::Answers;
use super::command::Setup;
use super::faults::FaultBox;
use super::metal::Metal;
use super::minds::Minds;
use super::process::Process;
use crate::api::{ApiServer, Options, Reply, Request};
use crate::chronicle::{Checks, Kind, Names, Observer, PodView, Violation, holder_of, text};
use crate::clock::{Clock as _, TokioClock};
use crate::host::{Coordinator, CoordinatorConfig, Prometheus};
use crate::world::Cluster;
use crate::world::cluster::{BuildError, CONTROLLER_MANAGER, Clients, SCHEDULER, kubelet_user};

/// When a script begins that does not say when, by the cluster's clock: a Monday.
const EPOCH: &str = "2026-01-05T00:00:00Z";
/// Where a coordinator looks: in a folder that a boot empties, and in one that it does not.
const SENTINELS: [&str; 2] = ["/run/reboot-needed", "/var/lib/reboot-needed"];
/// Where the kind `RebootPolicy` is installed.
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Where policies are.
pub(super) const POLICIES: &str = "/apis/dogwatch.dev/v1alpha1/rebootpolicies";
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
    /// Controllers, by their names.
    pub(super) controllers: BTreeMap<String, Process>,
    /// What callers of the lock were told.
    pub(super) answers: Answers,
    /// The bare-metal hosts, where the script has any.
    pub(super) metal: Option<Metal>,
    /// What it says of alerts.
    pub prometheus: Prometheus,
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
    /// What every coordinator and controller is told.
    pub(super) flags: Config,
    commands_judged: BTreeMap<String, usize>,
    nodes_made: BTreeMap<String, BTreeSet<String>>,
}

/// A person's change was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API server answers {code}: {message}")]
pub struct Refused {
    code: u16,
    message: String,
}

/// Why there is no stage.
#[derive(Debug, thiserror::Error)]
pub enum NotBuilt {
    /// The cluster did not come up.
    #[error("failed to build the cluster")]
    Cluster(#[from] BuildError),
    /// What is to be there before the start was refused.
    #[error("failed to set the stage")]
    Refused(#[from] Refused),
    /// The hosts could not be put up.
    #[error("failed to put up the hosts")]
    Hosts(#[from] crate::metal::Refused),
    /// A host is to carry a node that is none of the cluster's.
    #[error("there is no node {0:?}")]
    NoNode(String),
}

impl Stage {
    /// Builds it and waits until the cluster has settled; then the coordinators start.
    pub async fn build(setup: &Setup) -> Result<Self, NotBuilt> {
        let epoch = || EPOCH.parse().expect("a time as RFC 3339 has it");
        let epoch: Timestamp = setup.start.as_ref().map_or_else(epoch, Zoned::timestamp);
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
            controllers: BTreeMap::new(),
            answers: Answers::default(),
            metal: None,
            prometheus: Prometheus::default(),
            faults: FaultBox::default(),
            minds: Minds::default(),
            checks: Checks::new(setup.config.clone()),
            names: Names::default(),
            flags: setup.config.clone(),
            commands_judged: BTreeMap::new(),
            nodes_made: BTreeMap::new(),
        };
        stage.metal = Metal::build(setup, &stage)?;
        stage.prepare(setup)?;
        stage.watch_faults();
        stage.start_coordinators(setup);
        Ok(stage)
    }

    /// What a person has done before the coordinators come.
    fn prepare(&self, setup: &Setup) -> Result<(), NotBuilt> {
        if setup.policies_installed {
            self.define_policies()?;
        }
        for (name, patch) in &setup.policies {
            self.set_policy(name, patch)?;
        }
        for (node, labels) in &setup.labels {
            let patch = json!({ "metadata": { "labels": labels } });
            self.person(Method::PATCH, &format!("/api/v1/nodes/{node}"), &patch)?;
        }
        Ok(())
    }

    /// Installs the kind `RebootPolicy`.
    pub fn define_policies(&self) -> Result<(), Refused> {
        let definition = dogwatch_api::reboot_policy::crd();
        self.person(Method::POST, DEFINITIONS, &definition)
    }

    /// Changes a policy by a JSON merge patch of its `spec`; makes it where there is none.
    pub fn set_policy(&self, name: &str, patch: &Value) -> Result<(), Refused> {
        let patch = json!({ "spec": patch });
        match self.person(Method::PATCH, &format!("{POLICIES}/{name}"), &patch) {
            Err(refused) if refused.code == 404 => {}
            done => return done,
        }
        let mut policy = patch;
        if let Some(spec) = policy["spec"].as_object_mut() {
            spec.retain(|_, value| !value.is_null());
        }
        policy["apiVersion"] = API_VERSION.into();
        policy["kind"] = KIND.into();
        policy["metadata"] = json!({ "name": name });
        self.person(Method::POST, POLICIES, &policy)
    }

    fn watch_faults(&self) {
        let (faults, minds) = (self.faults.clone(), self.minds.clone());
        self.server
            .set_faults(move |request| faults.of(request, &minds));
    }

    fn start_coordinators(&mut self, setup: &Setup) {
        for name in setup.cluster.node_names() {
            let host = self.start_coordinator(setup, &name);
            let coordinator = Arc::clone(&host.coordinator);
            let words = "its coordinator is killed";
            self.faults
                .know(name.as_str(), words, move || coordinator.kill());
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
            prometheus: self.prometheus.clone(),
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
        let all = self.hosts.keys().chain(self.controllers.keys());
        let all = all.flat_map(|name| self.users_of(name, false));
        all.chain([CONTROLLER_MANAGER.to_owned(), SCHEDULER.to_owned()])
            .collect()
    }

    /// Who speaks for a node, or for a controller.
    pub fn users_of(&self, node: &str, coordinator_only: bool) -> Vec<String> {
        if let Some(controller) = self.controllers.get(node) {
            return controller.user().into_iter().collect();
        }
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
        let (changes, now) = (self.observer.take(), self.clock.now());
        let judge = |change: crate::chronicle::Change| {
            if let (Kind::Node, Some(node)) = (change.kind, &change.after) {
                let made = self.nodes_made.entry(change.name.clone()).or_default();
                made.insert(text(node, "/metadata/uid").to_owned());
            }
            let mut broken = self.checks.saw(&change, &self.observer, now);
            let metal = self.metal.iter();
            broken.extend(metal.flat_map(|metal| metal.yard.judge(&change)));
            (change, broken)
        };
        changes.into_iter().map(judge).collect()
    }

    /// Judges the reboot commands that were started since the last time.
    pub fn judge_commands(&mut self) -> Vec<Violation> {
        let (now, instant) = (self.clock.now(), tokio::time::Instant::now());
        let mut broken = Vec::new();
        for (node, host) in &self.hosts {
            let started = host.coordinator.commands_started();
            let judged = self.commands_judged.entry(node.clone()).or_default();
            for moment in &started[*judged..] {
                let ago = SignedDuration::try_from(instant - *moment).unwrap_or_default();
                let at = now.saturating_sub(ago).unwrap_or(now);
                broken.extend(self.checks.command(node, at));
            }
            *judged = started.len();
        }
        broken
    }

    /// Waits until something has changed, or this moment has come.
    pub async fn until(&mut self, moment: tokio::time::Instant) {
        let metal = self.metal.as_mut();
        let machines = async {
            match metal {
                Some(metal) => metal.yard.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.observer.changed() => {}
            () = machines => {}
            () = self.minds.changed() => {}
            () = tokio::time::sleep_until(moment) => {}
        }
    }

    /// How often the node's reboot command was started.
    pub fn commands(&self, node: &str) -> usize {
        let host = self.hosts.get(node);
        host.map_or(0, |host| host.coordinator.commands_started().len())
    }

    /// The holder of a lock, by the end of its Lease's name; `None`: there is no such Lease.
    pub fn lock(&self, name: &str) -> Option<Option<String>> {
        let lease = self
            .observer
            .get(Kind::Lease, &format!("dogwatch-{name}"))?;
        Some(holder_of(lease).map(str::to_owned))
    }

    /// How many Nodes of this name were made until now, the first included.
    pub fn nodes_made(&self, name: &str) -> usize {
        self.nodes_made.get(name).map_or(0, BTreeSet::len)
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

    /// How long it is until then.
    pub fn time_to(&self, time: Timestamp) -> Duration {
        let left = time.duration_since(self.clock.now());
        Duration::try_from(left).unwrap_or(Duration::ZERO)
    }

    /// The true time so long from now.
    pub fn time_in(&self, time: Duration) -> Timestamp {
        let span = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
        self.clock
            .now()
            .saturating_add(span)
            .unwrap_or(Timestamp::MAX)
    }
}
