//! A simulated cluster with a coordinator on every node, and a person's requests to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::reboot_policy::{API_VERSION, KIND};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::RebootConfig;
use dogwatch_kubesim::api::{ApiReply, ApiRequest, ApiServer, ApiServerOptions};
use dogwatch_kubesim::clock::{ClusterClock as _, TokioClock};
use dogwatch_kubesim::world::SimulatedCluster;
use dogwatch_kubesim::world::cluster::{
    CONTROLLER_MANAGER_USER, ClusterBuildError, ClusterClients, SCHEDULER_USER, kubelet_user,
};
use http::Method;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::{Value, json};

use super::bare_metal_hosts::ScenarioHosts;
use super::command::ScenarioSetup;
use super::controller_process::ControllerProcess;
use super::decision_log::DecisionLog;
use super::faults::FaultRules;
use super::lock_caller::LockCallAnswers;
use crate::host::{CoordinatorConfig, SimCoordinator, SimPrometheus};
use crate::names;
use crate::observer::{
    ClusterObserver, ObservedKind, PodView, PromiseChecks, PromiseViolation, ShortNames,
    lease_holder, text_at_pointer,
};

/// The default start of a script, by the cluster's clock: a Monday.
const DEFAULT_START: &str = "2026-01-05T00:00:00Z";
/// The sentinel paths of every coordinator: in a folder that a boot empties, and in one that it
/// does not.
const SENTINEL_PATHS: [&str; 2] = ["/run/reboot-needed", "/var/lib/reboot-needed"];
/// The path of CustomResourceDefinitions.
pub(super) const DEFINITIONS_PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The path of RebootPolicies.
pub(super) const POLICIES_PATH: &str = "/apis/dogwatch.dev/v1alpha1/rebootpolicies";
const ADMIN_USER: &str = "admin";

pub(super) const COORDINATOR_PREFIX: &str = "coordinator/";

pub fn coordinator_user(node: &str) -> String {
    format!("{COORDINATOR_PREFIX}{node}")
}

/// One node's machine, with the parts that a script uses.
pub struct ScenarioHost {
    pub coordinator: Arc<SimCoordinator>,
    pub clock: Arc<TokioClock>,
}

/// Everything on which a script acts.
pub struct ScenarioCluster {
    pub server: ApiServer,
    /// True time.
    pub clock: Arc<TokioClock>,
    /// Kubelets, scheduler and controller manager.
    pub cluster: Arc<SimulatedCluster>,
    pub hosts: BTreeMap<String, ScenarioHost>,
    /// Controllers by name.
    pub(super) controllers: BTreeMap<String, ControllerProcess>,
    /// The answers to lock calls.
    pub(super) lock_answers: LockCallAnswers,
    /// The bare-metal hosts, if the script has any.
    pub(super) bare_metal_hosts: Option<ScenarioHosts>,
    /// Answers the gates' queries.
    pub prometheus: SimPrometheus,
    /// The faults in API calls.
    pub faults: FaultRules,
    pub decision_log: DecisionLog,
    /// Follows the objects on the API server.
    pub observer: ClusterObserver,
    pub checks: PromiseChecks,
    pub short_names: ShortNames,
    /// The flags of every coordinator and controller.
    pub(super) flags: RebootConfig,
    commands_judged: BTreeMap<String, usize>,
    nodes_made: BTreeMap<String, BTreeSet<String>>,
}

/// The API server refused a person's change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API server answers {code}: {message}")]
pub struct UserRequestError {
    code: u16,
    message: String,
}

/// Why the cluster of a script cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioBuildError {
    #[error("failed to build the cluster")]
    Cluster(#[from] ClusterBuildError),
    #[error("failed to create the objects of the scenario")]
    Refused(#[from] UserRequestError),
    #[error("failed to create the hosts")]
    Hosts(#[from] crate::bare_metal::AdminRequestError),
    /// A host names a node that the cluster does not have.
    #[error("there is no node {0:?}")]
    NoNode(String),
}

impl ScenarioCluster {
    /// Builds the cluster, waits until it has settled, and starts the coordinators.
    pub async fn build_cluster(setup: &ScenarioSetup) -> Result<Self, ScenarioBuildError> {
        let epoch = || DEFAULT_START.parse().expect("a time as RFC 3339 has it");
        let epoch: Timestamp = setup.start.as_ref().map_or_else(epoch, Zoned::timestamp);
        let clock = Arc::new(TokioClock::starting_at(epoch));
        let options = ApiServerOptions {
            seed: setup.cluster.seed.0,
            ..ApiServerOptions::default()
        };
        let server = ApiServer::new(Arc::clone(&clock) as Arc<_>, options);
        let clients = ClusterClients::for_embedded_server(&server);
        let cluster = SimulatedCluster::build_and_settle(
            setup.cluster.clone(),
            clients,
            Arc::clone(&clock) as Arc<_>,
        )
        .await?;
        let mut stage = Self {
            observer: ClusterObserver::start_observer(&server),
            server,
            clock,
            cluster: Arc::new(cluster),
            hosts: BTreeMap::new(),
            controllers: BTreeMap::new(),
            lock_answers: LockCallAnswers::default(),
            bare_metal_hosts: None,
            prometheus: SimPrometheus::default(),
            faults: FaultRules::default(),
            decision_log: DecisionLog::default(),
            checks: PromiseChecks::new(setup.config.clone()),
            short_names: ShortNames::default(),
            flags: setup.config.clone(),
            commands_judged: BTreeMap::new(),
            nodes_made: BTreeMap::new(),
        };
        stage.bare_metal_hosts = ScenarioHosts::build_hosts(setup, &stage)?;
        stage.apply_setup(setup)?;
        stage.watch_faults();
        stage.start_coordinators(setup);
        Ok(stage)
    }

    /// Applies the script's setup before the coordinators start.
    fn apply_setup(&self, setup: &ScenarioSetup) -> Result<(), ScenarioBuildError> {
        if setup.policies_installed {
            self.install_policy_crd()?;
        }
        for (name, patch) in &setup.policies {
            self.set_policy(name, patch)?;
        }
        self.create_remediation_objects(setup)?;
        self.create_cluster_api_objects(&setup.cluster_api)?;
        for (node, labels) in &setup.labels {
            let patch = json!({ "metadata": { "labels": labels } });
            self.send_user_request(Method::PATCH, &format!("/api/v1/nodes/{node}"), &patch)?;
        }
        Ok(())
    }

    pub fn install_policy_crd(&self) -> Result<(), UserRequestError> {
        let definition = dogwatch_api::reboot_policy::policy_crd();
        self.send_user_request(Method::POST, DEFINITIONS_PATH, &definition)
    }

    /// Applies a JSON merge patch to a policy's `spec`; creates the policy if it does not exist.
    pub fn set_policy(&self, name: &str, patch: &Value) -> Result<(), UserRequestError> {
        let patch = json!({ "spec": patch });
        match self.send_user_request(Method::PATCH, &format!("{POLICIES_PATH}/{name}"), &patch) {
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
        self.send_user_request(Method::POST, POLICIES_PATH, &policy)
    }

    fn watch_faults(&self) {
        let (faults, minds) = (self.faults.clone(), self.decision_log.clone());
        self.server
            .set_faults(move |request| faults.effects_on_request(request, &minds));
        let (faults, minds) = (self.faults.clone(), self.decision_log.clone());
        self.server
            .set_watch_faults(move |event| faults.fault_of_event(event, &minds));
    }

    fn start_coordinators(&mut self, setup: &ScenarioSetup) {
        for name in setup.cluster.node_names() {
            let host = self.start_coordinator(setup, &names::node_name(&name));
            let coordinator = Arc::clone(&host.coordinator);
            let words = "its coordinator is killed";
            self.faults
                .register_process(&name, words, move || coordinator.kill_process());
            self.hosts.insert(name, host);
        }
    }

    fn start_coordinator(&self, setup: &ScenarioSetup, node: &NodeName) -> ScenarioHost {
        let clock = Arc::new(self.clock.with_skew(SignedDuration::ZERO));
        let config = CoordinatorConfig {
            client: self
                .server
                .client_for_user(&coordinator_user(node.as_str())),
            node: node.clone(),
            namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
            config: setup.config.clone(),
            sentinels: SENTINEL_PATHS.map(str::to_owned).into(),
            seed: setup.cluster.seed,
            clock: Arc::clone(&clock) as Arc<_>,
            prometheus: self.prometheus.clone(),
            watcher: self.decision_log.sink_for_node(node.as_str()),
        };
        let kubelet = self
            .cluster
            .find_kubelet(node.as_str())
            .expect("the cluster has a machine for each of its nodes");
        let (cluster, name) = (Arc::downgrade(&self.cluster), node.clone());
        let minds = self.decision_log.clone();
        let cycle = move || {
            if let Some(cluster) = cluster.upgrade()
                && let Some(kubelet) = cluster.find_kubelet(name.as_str())
            {
                minds.record_note(name.as_str(), "the machine goes down to reboot".into());
                kubelet.reboot();
            }
        };
        let coordinator =
            SimCoordinator::start_coordinator(config, kubelet.watch_power(), Arc::new(cycle));
        ScenarioHost {
            coordinator: Arc::new(coordinator),
            clock,
        }
    }

    /// The user names of all components; not those of persons and of the observer.
    pub fn all_users(&self) -> Vec<String> {
        let all = self.hosts.keys().chain(self.controllers.keys());
        let all = all.flat_map(|name| self.users_of_node(name, false));
        all.chain([
            CONTROLLER_MANAGER_USER.to_owned(),
            SCHEDULER_USER.to_owned(),
        ])
        .collect()
    }

    /// The user names of a node's coordinator and kubelet, or of a controller.
    pub fn users_of_node(&self, node: &str, coordinator_only: bool) -> Vec<String> {
        if let Some(controller) = self.controllers.get(node) {
            return controller.current_user().into_iter().collect();
        }
        let kubelet = (!coordinator_only).then(|| kubelet_user(node));
        [coordinator_user(node)]
            .into_iter()
            .chain(kubelet)
            .collect()
    }

    /// Sends a person's request to the API server.
    pub fn send_user_request(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(), UserRequestError> {
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
        let request = ApiRequest::new(ADMIN_USER, method, path, body).with_content_type(kind);
        match self.server.handle_request(&request) {
            ApiReply::Response(answer) if answer.code >= 300 => {
                let message = answer.body_json()["message"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                Err(UserRequestError {
                    code: answer.code,
                    message,
                })
            }
            ApiReply::Response(_) | ApiReply::Watch(_) => Ok(()),
        }
    }

    /// Reads an object, if it exists.
    pub(super) fn read_object(&self, path: &str) -> Option<Value> {
        let request = ApiRequest::new(ADMIN_USER, Method::GET, path, String::new());
        match self.server.handle_request(&request) {
            ApiReply::Response(answer) if answer.code < 300 => Some(answer.body_json()),
            ApiReply::Response(_) | ApiReply::Watch(_) => None,
        }
    }

    /// Takes in the changes and judges them.
    pub fn observe_changes(
        &mut self,
    ) -> Vec<(crate::observer::ObservedChange, Vec<PromiseViolation>)> {
        let now = self.clock.now();
        let mut judged = Vec::new();
        while let Some(change) = self.observer.next_change() {
            if let (ObservedKind::Node, Some(node)) = (change.kind, &change.after) {
                let made = self.nodes_made.entry(change.name.clone()).or_default();
                made.insert(text_at_pointer(node, "/metadata/uid").to_owned());
            }
            let mut broken = self.checks.judge_change(&change, &self.observer, now);
            let metal = self.bare_metal_hosts.iter();
            broken.extend(metal.flat_map(|metal| metal.lab.judge_change(&change)));
            judged.push((change, broken));
        }
        judged
    }

    /// Judges the reboot commands that were started since the last call.
    pub fn judge_commands(&mut self) -> Vec<PromiseViolation> {
        let (now, instant) = (self.clock.now(), tokio::time::Instant::now());
        let mut broken = Vec::new();
        for (node, host) in &self.hosts {
            let started = host.coordinator.commands_started();
            let judged = self.commands_judged.entry(node.clone()).or_default();
            for moment in &started[*judged..] {
                let ago = SignedDuration::try_from(instant - *moment).unwrap_or_default();
                let at = now.saturating_sub(ago).unwrap_or(now);
                broken.extend(self.checks.judge_reboot_command(node, at));
            }
            *judged = started.len();
        }
        broken
    }

    /// Waits until something has changed, or until this moment.
    pub async fn wait_until(&mut self, moment: tokio::time::Instant) {
        let metal = self.bare_metal_hosts.as_mut();
        let machines = async {
            match metal {
                Some(metal) => metal.lab.wait_for_change().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.observer.wait_for_change() => {}
            () = machines => {}
            () = self.decision_log.wait_for_entry() => {}
            () = tokio::time::sleep_until(moment) => {}
        }
    }

    pub fn count_reboot_commands(&self, node: &str) -> usize {
        let host = self.hosts.get(node);
        host.map_or(0, |host| host.coordinator.commands_started().len())
    }

    /// The holder of a lock, by the last part of its Lease's name; `None`: there is no such Lease.
    pub fn lock_holder(&self, name: &str) -> Option<Option<String>> {
        let lease = self
            .observer
            .get_object(ObservedKind::Lease, &format!("dogwatch-{name}"))?;
        Some(lease_holder(lease).map(str::to_owned))
    }

    /// How many Nodes of this name were created so far, including the first.
    pub fn count_nodes_made(&self, name: &str) -> usize {
        self.nodes_made.get(name).map_or(0, BTreeSet::len)
    }

    /// How many pods of an application are ready and not being deleted.
    pub fn count_ready_pods(&self, app: &str) -> usize {
        let pods = self
            .observer
            .list_objects(ObservedKind::Pod)
            .map(|(_, pod)| PodView::from_object(pod));
        pods.filter(|pod| pod.app == app && pod.ready && !pod.leaving)
            .count()
    }

    pub fn set_clock_skew(&self, node: &str, ahead: i64) {
        if let Some(host) = self.hosts.get(node) {
            host.clock.set_skew(SignedDuration::from_secs(ahead));
        }
    }

    pub fn duration_until(&self, time: Timestamp) -> Duration {
        let left = time.duration_since(self.clock.now());
        Duration::try_from(left).unwrap_or(Duration::ZERO)
    }

    /// The true time after this duration.
    pub fn time_after(&self, time: Duration) -> Timestamp {
        let span = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
        self.clock
            .now()
            .saturating_add(span)
            .unwrap_or(Timestamp::MAX)
    }
}
