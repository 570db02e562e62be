//! One server with the kinds that remediation uses, and the remediator's clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_core::name::NodeName;
use dogwatch_core::power::{HostName, HostSnapshot};
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{
    MachineApi, MachineName, ObjectName, ObservedMachine, PowerRequest, StoredBackup,
};
use dogwatch_k8s::host::HostClient;
use dogwatch_k8s::node::observed_node;
use dogwatch_k8s::remediation::{RemediationClient, RemediationWatch, RemediationWatchView};
use dogwatch_testbed::fixtures;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::support::PATIENCE;
use crate::support::objects;
pub use crate::support::objects::{
    CAPI, CAPI_OLD, CLUSTER, HOST, Kind, METAL3_MACHINE, NODE, OPENSHIFT, REQUEST, capi_spec,
};

/// Dogwatch's namespace.
pub const HOME: &str = "dogwatch";

#[derive(Clone)]
pub struct World {
    /// A client with all rights.
    pub people: Client,
    /// The remediator's client.
    pub controller: Client,
    pub namespace: String,
}

/// The definitions of all kinds, with Dogwatch's own BareMetalHost.
pub fn definitions() -> Vec<Value> {
    vec![
        fixtures::openshift_machines(),
        fixtures::cluster_api_machines(),
        cluster_definition(),
        fixtures::metal3_machines(),
        dogwatch_api::bare_metal_host::host_crd(),
        dogwatch_api::power_remediation::remediation_crd(),
    ]
}

/// Cluster API's kind Cluster, with any fields.
fn cluster_definition() -> Value {
    let (group, version, kind, plural) = CLUSTER;
    let schema = json!({ "openAPIV3Schema":
        { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": { "group": group, "scope": "Namespaced",
            "names": { "kind": kind, "listKind": "ClusterList", "plural": plural,
                "singular": "cluster" },
            "versions": [{ "name": version, "served": true, "storage": true,
                "schema": schema }] } })
}

impl World {
    /// A new namespace, on a server that has all kinds. `controller` is a client with the
    /// controller's rights.
    pub async fn on(people: Client, controller: Client) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let world = Self {
            people,
            controller,
            namespace: format!("remedy-{number}"),
        };
        objects::make_namespace(&world.people, &world.namespace).await;
        let home = json!({ "metadata": { "name": HOME } });
        let home = serde_json::from_value(home).unwrap();
        let namespaces: Api<Namespace> = Api::all(world.people.clone());
        // It may exist already.
        let _: kube::Result<_> = namespaces.create(&PostParams::default(), &home).await;
        for definition in definitions() {
            world.install(&definition).await;
        }
        world
    }

    pub fn client(&self) -> RemediationClient {
        RemediationClient::new(self.controller.clone(), HOME)
    }

    pub fn api(&self, kind: Kind) -> Api<DynamicObject> {
        if kind == NODE {
            Api::all_with(self.people.clone(), &objects::resource(kind))
        } else {
            objects::objects(&self.people, &self.namespace, kind)
        }
    }

    /// Installs this definition in place of any other one of the kind.
    pub async fn install(&self, definition: &Value) {
        let mut definition: CustomResourceDefinition =
            serde_json::from_value(definition.clone()).unwrap();
        let name = definition.name_any();
        let kinds: Api<CustomResourceDefinition> = Api::all(self.people.clone());
        let params = PostParams::default();
        let deadline = Instant::now() + PATIENCE;
        // Controllers of the server write to it, and the previous one may still be terminating.
        loop {
            let there = kinds.get_opt(&name).await.unwrap();
            definition.metadata.resource_version =
                there.as_ref().and_then(ResourceExt::resource_version);
            let answer = match there {
                Some(there) if there.metadata.deletion_timestamp.is_some() => None,
                Some(_) => kinds.replace(&name, &params, &definition).await.ok(),
                None => kinds.create(&params, &definition).await.ok(),
            };
            if answer.is_some() {
                break;
            }
            assert!(Instant::now() < deadline, "{name} cannot be installed");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for version in definition.spec.versions.iter().filter(|it| it.served) {
            let spec = &definition.spec;
            let list = format!(
                "/apis/{}/{}/{}",
                spec.group, version.name, spec.names.plural
            );
            self.until_answered(&list, 200).await;
        }
    }

    /// Removes the kind, which deletes all its objects.
    pub async fn take_out(&self, (group, version, _, plural): Kind) {
        let kinds: Api<CustomResourceDefinition> = Api::all(self.people.clone());
        let name = format!("{plural}.{group}");
        // It may not exist.
        let _: kube::Result<_> = kinds.delete(&name, &DeleteParams::default()).await;
        self.until_answered(&format!("/apis/{group}/{version}/{plural}"), 404)
            .await;
    }

    pub async fn until_answered(&self, path: &str, code: u16) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            let answer = self.people.request::<Value>(request).await;
            let got = match &answer {
                Ok(_) => 200,
                Err(kube::Error::Api(status)) => status.code,
                Err(error) => panic!("{error}"),
            };
            if got == code {
                return;
            }
            assert!(Instant::now() < deadline, "{path}: {answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Creates an object; a `status` in it is written afterwards.
    pub async fn make(&self, kind: Kind, name: &str, more: Value) -> DynamicObject {
        let (group, version, singular, _) = kind;
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let mut object = more;
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(singular);
        object["metadata"]["name"] = json!(name);
        let status = object.as_object_mut().unwrap().remove("status");
        let made = objects::create(&self.api(kind), object).await;
        match status {
            Some(status) => self.change_status(kind, name, &status).await,
            None => made,
        }
    }

    pub async fn object(&self, kind: Kind, name: &str) -> DynamicObject {
        self.api(kind).get(name).await.unwrap()
    }

    pub async fn change(&self, kind: Kind, name: &str, change: &Value) -> DynamicObject {
        objects::change(&self.api(kind), name, change.clone()).await
    }

    pub async fn annotate(&self, kind: Kind, name: &str, annotations: Value) -> DynamicObject {
        let change = json!({ "metadata": { "annotations": annotations } });
        self.change(kind, name, &change).await
    }

    pub async fn change_status(&self, kind: Kind, name: &str, status: &Value) -> DynamicObject {
        objects::change_status(&self.api(kind), name, status.clone()).await
    }

    pub async fn delete(&self, kind: Kind, name: &str) {
        let api = self.api(kind);
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// A name that no other test has, for cluster-scoped objects.
    pub fn unique(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    pub fn object_name(&self, name: &str) -> ObjectName {
        ObjectName::new(&self.namespace, name)
    }

    /// A host with these annotations, as the remediator sees it.
    pub async fn host(&self, name: &str, annotations: Value) -> HostSnapshot {
        let more =
            json!({ "metadata": { "annotations": annotations }, "spec": { "online": true } });
        self.make(HOST, name, more).await;
        self.host_now(name).await
    }

    pub async fn host_now(&self, name: &str) -> HostSnapshot {
        let name = HostName::new(&self.namespace, name);
        let hosts = HostClient::new(self.controller.clone());
        hosts.read_host(&name).await.unwrap().unwrap()
    }

    /// The stored backup of this host, as the remediator sees it.
    pub async fn kept(&self, host: &HostSnapshot) -> Option<Arc<StoredBackup>> {
        let mut sight = self.sight();
        let synced = sight.until(|view| view.synced.then(|| view.backups.clone()));
        synced.await.get(&host.uid).cloned()
    }

    /// The backups are ConfigMaps in Dogwatch's namespace.
    pub fn backups(&self) -> Api<ConfigMap> {
        Api::namespaced(self.people.clone(), HOME)
    }

    /// A Node with a unique name, as the remediator sees it.
    pub async fn node(&self, name: &str, more: Value) -> ObservedNode {
        let name = self.unique(name);
        self.make(NODE, &name, more).await;
        self.node_now(&name).await
    }

    /// The current Node of this unique name.
    pub async fn node_now(&self, name: &str) -> ObservedNode {
        let nodes: Api<Node> = Api::all(self.people.clone());
        observed_node(&nodes.get(name).await.unwrap()).unwrap()
    }

    pub async fn has_node(&self, name: &NodeName) -> bool {
        let nodes: Api<Node> = Api::all(self.people.clone());
        nodes.get_opt(name.as_str()).await.unwrap().is_some()
    }

    /// A Machine, as the remediator sees it.
    pub async fn machine(&self, kind: Kind, name: &str, more: Value) -> ObservedMachine {
        let mut whole = more;
        if kind != OPENSHIFT && whole["spec"].is_null() {
            whole["spec"] = capi_spec(kind);
        }
        self.make(kind, name, whole).await;
        self.machine_now(kind, name).await
    }

    pub async fn machine_now(&self, kind: Kind, name: &str) -> ObservedMachine {
        let name = MachineName {
            api: machine_api(kind),
            object: self.object_name(name),
        };
        let version = self
            .object(kind, &name.object.name)
            .await
            .resource_version();
        let mut sight = self.sight();
        let machine = sight.until(|view| {
            let it = view.machines.get(&name)?;
            (Some(&it.resource_version) == version.as_ref()).then(|| ObservedMachine::clone(it))
        });
        machine.await
    }

    /// A request, as the remediator sees it.
    pub async fn request(&self, name: &str, more: Value) -> PowerRequest {
        self.make(REQUEST, name, more).await;
        self.request_now(name).await
    }

    pub async fn request_now(&self, name: &str) -> PowerRequest {
        let name = self.object_name(name);
        let version = self.object(REQUEST, &name.name).await.resource_version();
        let mut sight = self.sight();
        let request = sight.until(|view| {
            let it = view.requests.get(&name)?;
            (Some(&it.resource_version) == version.as_ref()).then(|| PowerRequest::clone(it))
        });
        request.await
    }

    pub fn sight(&self) -> Sight {
        // Short, because a real server has a real clock.
        let again = Duration::from_millis(300);
        let watch =
            RemediationWatch::with_recheck(self.controller.clone(), Some(HOME), again, || 0.5);
        Sight(watch)
    }

    pub async fn list(&self, path: &str) -> Vec<Value> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let list: Value = self.people.request(request).await.unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub async fn no_objects(&self, kind: Kind) -> bool {
        let all = self.api(kind).list(&ListParams::default()).await;
        all.unwrap().items.is_empty()
    }
}

pub fn machine_api((group, ..): Kind) -> MachineApi {
    if group == OPENSHIFT.0 {
        MachineApi::OpenShift
    } else {
        MachineApi::ClusterApi
    }
}

/// The watches of one remediator.
pub struct Sight(RemediationWatch);

impl Sight {
    pub fn view(&self) -> &RemediationWatchView {
        self.0.current_view()
    }

    /// Waits until `find` finds something, and returns it.
    pub async fn until<T>(&mut self, find: impl Fn(&RemediationWatchView) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = find(self.0.current_view()) {
                return found;
            }
            let in_time = timeout_at(deadline, self.0.wait_for_change()).await;
            assert!(
                in_time.is_ok(),
                "not seen in time: {:?}",
                self.0.current_view()
            );
        }
    }

    pub async fn until_so(&mut self, is_so: impl Fn(&RemediationWatchView) -> bool) {
        self.until(|view| is_so(view).then_some(())).await;
    }
}

pub fn annotation<'a>(object: &'a DynamicObject, name: &str) -> Option<&'a str> {
    object.annotations().get(name).map(String::as_str)
}

pub fn shared<T>(it: T) -> Arc<T> {
    Arc::new(it)
}
