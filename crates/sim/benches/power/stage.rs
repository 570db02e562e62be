//! A control plane with hosts, and their BMCs on loopback.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::bare_metal_host::{API_VERSION, KIND, PLURAL};
use dogwatch_core::power::HostName;
use dogwatch_k8s::connect::connect_by_kubeconfig;
use dogwatch_kubesim::clock::{ClusterClock, TokioClock};
use dogwatch_kubesim::machine::{MachineSpec, SimMachine};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_sim::bmc::{BmcFaultKind, BmcFleet, BmcSpec, SimBmc, http_server};
use dogwatch_testbed::ControlPlane;
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use tokio::process::Command;

/// How long anything awaited may take.
pub const PATIENCE: Duration = Duration::from_mins(10);
/// From a command to the host's power.
const BMC_TAKES: Duration = Duration::from_secs(1);
/// Of hosts and Machines.
pub const NAMESPACE: &str = "metal";
/// How many hosts are made at a time.
const MADE_AT_ONCE: usize = 32;

/// All of it.
pub struct Stage {
    pub plane: ControlPlane,
    pub program: PathBuf,
    pub client: Client,
    /// By number.
    pub bmcs: Vec<SimBmc>,
    park: BmcFleet,
    port: u16,
    clock: Arc<dyn ClusterClock>,
}

pub fn name(number: usize) -> HostName {
    HostName::new(NAMESPACE, format!("h{number:05}"))
}

impl Stage {
    /// Without hosts.
    pub async fn start(program: PathBuf) -> Self {
        let plane = ControlPlane::builder().with_controllers([]).start().await;
        let plane = plane.expect("the control plane starts");
        install(&plane, &program).await;
        let client = connect_by_kubeconfig(plane.admin_kubeconfig())
            .await
            .expect("a kubeconfig");
        let park = BmcFleet::default();
        let port = serve(&park);
        Self {
            plane,
            program,
            client,
            bmcs: Vec::new(),
            park,
            port,
            clock: Arc::new(TokioClock::starting_at(Timestamp::now())),
        }
    }

    /// So many more, of which the last ones are `hung`: they take requests, and never answer.
    pub async fn add_hosts(&mut self, more: usize, hung: usize) {
        let begin = self.bmcs.len();
        let mut objects = Vec::with_capacity(more);
        for number in begin..begin + more {
            let bmc = self.bmc(number);
            if number >= begin + more - hung {
                bmc.add_fault(BmcFaultKind::Hang);
            }
            let at = self.park.add_bmc(bmc.clone());
            objects.push(object(number, at, self.port, &bmc));
            self.bmcs.push(bmc);
        }
        create_hosts(&self.hosts(), &objects).await;
        eprintln!("{} hosts", self.bmcs.len());
    }

    fn bmc(&self, number: usize) -> SimBmc {
        let (name, seed) = (name(number).name, SimulationSeed(1));
        let machine = MachineSpec::new(name.clone(), seed, Arc::clone(&self.clock));
        let spec = BmcSpec {
            acts_after: BMC_TAKES,
            ..BmcSpec::new(name, seed, Arc::clone(&self.clock))
        };
        SimBmc::for_machine(spec, SimMachine::running_first_boot(machine))
    }

    /// Asks for the host's power to be cut, or ends that.
    pub async fn annotate(&self, number: usize, annotation: &str, value: Option<&str>) {
        annotate_host(&self.hosts(), number, annotation, value).await;
    }

    /// As many connections to the API server as calls at once will need: to make them is not what is
    /// measured.
    pub async fn connect(&self, calls: usize) {
        let (hosts, name) = (self.hosts(), name(0).name);
        let gets = (0..calls).map(|_| hosts.get_metadata(&name));
        for got in futures::future::join_all(gets).await {
            got.expect("it is there");
        }
    }

    fn hosts(&self) -> Api<DynamicObject> {
        host_api(self.client.clone())
    }
}

pub fn host_api(client: Client) -> Api<DynamicObject> {
    let (group, version) = API_VERSION.split_once('/').expect("a group");
    let kind = GroupVersionKind::gvk(group, version, KIND);
    let kind = ApiResource::from_gvk_with_plural(&kind, PLURAL);
    Api::namespaced_with(client, NAMESPACE, &kind)
}

pub async fn create_hosts(hosts: &Api<DynamicObject>, objects: &[DynamicObject]) {
    let made = objects.iter().map(|object| async {
        let created = hosts.create(&PostParams::default(), object).await;
        created.expect("it is taken");
    });
    futures::stream::iter(made)
        .buffer_unordered(MADE_AT_ONCE)
        .collect::<()>()
        .await;
}

pub async fn annotate_host(
    hosts: &Api<DynamicObject>,
    number: usize,
    annotation: &str,
    value: Option<&str>,
) {
    let body = json!({ "metadata": { "annotations": { annotation: value } } });
    let (params, patch) = (PatchParams::default(), Patch::Merge(body));
    let patched = hosts.patch(&name(number).name, &params, &patch).await;
    patched.expect("it is there");
}

fn object(number: usize, at: Ipv4Addr, port: u16, bmc: &SimBmc) -> DynamicObject {
    let address = format!("redfish+http://{at}:{port}{}", bmc.system_path());
    let object = json!({
        "apiVersion": API_VERSION, "kind": KIND, "metadata": { "name": name(number).name },
        "spec": { "online": true, "bmc": { "address": address, "credentialsName": "bmc" } },
    });
    serde_json::from_value(object).expect("an object")
}

/// In a thread of their own, until the process ends.
fn serve(park: &BmcFleet) -> u16 {
    let park = park.clone();
    let listener = std::net::TcpListener::bind("0.0.0.0:0").expect("a port is free");
    listener.set_nonblocking(true).expect("Linux can");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime");
            http_server::serve_fleet(listener, park).await;
        });
    });
    port
}

/// Dogwatch's kinds and namespaces, and a Secret.
async fn install(plane: &ControlPlane, program: &Path) {
    let apply = ["apply", "--server-side", "-f", "-"];
    let manifests = [
        "manifests",
        "--ignore-cluster",
        "--image=none",
        "--controller-image=none",
        "--without-policies",
    ];
    for words in [&manifests[..], &["crds", "--hosts"]] {
        let printed = Command::new(program).args(words).output().await.unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        plane.run_kubectl(&apply, &printed).await.unwrap();
    }
    wait_for_host_kind(plane).await;
    create_namespace(plane).await;
}

pub async fn wait_for_host_kind(plane: &ControlPlane) {
    let kind = "crd/baremetalhosts.metal3.io";
    let established = ["wait", "--for=condition=established", "--timeout=60s", kind];
    plane.run_kubectl(&established, "").await.unwrap();
}

/// The hosts' namespace, with the Secret of all BMCs.
pub async fn create_namespace(plane: &ControlPlane) {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "bmc", "namespace": NAMESPACE },
        "stringData": { "username": "admin", "password": "sekret16" },
    });
    let apply = ["apply", "--server-side", "-f", "-"];
    for object in [&namespace, &secret] {
        plane
            .run_kubectl(&apply, &Value::to_string(object))
            .await
            .unwrap();
    }
}
