//! One API server with BareMetalHosts, simulated BMCs under them, and processes that keep them through
//! the real Redfish driver.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dogwatch_api::bare_metal_host::crd;
use dogwatch_bmc::redfish::{Exchange, Redfish};
use dogwatch_bmc::{Bmc, Credentials, Fault};
use dogwatch_controller::power::{self, PowerBoard, Settings};
use dogwatch_core::power::{Address, Config, Host, HostName, OwnerRules};
use dogwatch_core::reboot;
use dogwatch_k8s::host::{HostObject, convert};
use dogwatch_process::clock::Clock;
use dogwatch_sim::api::{FaultEffect, RequestInfo};
use dogwatch_sim::bmc::{BmcSpec, Machine, MachineSpec, Park, SimBmc, Wire};
use dogwatch_sim::clock::{Clock as _, TokioClock};
use dogwatch_sim::seed::Seed;
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

use crate::support::leader::Leader;
use crate::support::objects::{self, HOST};

pub const ANY: &str = "reboot.metal3.io";
pub const KEY: &str = "reboot.metal3.io/key";
pub const HARD: &str = r#"{"mode":"hard"}"#;
/// What no log, status, event or metric may show.
pub const PASSWORD: &str = "sekret16";

/// Where a call is cut: the process dies before it has an effect, or after and before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Before,
    After,
}

/// The calls so far, and at which of them the process dies.
type Counted = (Vec<String>, Option<(usize, Cut)>);

/// Counts calls, and lets the process die at one of them.
#[derive(Clone, Default)]
pub struct Scissors {
    state: Arc<Mutex<Counted>>,
    died: Arc<Notify>,
}

impl Scissors {
    /// Dies at the `at`-th call from now.
    pub fn set(&self, at: usize, cut: Cut) {
        *self.state.lock().unwrap() = (Vec::new(), Some((at, cut)));
    }

    pub fn calls(&self) -> Vec<String> {
        self.state.lock().unwrap().0.clone()
    }

    /// What becomes of this request to the API server.
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

    /// Whether this call is the last one.
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

/// The wire with scissors at it.
struct CutWire(Wire, Scissors);

impl Exchange for CutWire {
    fn ask(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> BoxFuture<'_, Result<Response<Bytes>, Fault>> {
        let call = format!("{} {}", request.method(), request.uri().path());
        async move {
            match self.1.count(call) {
                None => self.0.ask(request, within).await,
                Some(Cut::Before) => std::future::pending().await,
                Some(Cut::After) => {
                    // It is taken at once; nobody hears what is answered.
                    let _ = self.0.ask(request, within).await;
                    std::future::pending().await
                }
            }
        }
        .boxed()
    }
}

/// One server, one namespace.
pub struct World {
    pub client: Client,
    /// What the processes reach the API server with.
    pub leading: Client,
    pub namespace: String,
    pub config: Config,
    pub park: Park,
    pub scissors: Scissors,
    pub clock: Arc<TokioClock>,
}

/// A process; dropped, it is killed.
pub struct Process {
    pub leader: Leader,
    pub board: PowerBoard,
}

/// Times for a server whose clock cannot be paused.
pub fn short() -> Config {
    let seconds = Duration::from_secs;
    Config {
        poll: seconds(1),
        check: seconds(2),
        confirm: Duration::from_millis(500),
        settle: seconds(4),
        soft: seconds(20),
        call: seconds(2),
    }
}

impl World {
    pub async fn on(client: Client, config: Config, epoch: Timestamp) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let namespace = format!("power-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let world = Self {
            leading: client.clone(),
            client,
            namespace,
            config,
            park: Park::default(),
            scissors: Scissors::default(),
            clock: Arc::new(TokioClock::starting_at(epoch)),
        };
        world.install().await;
        world
            .give_secret("bmc", &[("username", "admin"), ("password", PASSWORD)])
            .await;
        world
    }

    async fn install(&self) {
        objects::install(&self.client, [crd()]).await;
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

    /// A machine that runs, and its BMC.
    pub fn machine(&self, short: &str) -> SimBmc {
        self.machine_with(short, |_, _| ())
    }

    pub fn machine_with(
        &self,
        short: &str,
        change: impl FnOnce(&mut MachineSpec, &mut BmcSpec),
    ) -> SimBmc {
        let clock = Arc::clone(&self.clock) as Arc<dyn dogwatch_sim::clock::Clock>;
        let mut machine = MachineSpec::new(short, Seed(7), Arc::clone(&clock));
        let mut bmc = BmcSpec::new(short, Seed(7), clock);
        change(&mut machine, &mut bmc);
        let bmc = SimBmc::of(bmc, Machine::running(machine));
        self.park.add(bmc.clone());
        bmc
    }

    /// A host over the machine of its name.
    pub async fn host(&self, short: &str) -> SimBmc {
        let bmc = self.machine(short);
        self.put_host(short, &json!({})).await;
        bmc
    }

    /// The object alone, for a machine that is there.
    pub async fn put_host(&self, short: &str, more: &Value) {
        let address = self.park.address(short, 80);
        let mut object = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": short },
            "spec": { "online": true, "bmc": { "address": address, "credentialsName": "bmc" } },
        });
        merge(&mut object, more);
        let hosts = objects::objects(&self.client, &self.namespace, HOST);
        objects::create(&hosts, object).await;
    }

    /// Makes it, or makes it this.
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

    /// `None` takes it away.
    pub async fn annotate(&self, short: &str, key: &str, value: Option<&str>) {
        let body = json!({ "metadata": { "annotations": { key: value } } });
        self.change(short, body).await;
    }

    pub async fn read(&self, short: &str) -> Host {
        convert(&self.hosts().get(short).await.unwrap())
    }

    /// Reason and status of one of its conditions.
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

    /// The clock of a process.
    pub fn wall(&self) -> Clock {
        let clock = Arc::clone(&self.clock);
        Clock::with_wall(move || clock.now())
    }

    /// A process that leads from now on.
    pub fn process(&self, name: &str) -> Process {
        self.process_with(name, self.config)
    }

    /// The same, with times of its own.
    pub fn process_with(&self, name: &str, config: Config) -> Process {
        let flags = reboot::Config::default();
        let (mut leader, mut context, _) =
            Leader::new(&self.leading, &self.namespace, &self.wall(), &flags);
        context.process = name.into();
        let board = PowerBoard::default();
        let settings = Settings {
            config,
            ..self.settings(&board)
        };
        leader.run(power::run(context, settings));
        Process { leader, board }
    }

    pub fn settings(&self, board: &PowerBoard) -> Settings {
        Settings {
            config: self.config,
            max_concurrent: NonZeroUsize::new(100).unwrap(),
            owners: OwnerRules {
                metal3_namespaces: [self.namespace.clone()].into(),
                ..OwnerRules::default()
            },
            connect: self.connect(),
            board: board.clone(),
        }
    }

    pub fn connect(&self) -> power::Connect {
        let (park, scissors) = (self.park.clone(), self.scissors.clone());
        Arc::new(
            move |address: &Address, credentials: &Credentials, _: bool| {
                let wire = park.wire(address.host()).unwrap();
                let exchange = Arc::new(CutWire(wire, scissors.clone()));
                let driver = Redfish::over(exchange, address, credentials.clone())?;
                Ok(Arc::new(driver) as Arc<dyn Bmc>)
            },
        )
    }

    /// Waits for what is to be observed.
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
        let hosts: Vec<Host> = hosts.items.iter().map(convert).collect();
        let machines = self.park.all().into_iter();
        let machines: BTreeMap<String, String> = machines
            .map(|(_, bmc)| (bmc.name().to_owned(), bmc.machine().log().to_string()))
            .collect();
        panic!("never: {what}: {hosts:#?} {machines:#?}");
    }

    /// Waits until a reboot is served: it is on again after it was off, and the annotation is gone.
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
            && bmc.machine().state().is_powered()
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

    /// Several polls pass.
    pub async fn time_passes(&self) {
        tokio::time::sleep(self.config.poll * 3 + self.config.settle * 2).await;
    }

    /// Takes the hosts away, so that no other case's process finds them.
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
