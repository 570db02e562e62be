//! Nodes with heartbeats, and the Machines that say which host carries them.

use dogwatch_testbed::fixtures;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::objects::{self, CAPI, Kind, METAL3_MACHINE, OPENSHIFT};

/// The Nodes of one namespace's hosts.
pub struct Life {
    people: Client,
    namespace: String,
}

impl Life {
    /// Installs the kinds of Machines on the server.
    pub async fn of(people: &Client, namespace: &str) -> Self {
        let life = Self {
            people: people.clone(),
            namespace: namespace.to_owned(),
        };
        objects::install(
            people,
            [
                fixtures::openshift_machines(),
                fixtures::cluster_api_machines(),
                fixtures::metal3_machines(),
            ],
        )
        .await;
        for kind in [OPENSHIFT, CAPI, METAL3_MACHINE] {
            objects::until_served(&life.api(kind)).await;
        }
        let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(people.clone());
        let name = json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": "kube-node-lease" } });
        let params = PatchParams::apply("people").force();
        namespaces
            .patch("kube-node-lease", &params, &Patch::Apply(&name))
            .await
            .unwrap();
        life
    }

    fn api(&self, kind: Kind) -> Api<kube::api::DynamicObject> {
        objects::objects(&self.people, &self.namespace, kind)
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.people.clone(), "kube-node-lease")
    }

    /// The unique name of this Node.
    pub fn node(&self, node: &str) -> String {
        format!("{}-{node}", self.namespace)
    }

    /// Renews the Lease of the Node's kubelet.
    pub async fn renew(&self, node: &str, at: &str) {
        let node = self.node(node);
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": node },
            "spec": { "holderIdentity": node, "renewTime": at, "leaseDurationSeconds": 40 } });
        let params = PatchParams::apply("kubelet").force();
        self.leases()
            .patch(&node, &params, &Patch::Apply(&lease))
            .await
            .unwrap();
    }

    /// A Machine with this Node; its annotation names `host`, unless that is empty.
    pub async fn machine(&self, kind: Kind, node: &str, host: &str, more: Value) {
        let spec = if kind == CAPI {
            objects::capi_spec(kind)
        } else {
            json!({})
        };
        let mut object = json!({ "metadata": { "name": node }, "spec": spec });
        if let Some(Value::Object(spec)) = more.get("spec") {
            for (field, value) in spec {
                object["spec"][field] = value.clone();
            }
        }
        if !host.is_empty() {
            let link = format!("{}/{host}", self.namespace);
            object["metadata"]["annotations"] = json!({ "metal3.io/BareMetalHost": link });
        }
        object["apiVersion"] = json!(format!("{}/{}", kind.0, kind.1));
        object["kind"] = json!(kind.2);
        objects::create(&self.api(kind), object).await;
        let status = json!({ "nodeRef": { "name": self.node(node) } });
        objects::change_status(&self.api(kind), node, status).await;
    }

    /// A Metal3Machine on the host of the same name.
    pub async fn metal3_machine(&self, name: &str) {
        let link = format!("{}/{name}", self.namespace);
        let object = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "Metal3Machine", "spec": {},
            "metadata": { "name": name, "annotations": { "metal3.io/BareMetalHost": link } } });
        objects::create(&self.api(METAL3_MACHINE), object).await;
    }

    /// Deletes the Leases of these Nodes.
    pub async fn clear(&self, nodes: &[&str]) {
        for node in nodes {
            let params = DeleteParams::default();
            let gone = self.leases().delete(&self.node(node), &params).await;
            gone.unwrap();
        }
    }
}
