//! The cluster of one test: its control plane, its watches, and its objects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_core::verify;
use dogwatch_core::verify::audit::AuditLineError;
use dogwatch_testbed::{AuditEntry, AuditMark};
use serde_json::{Value, json};

use super::api::Api;
use super::plane::{ACCOUNT, Plane, USER};
use super::read::is_true;
use super::world::{Seen, World};
use super::{Machine, PATIENCE, Setting, objects, token};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases";

pub struct Cluster {
    pub plane: Plane,
    pub api: Api,
    pub world: World,
    /// This test's own namespace, for its pods.
    pub namespace: String,
    /// The kubeconfig of the coordinators. By default, each coordinator has its own token, bound to
    /// a pod on its Node as with the DaemonSet; this one is bound to nothing.
    pub kubeconfig: PathBuf,
    unbound: PathBuf,
    mark: AuditMark,
    number: u32,
    /// Promises that the test itself breaks, as a person might.
    broken_by_hand: Mutex<Vec<&'static str>>,
}

impl Cluster {
    /// A clean cluster with all admission policies in force.
    pub async fn new() -> Self {
        Self::on(Plane::borrow(true).await).await
    }

    /// A clean cluster without admission policies, as with `deploy/base` alone.
    pub async fn without_policies() -> Self {
        Self::on(Plane::borrow(false).await).await
    }

    /// A client for the account of this kubeconfig.
    pub async fn api_of(&self, kubeconfig: &Path) -> Api {
        let client = dogwatch_k8s::connect::connect_by_kubeconfig(kubeconfig).await;
        Api(client.expect("a kubeconfig"))
    }

    async fn on(plane: Plane) -> Self {
        static TESTS: AtomicU32 = AtomicU32::new(0);
        let client = dogwatch_k8s::connect::connect_by_kubeconfig(plane.admin_kubeconfig())
            .await
            .expect("a kubeconfig");
        let api = Api(client);
        clean(&api).await;
        let number = TESTS.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("test-{number}");
        api.create(
            "/api/v1/namespaces",
            &json!({ "metadata": { "name": namespace } }),
        )
        .await;
        let token = plane
            .service_account_token("dogwatch", ACCOUNT, None)
            .await
            .expect("an account");
        let unbound = plane.kubeconfig_for(&token).expect("a folder to write to");
        Self {
            world: World::watch(&api),
            kubeconfig: unbound.clone(),
            unbound,
            mark: plane.audit_mark().await.expect("an audit log"),
            api,
            namespace,
            number,
            plane,
            broken_by_hand: Mutex::default(),
        }
    }

    /// Machines with Ready Nodes, each with its coordinator.
    pub async fn machines(&self, count: usize) -> Vec<Machine> {
        let mut machines = Vec::new();
        for _ in 0..count {
            machines.push(self.machine(Setting::default()).await);
        }
        machines
    }

    /// A machine with a Ready Node, and its coordinator.
    pub async fn machine(&self, setting: Setting) -> Machine {
        let machine = self.machine_without_coordinator(setting).await;
        machine.start_coordinator().await;
        machine
    }

    /// Like [`Self::machine`], without the coordinator.
    pub async fn machine_without_coordinator(&self, setting: Setting) -> Machine {
        static NODES: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "node-{}-{}",
            self.number,
            NODES.fetch_add(1, Ordering::Relaxed)
        );
        Machine::install(self, &name, setting).await
    }

    /// The kubeconfig of the coordinator on this existing Node.
    pub async fn kubeconfig_on(&self, node: &str) -> PathBuf {
        if self.kubeconfig != self.unbound {
            return self.kubeconfig.clone();
        }
        let token = token::on_node(&self.api, ACCOUNT, node).await;
        let kubeconfig = self.plane.kubeconfig_for(&token);
        kubeconfig.expect("a folder to write to")
    }

    /// Waits until the API server serves a new kind.
    pub async fn until_served(&self, path: &str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while self.api.list(path).await.is_none() {
            assert!(tokio::time::Instant::now() < deadline, "not served: {path}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Creates an object in this test's namespace; `kind` is the path after it.
    pub async fn create(&self, kind: &str, object: &Value) -> Value {
        self.api.create(&self.path(kind), object).await
    }

    /// `/apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL/…` for `GROUP/VERSION/PLURAL/…`, with
    /// `v1/PLURAL/…` for the core.
    pub fn path(&self, kind: &str) -> String {
        let namespace = &self.namespace;
        let parts: Vec<&str> = kind.splitn(3, '/').collect();
        match parts.as_slice() {
            ["v1", rest @ ..] => format!("/api/v1/namespaces/{namespace}/{}", rest.join("/")),
            [group, version, rest] => {
                format!("/apis/{group}/{version}/namespaces/{namespace}/{rest}")
            }
            _ => panic!("{kind} is no v1/PLURAL and no GROUP/VERSION/PLURAL"),
        }
    }

    /// Creates a pod and waits until its kubelet reports it as ready.
    pub async fn pod(&self, object: &Value) {
        let name = object["metadata"]["name"]
            .as_str()
            .expect("a pod has a name")
            .to_owned();
        self.create("v1/pods", object).await;
        self.world
            .until(&format!("pod {name} is ready"), |seen| {
                is_true(seen.pod(&name)?, "Ready").then_some(())
            })
            .await;
    }

    /// Creates a DaemonSet and binds its pod to the only Node. Returns the pod's name, once it is
    /// ready.
    pub async fn daemon_pod(&self, set: &Value, machine: &Machine) -> String {
        let created = self.create("apps/v1/daemonsets", set).await;
        let owner = &created["metadata"]["uid"];
        let made = |seen: &Seen| {
            let pod = seen
                .all("pods")
                .find(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == *owner)?;
            Some(
                pod["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            )
        };
        let name = self.world.until("the DaemonSet's pod is made", made).await;
        let binding = json!({ "metadata": { "name": name }, "target": { "kind": "Node", "name": machine.name() } });
        self.create(&format!("v1/pods/{name}/binding"), &binding)
            .await;
        self.world
            .until("the DaemonSet's pod is ready", |seen| {
                is_true(seen.pod(&name)?, "Ready").then_some(())
            })
            .await;
        name
    }

    /// Creates a PodDisruptionBudget and waits until its controller has counted `healthy` pods.
    pub async fn budget(&self, object: &Value, healthy: u32) {
        let created = self.create("policy/v1/poddisruptionbudgets", object).await;
        let name = created["metadata"]["name"]
            .as_str()
            .expect("a budget has a name");
        let path = self.path(&format!("policy/v1/poddisruptionbudgets/{name}"));
        let wait = format!("--for=jsonpath={{.status.currentHealthy}}={healthy}");
        let arguments = [
            "wait",
            &wait,
            "--timeout=180s",
            "--namespace",
            &self.namespace,
            &format!("pdb/{name}"),
        ];
        if let Err(error) = self.plane.run_kubectl(&arguments, "").await {
            panic!("{error}: {:?}", self.api.get(&path).await);
        }
    }

    /// Creates a pod on this machine that a PodDisruptionBudget blocks.
    pub async fn block_drain_of(&self, machine: &Machine) {
        self.pod(&objects::pod("db", machine.name(), "db")).await;
        self.budget(&objects::budget("db", "db", 1), 1).await;
    }

    pub async fn unblock(&self) {
        self.api
            .delete(&self.path("policy/v1/poddisruptionbudgets/db"))
            .await;
    }

    /// Unblocks the drain: the PodDisruptionBudget stays, but requires no pods any more.
    pub async fn relax(&self) {
        let relaxed = json!({ "spec": { "minAvailable": 0 } });
        self.api
            .merge(&self.path("policy/v1/poddisruptionbudgets/db"), &relaxed)
            .await;
    }

    /// Attaches a volume of this claim to this machine.
    pub async fn attach(&self, volume: &str, claim: &str, machine: &Machine) {
        let object = objects::volume(volume, &self.namespace, claim);
        self.api.create("/api/v1/persistentvolumes", &object).await;
        let attachment = json!({
            "metadata": { "name": volume },
            "spec": { "attacher": "none", "nodeName": machine.name(), "source": { "persistentVolumeName": volume } },
        });
        self.api
            .create("/apis/storage.k8s.io/v1/volumeattachments", &attachment)
            .await;
    }

    pub async fn detach(&self, volume: &str) {
        self.api
            .delete(&format!(
                "/apis/storage.k8s.io/v1/volumeattachments/{volume}"
            ))
            .await;
    }

    /// Two machines: the first is gone for good with its Node, while it held the lock; the second
    /// waits for the lock.
    pub async fn machines_whose_holder_is_gone(&self) -> Vec<Machine> {
        let machines = self.machines(2).await;
        self.block_drain_of(&machines[0]).await;
        machines[0].touch("new kernel");
        machines[0].until_phase("draining").await;
        machines[1].touch("new kernel");
        machines[1]
            .until_condition("MaintenancePlanned", "False", "LockHeldByOther")
            .await;
        machines[0].kill_coordinator().await;
        let gone = format!("/api/v1/nodes/{}", machines[0].name());
        self.api.delete(&gone).await;
        machines
    }

    /// Holds the group's lock as a holder that is no Node. A coordinator may have created the Lease
    /// before.
    pub async fn hold_lock(&self) {
        let lease = objects::held_lease("api/somebody");
        self.api
            .apply(&format!("{LEASES}/dogwatch-default-0"), &lease)
            .await;
    }

    /// Creates a Lease, or another object of Dogwatch's own.
    pub async fn lease(&self, lease: &Value) {
        self.api.create(LEASES, lease).await;
    }

    pub async fn delete_lease(&self, name: &str) {
        self.api.delete(&format!("{LEASES}/{name}")).await;
    }

    pub async fn free_lock(&self) {
        let free = json!({ "spec": { "holderIdentity": null } });
        self.api
            .merge(&format!("{LEASES}/dogwatch-default-0"), &free)
            .await;
    }

    /// Fails if ever more than `most` Nodes were unschedulable or not Ready at the same time.
    pub fn assert_never_more_out_than(&self, most: usize) {
        self.world.now(|seen| {
            let mut out = BTreeSet::new();
            for change in seen.history.iter().filter(|change| change.kind == "nodes") {
                let is_out = change.object.as_ref().is_some_and(|node| {
                    node["spec"]["unschedulable"] == true || !is_true(node, "Ready")
                });
                if is_out {
                    out.insert(&change.name)
                } else {
                    out.remove(&change.name)
                };
                assert!(
                    out.len() <= most,
                    "out of service at the same time: {out:?}"
                );
            }
        });
    }

    /// The test itself will break this promise: what follows from that is no fault.
    pub fn break_by_hand(&self, promise: &'static str) {
        let mut broken = self.broken_by_hand.lock().expect("nobody panics with it");
        broken.push(promise);
    }

    /// Recounts the promises of this test twice: from the API server's audit log, and from the
    /// machines' decision logs. Returns how many reboots each of them saw.
    pub async fn recount_history(&self, machines: &[Machine]) -> [usize; 2] {
        let lines = self.plane.audit_lines_since(self.mark).await;
        let audited = read_audited_writes(&lines.expect("an audit log"));
        let mut traced = Vec::new();
        for (file, machine) in machines.iter().enumerate() {
            traced.extend(read_decision_log(file, &machine.decision_log()));
        }
        [audited, traced].map(|writes| {
            let recount = verify::recount_writes(writes);
            assert_eq!(recount.broken, [], "a promise was broken");
            recount.rebooted
        })
    }

    /// The requests of the coordinators in this test.
    pub async fn asked(&self) -> Vec<AuditEntry> {
        let mut entries = self
            .plane
            .audit_entries_since(self.mark)
            .await
            .expect("an audit log");
        entries.retain(|entry| entry.user == USER);
        entries
    }
}

/// The history of each test is recounted at its end from the API server's audit log, unless the test
/// has failed already.
impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let lines = self.plane.audit_lines_so_far(self.mark);
        let writes = read_audited_writes(&lines.expect("an audit log"));
        let recount = verify::recount_writes(writes);
        let broken = recount.broken.iter();
        let by_hand = self.broken_by_hand.lock().expect("nobody panics with it");
        let unexpected: Vec<_> = broken
            .filter(|broken| !by_hand.contains(&broken.promise))
            .collect();
        assert!(unexpected.is_empty(), "broken promises: {unexpected:#?}");
    }
}

fn read_audited_writes(lines: &[String]) -> Vec<verify::ClusterWrite> {
    let lines = lines.iter().enumerate();
    let writes = lines.filter_map(|(number, line)| {
        match verify::audit::read_audit_line(0, number + 1, line) {
            Ok(write) => write,
            // An API server that was killed has written half a line.
            Err(AuditLineError::Unreadable { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    });
    writes.collect()
}

/// The writes in a machine's decision log. A killed coordinator may leave half a line at the end.
fn read_decision_log(file: usize, path: &Path) -> Vec<verify::ClusterWrite> {
    let text = std::fs::read_to_string(path).expect("the coordinator has written it");
    let lines = text.split_inclusive('\n').enumerate();
    let complete = lines.filter(|(_, line)| line.ends_with('\n'));
    let writes = complete.filter_map(|(number, line)| {
        let trace = verify::trace::read_trace_line(number + 1, line).expect("a line of ours")?;
        verify::trace::write_of_trace_line(file, number + 1, &trace)
    });
    writes.collect()
}

async fn clean(api: &Api) {
    for path in [
        "/api/v1/nodes",
        LEASES,
        "/apis/storage.k8s.io/v1/volumeattachments",
        "/apis/dogwatch.dev/v1alpha1/rebootpolicies",
    ] {
        api.delete(path).await;
    }
    // No kubelet would report that they have stopped.
    api.delete_now("/api/v1/namespaces/dogwatch/pods").await;
    let (namespaces, _) = api
        .list("/api/v1/namespaces")
        .await
        .expect("the API server is there");
    for namespace in namespaces {
        let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
        if name.starts_with("test-") && namespace["metadata"]["deletionTimestamp"].is_null() {
            api.delete(&format!("/api/v1/namespaces/{name}")).await;
        }
    }
}
