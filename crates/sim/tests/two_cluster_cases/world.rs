//! A management cluster and a workload cluster, each a real control plane.

use std::time::Duration;

use dogwatch_k8s::workload_cluster::KubeconfigSecret;
use dogwatch_testbed::{ControlPlane, fixtures, shared_control_plane};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::power_cases::world::{World as Metal, short};
use crate::power_rights;
use crate::remedy_cases::has_condition;
use crate::remedy_cases::world::{Member, NEED, World};
use crate::support::objects::{self, CAPI};
use crate::support::real::{REMEDIATION_ROLE, apply, apply_in, client, client_by};

const WORKLOAD_ROLE: &str = include_str!("../../../../deploy/workload-clusters/rbac.yaml");
const ACCOUNT: &str = include_str!("../../../../deploy/workload-clusters/account.yaml");
/// The Cluster, in the namespace of the hosts.
pub const CLUSTER: &str = "prod";
const SECRET: &str = "prod-dogwatch-kubeconfig";

pub struct TwoClusters {
    pub world: World,
    /// The Nodes are here.
    pub workload: ControlPlane,
    provider: JoinHandle<()>,
}

impl TwoClusters {
    pub async fn start() -> Self {
        let workload = ControlPlane::start().await.unwrap();
        let namespace = ["create", "namespace", "dogwatch"];
        workload.run_kubectl(&namespace, "").await.unwrap();
        give_account(&workload).await;
        let there = client_by(workload.admin_kubeconfig()).await;
        let mut metal = Metal::on(client().await, short(), Timestamp::now()).await;
        metal.leading = power_rights::controller().await;
        apply(REMEDIATION_ROLE).await;
        apply_in_namespace(&metal.namespace).await;
        objects::install(&metal.client, [fixtures::cluster_api_machines()]).await;
        objects::until_served(&machines(&metal.client, &metal.namespace)).await;
        let namespace = metal.namespace.clone();
        let mut world = World::on(metal).await;
        world.home = "dogwatch".into();
        world.node_client = there.clone();
        world.workload = Some(KubeconfigSecret::Dogwatch);
        Self {
            world,
            workload,
            provider: tokio::spawn(give_provider_ids(there, namespace)),
        }
    }

    pub fn machines(&self) -> Api<DynamicObject> {
        machines(&self.world.metal.client, &self.world.metal.namespace)
    }

    /// A host here whose Node is there, with a Machine of the Cluster.
    pub async fn member(&self, short: &str) -> Member {
        let member = self.world.host(short, &json!({})).await;
        self.world
            .until("the Node has a provider id", || async {
                let node = self.world.node(short).await;
                node.is_some_and(|node| node.spec.unwrap_or_default().provider_id.is_some())
            })
            .await;
        let namespace = &self.world.metal.namespace;
        let mut spec = objects::capi_spec(CAPI);
        spec["clusterName"] = json!(CLUSTER);
        spec["providerID"] = json!(provider_id(namespace, short));
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": short,
                "annotations": { "metal3.io/BareMetalHost": format!("{namespace}/{short}") } },
            "spec": spec,
        });
        objects::create(&self.machines(), machine).await;
        let node = self.world.node_name(short);
        let status = json!({ "nodeRef": { "name": node.as_str() } });
        objects::change_status(&self.machines(), short, status).await;
        member
    }

    pub async fn mark(&self, short: &str) {
        let body = json!({ "metadata": { "annotations": { NEED: "" } } });
        objects::change(&self.machines(), short, body).await;
    }

    pub async fn until_said(&self, short: &str, reason: &str) {
        self.world
            .until(reason, || async {
                let machine = self.machines().get(short).await.unwrap();
                has_condition(&machine, "Remediation", "reason", reason)
            })
            .await;
    }

    pub async fn is_marked(&self, short: &str) -> bool {
        let machine = self.machines().get(short).await.unwrap();
        machine.annotations().contains_key(NEED)
    }

    /// The kubeconfig of the remediator's account there.
    pub async fn kubeconfig(&self) -> Value {
        self.workload
            .wait_until_rights_are_in_force()
            .await
            .unwrap();
        let token = self
            .workload
            .service_account_token("dogwatch", "dogwatch-remediator", None)
            .await
            .unwrap();
        kubeconfig_of(&self.workload, &json!({ "token": token }))
    }

    /// The kubeconfig where Dogwatch's namespace there has this name.
    pub async fn kubeconfig_in(&self, namespace: &str) -> Value {
        let words = ["create", "namespace", namespace];
        self.workload.run_kubectl(&words, "").await.unwrap();
        let place = format!("namespace: {namespace}");
        let account = ACCOUNT.replace("namespace: dogwatch", &place);
        let apply = ["apply", "-f", "-"];
        self.workload.run_kubectl(&apply, &account).await.unwrap();
        let rights = self.workload.wait_until_rights_are_in_force();
        rights.await.unwrap();
        let token = self
            .workload
            .service_account_token(namespace, "dogwatch-remediator", None)
            .await
            .unwrap();
        let mut kubeconfig = kubeconfig_of(&self.workload, &json!({ "token": token }));
        kubeconfig["contexts"][0]["context"]["namespace"] = namespace.into();
        kubeconfig
    }

    /// Creates the Secret, or replaces its kubeconfig.
    pub async fn give_kubeconfig(&self, kubeconfig: &Value) {
        let namespace = &self.world.metal.namespace;
        let secrets: Api<Secret> = Api::namespaced(self.world.metal.client.clone(), namespace);
        let value = ByteString(kubeconfig.to_string().into_bytes());
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": { "name": SECRET, "labels": { "cluster.x-k8s.io/cluster-name": CLUSTER } },
            "data": { "value": value },
        });
        let params = PatchParams::apply("test").force();
        secrets
            .patch(SECRET, &params, &Patch::Apply(secret))
            .await
            .unwrap();
    }

    /// The old credentials are refused from now on.
    pub async fn renew_account(&self) {
        let delete = [
            "delete",
            "serviceaccount",
            "-n",
            "dogwatch",
            "dogwatch-remediator",
        ];
        self.workload.run_kubectl(&delete, "").await.unwrap();
        give_account(&self.workload).await;
    }

    pub async fn end(self) {
        self.provider.abort();
        let all = self.machines().list(&ListParams::default()).await.unwrap();
        for machine in all {
            let name = machine.name_any();
            let _: kube::Result<_> = self
                .machines()
                .delete(&name, &DeleteParams::default())
                .await;
        }
        self.world.end().await;
    }
}

fn machines(client: &Client, namespace: &str) -> Api<DynamicObject> {
    objects::objects(client, namespace, CAPI)
}

async fn apply_in_namespace(namespace: &str) {
    power_rights::in_namespace(namespace).await;
    apply_in(namespace, WORKLOAD_ROLE).await;
    let plane = shared_control_plane().await;
    plane.wait_until_rights_are_in_force().await.unwrap();
}

async fn give_account(workload: &ControlPlane) {
    let apply = ["apply", "-f", "-"];
    workload.run_kubectl(&apply, ACCOUNT).await.unwrap();
}

/// A kubeconfig that contains all that it needs.
pub fn kubeconfig_of(plane: &ControlPlane, user: &Value) -> Value {
    let authority = std::fs::read(plane.folder().join("ca.crt")).unwrap();
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "clusters": [{ "name": "c", "cluster": { "server": plane.api_url(),
            "certificate-authority-data": ByteString(authority) } }],
        "users": [{ "name": "u", "user": user }],
    })
}

fn provider_id(namespace: &str, short: &str) -> String {
    format!("metal3://{namespace}/{short}/m-{short}")
}

/// Gives each new Node its provider id, as Cluster API's infrastructure provider does.
async fn give_provider_ids(client: Client, namespace: String) {
    let nodes: Api<Node> = Api::all(client);
    loop {
        // The cluster may be away.
        let listed = nodes.list(&ListParams::default()).await;
        for node in listed.into_iter().flatten() {
            let name = node.name_any();
            let is_set = node.spec.and_then(|spec| spec.provider_id).is_some();
            let short = name.strip_prefix(&format!("{namespace}-"));
            if let Some(short) = short.filter(|_| !is_set) {
                let id = provider_id(&namespace, short);
                let patch = Patch::Merge(json!({ "spec": { "providerID": id } }));
                let _: kube::Result<Node> =
                    nodes.patch(&name, &PatchParams::default(), &patch).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
