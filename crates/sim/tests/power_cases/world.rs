//! One API server with BareMetalHosts, simulated BMCs under them, and processes that control them
//! through the real Redfish driver.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dogwatch_api::bare_metal_host::host_crd;
use dogwatch_bmc::redfish::{RedfishDriver, RedfishTransport};
use dogwatch_bmc::{Bmc, BmcFault, Credentials};
use dogwatch_controller::node_reboot;
use dogwatch_controller::power::{self, HostRegistry, PowerSettings};
use dogwatch_controller::rollout_estimate::EstimateReceiver;
use dogwatch_core::power::{BmcAddress, HostName, HostSnapshot, OwnerRules, PowerConfig};
use dogwatch_core::reboot;
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::host::{HostObject, convert_host};
use dogwatch_kubesim::api::{FaultEffect, RequestInfo};
use dogwatch_kubesim::clock::{ClusterClock as _, TokioClock};
use dogwatch_kubesim::machine::{MachineSpec, SimMachine};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_sim::bmc::{BmcFleet, BmcSpec, InProcessTransport, SimBmc};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::support::call_trace::CallTrace;
use crate::support::leader::Leader;
use crate::support::objects::{self, HOST};

pub const ANY: &str = "reboot.metal3.io";
pub const KEY: &str = "reboot.metal3.io/key";
pub const HARD: &str = r#"{"mode":"hard"}"#;
/// Must not appear in any log, status, event or metric.
pub const PASSWORD: &str = "sekret16";

/// The moment of a process' death: before the call takes effect, or after that and before the
/// answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Before,
    After,
}

/// The calls so far, and the number of the call at which the process dies.
type Counted = (Vec<String>, Option<(usize, Cut)>);

/// Counts calls, and kills the process at one of them.
#[derive(Clone, Default)]
pub struct Scissors {
    state: Arc<Mutex<Counted>>,
    died: Arc<Notify>,
}

impl Scissors {
    /// Kills the process at the `at`-th call from now.
    pub fn set(&self, at: usize, cut: Cut) {
        *self.state.lock().unwrap() = (Vec::new(), Some((at, cut)));
    }

    pub fn calls(&self) -> Vec<String> {
        self.state.lock().unwrap().0.clone()
    }

    /// The fault of this request to the API server.
    pub fn cut(&self, request: &RequestInfo) -> Vec<FaultEffect> {
        let call = format!("{:?} {}", request.verb, request.resource);
        let effect = self.count(call).map(|cut| match cut {
            Cut::Before => FaultEffect::LoseRequest,
            Cut::After => FaultEffect::LoseAnswer,
        });
        effect.into_iter().collect()
    }

    pub async fn death(&self) {
        self.died.notified().await;
    }

    /// Counts the call, and returns the cut if it is the last one.
    fn count(&self, call: String) -> Option<Cut> {
        let mut state = self.state.lock().unwrap();
        let number = state.0.len();
        state.0.push(call);
        let cut = state.1.filter(|(at, _)| *at == number).map(|(_, cut)| cut);
        if cut.is_some() {
            self.died.notify_one();
        }
        cut
    }
}

/// A BMC transport that the scissors can cut, and that is traced.
struct CutWire(InProcessTransport, Scissors, CallTrace);

impl RedfishTransport for CutWire {
    fn send_request(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, BmcFault>> {
        let call = format!("{} {}", request.method(), request.uri().path());
        async move {
            match self.1.count(call.clone()) {
                None => {
                    let sent = self.0.send_request(request, within);
                    self.2.trace_bmc_call(&call, sent).await
                }
                Some(Cut::Before) => std::future::pending().await,
                Some(Cut::After) => {
                    // The call takes effect at once, and its answer is dropped.
                    let _ = self.0.send_request(request, within).await;
                    std::future::pending().await
                }
            }
        }
        .boxed()
    }
}

pub struct World {
    pub client: Client,
    /// The processes' client.
    pub leading: Client,
    pub namespace: String,
    pub config: PowerConfig,
    pub park: BmcFleet,
    pub scissors: Scissors,
    pub trace: CallTrace,
    pub clock: Arc<TokioClock>,
}

/// A process; dropping it kills it.
pub struct Process {
    pub leader: Leader,
    pub board: HostRegistry,
}

/// Times for a server whose clock cannot be paused.
pub fn short() -> PowerConfig {
    let seconds = Duration::from_secs;
    PowerConfig {
        poll: seconds(1),
        check: seconds(2),
        confirm: Duration::from_millis(500),
        settle: seconds(4),
        soft: seconds(20),
        call: seconds(2),
    }
}

impl World {
    pub async fn on(client: Client, config: PowerConfig, epoch: Timestamp) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let namespace = format!("power-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let world = Self {
            leading: client.clone(),
            client,
            namespace,
            config,
            park: BmcFleet::default(),
            scissors: Scissors::default(),
            trace: CallTrace::default(),
            clock: Arc::new(TokioClock::starting_at(epoch)),
        };
        world.install().await;
        world
            .give_secret("bmc", &[("username", "admin"), ("password", PASSWORD)])
            .await;
        world
    }

    async fn install(&self) {
        objects::install(&self.client, [host_crd()]).await;
        objects::make_namespace(&self.client, &self.namespace).await;
        self.until("the kind is served", || async {
            self.hosts().list(&ListParams::default()).await.is_ok()
        })
        .await;
    }

    pub fn name(&self, short: &str) -> HostName {
        HostName::new(&self.namespace, short)
    }

    pub fn hosts(&self) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A running machine and its BMC.
    pub fn machine(&self, short: &str) -> SimBmc {
        self.machine_with(short, |_, _| ())
    }

    pub fn machine_with(
        &self,
        short: &str,
        change: impl FnOnce(&mut MachineSpec, &mut BmcSpec),
    ) -> SimBmc {
        let clock = Arc::clone(&self.clock) as Arc<dyn dogwatch_kubesim::clock::ClusterClock>;
        let mut machine = MachineSpec::new(short, SimulationSeed(7), Arc::clone(&clock));
        let mut bmc = BmcSpec::new(short, SimulationSeed(7), clock);
        change(&mut machine, &mut bmc);
        let bmc = SimBmc::for_machine(bmc, SimMachine::running_first_boot(machine));
        self.park.add_bmc(bmc.clone());
        bmc
    }

    /// A host for the machine of the same name.
    pub async fn host(&self, short: &str) -> SimBmc {
        let bmc = self.machine(short);
        self.put_host(short, &json!({})).await;
        bmc
    }

    /// Only the object, for an existing machine.
    pub async fn put_host(&self, short: &str, more: &Value) {
        let address = self.park.bmc_address(short, 80);
        let mut object = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": short },
            "spec": { "online": true, "bmc": { "address": address, "credentialsName": "bmc" } },
        });
        merge(&mut object, more);
        let hosts = objects::objects(&self.client, &self.namespace, HOST);
        objects::create(&hosts, object).await;
    }

    /// Creates or replaces the Secret.
    pub async fn give_secret(&self, name: &str, data: &[(&str, &str)]) {
        let data = data.iter();
        let bytes = |text: &&str| ByteString(text.as_bytes().to_vec());
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(
                data.map(|(key, value)| ((*key).to_owned(), bytes(value)))
                    .collect(),
            ),
            ..Secret::default()
        };
        let params = PostParams::default();
        if self.secrets().create(&params, &secret).await.is_err() {
            self.secrets()
                .replace(name, &params, &secret)
                .await
                .unwrap();
        }
    }

    pub async fn change(&self, short: &str, body: Value) {
        objects::change(&self.hosts(), short, body).await;
    }

    /// `None` removes the annotation.
    pub async fn annotate(&self, short: &str, key: &str, value: Option<&str>) {
        let body = json!({ "metadata": { "annotations": { key: value } } });
        self.change(short, body).await;
    }

    pub async fn read(&self, short: &str) -> HostSnapshot {
        convert_host(&self.hosts().get(short).await.unwrap())
    }

    /// Reason and status of one of the host's conditions.
    pub async fn condition(&self, short: &str, kind: &str) -> (String, String) {
        let host = self.read(short).await;
        let mut all = host.status.conditions.into_iter();
        let found = all.find(|condition| condition.kind == kind);
        found.map_or_else(Default::default, |it| (it.status, it.reason))
    }

    pub async fn said(&self) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        events.list(&ListParams::default()).await.unwrap().items
    }

    /// The processes' clock.
    pub fn wall(&self) -> ProcessClock {
        let clock = Arc::clone(&self.clock);
        ProcessClock::with_wall_clock(move || clock.now())
    }

    /// A process that leads from now on.
    pub fn process(&self, name: &str) -> Process {
        self.process_with(name, self.config)
    }

    /// The same, with this configuration.
    pub fn process_with(&self, name: &str, config: PowerConfig) -> Process {
        let flags = reboot::RebootConfig::default();
        let (mut leader, mut context, _) =
            Leader::new(&self.leading, &self.namespace, &self.wall(), &flags);
        context.process = name.into();
        let board = HostRegistry::default();
        let settings = PowerSettings {
            config,
            ..self.settings(&board)
        };
        leader.run(power::run_power_controller(context, settings));
        Process { leader, board }
    }

    /// A process that also serves NodeReboots, and may switch hosts for them.
    pub fn process_with_node_reboots(&self, name: &str) -> Process {
        let flags = reboot::RebootConfig::default();
        let (mut leader, mut context, showing) =
            Leader::new(&self.leading, "dogwatch", &self.wall(), &flags);
        context.process = name.into();
        let board = HostRegistry::default();
        let access = node_reboot::PowerCycleAccess {
            board: board.clone(),
            config: self.config,
            is_identity_required: false,
        };
        let watches = ClusterWatch::new(self.leading.clone(), "dogwatch", || 0.5);
        leader.run(showing.publish_watched_views(watches));
        let estimates = EstimateReceiver::without_planner();
        let carrying = node_reboot::run_node_reboots(context.clone(), Some(access), estimates);
        leader.run(carrying);
        leader.run(power::run_power_controller(context, self.settings(&board)));
        Process { leader, board }
    }

    pub fn settings(&self, board: &HostRegistry) -> PowerSettings {
        PowerSettings {
            config: self.config,
            max_concurrent: NonZeroUsize::new(100).unwrap(),
            owners: OwnerRules {
                metal3_namespaces: [self.namespace.clone()].into(),
                ..OwnerRules::default()
            },
            connect: self.connect(),
            board: board.clone(),
            has_workload_clusters: false,
        }
    }

    pub fn connect(&self) -> power::ConnectDriver {
        let (park, scissors) = (self.park.clone(), self.scissors.clone());
        let trace = self.trace.clone();
        Arc::new(
            move |address: &BmcAddress, credentials: &Credentials, _: bool| {
                let wire = park.transport_to_host(address.host()).unwrap();
                let exchange = Arc::new(CutWire(wire, scissors.clone(), trace.clone()));
                let driver = RedfishDriver::over_transport(exchange, address, credentials.clone())?;
                Ok(Arc::new(driver) as Arc<dyn Bmc>)
            },
        )
    }

    /// Waits until `seen` is true.
    pub async fn until<F: Future<Output = bool>>(&self, what: &str, seen: impl Fn() -> F) {
        let patience = (self.config.soft + self.config.settle) * 10 + Duration::from_mins(1);
        let deadline = Instant::now() + patience;
        while !seen().await {
            if Instant::now() > deadline {
                self.give_up(what).await;
            }
            tokio::time::sleep(self.config.confirm / 20).await;
        }
    }

    async fn give_up(&self, what: &str) {
        let hosts = self.hosts().list(&ListParams::default()).await.unwrap();
        let hosts: Vec<HostSnapshot> = hosts.items.iter().map(convert_host).collect();
        let machines = self.park.list_bmcs().into_iter();
        let machines: BTreeMap<String, String> = machines
            .map(|(_, bmc)| {
                (
                    bmc.name().to_owned(),
                    bmc.machine().transition_log().to_string(),
                )
            })
            .collect();
        panic!("never: {what}: {hosts:#?} {machines:#?}");
    }

    /// Waits until a reboot is complete: the host is on again after it was off, and the annotation
    /// is gone.
    pub async fn until_rebooted(&self, short: &str, bmc: &SimBmc) {
        let what = format!("{short} is rebooted");
        self.until(&what, || self.is_rebooted(short, bmc)).await;
    }

    async fn is_rebooted(&self, short: &str, bmc: &SimBmc) -> bool {
        let host = self.read(short).await;
        let status = &host.status;
        !host.annotations.contains_key(ANY)
            && status.pending_reboot_since.is_some()
            && status.last_powered_on > status.pending_reboot_since
            && status.powered_on == Some(true)
            && bmc.machine().power_state().is_powered()
    }

    pub async fn until_confirmed(&self, short: &str) {
        self.until("off is confirmed", || async {
            let host = self.read(short).await;
            host.status.power.off_confirmed_at.is_some()
        })
        .await;
    }

    pub async fn until_ready(&self, short: &str) {
        self.until("power control is ready", || async {
            self.condition(short, "PowerControlReady").await.0 == "True"
        })
        .await;
    }

    /// Sleeps for several polls.
    pub async fn time_passes(&self) {
        tokio::time::sleep(self.config.poll * 3 + self.config.settle * 2).await;
    }

    /// Deletes the hosts, so that no other case's process finds them.
    pub async fn end(&self) {
        let all = self.hosts().list(&ListParams::default()).await.unwrap();
        for host in all.items {
            let name = host.metadata.name.unwrap();
            let gone = self.hosts().delete(&name, &DeleteParams::default()).await;
            assert!(gone.is_ok(), "{gone:?}");
        }
    }
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}
