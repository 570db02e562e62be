//! One node with its pods on an API server, and a kubelet that only ends pods.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::drain::{
    DrainConfig, DrainProgress, EvictionAnswer, EvictionAttempt, EvictionId, PodIdentity,
    RemovalMethod,
};
use dogwatch_k8s::drain::{DrainHandle, DrainRunner, request_pod_removal};
use dogwatch_k8s::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

pub struct World {
    pub client: Client,
    pub namespace: String,
    pub node: String,
    started: Instant,
    kubelet: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.kubelet.abort();
    }
}

impl World {
    /// A namespace and a node that no other test uses; pods there end as soon as they are deleted.
    pub async fn on(client: Client) -> Self {
        Self::with_pods_that_end_after(client, Duration::ZERO).await
    }

    pub async fn with_pods_that_end_after(client: Client, after: Duration) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let namespace = format!("drain-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let node = format!("{namespace}-node");
        let kubelet = tokio::spawn(end_pods(client.clone(), node.clone(), after));
        let world = Self {
            client,
            namespace,
            node,
            started: Instant::now(),
            kubelet,
        };
        world
            .create::<Namespace>(None, json!({"metadata": {"name": world.namespace}}))
            .await;
        world
            .create::<Node>(None, json!({"metadata": {"name": world.node}}))
            .await;
        world
    }

    /// Another node beside this world's, with pods in the same namespace.
    pub async fn beside(client: Client, namespace: &str, name: &str) -> Self {
        let node = format!("{namespace}-{name}");
        let kubelet = tokio::spawn(end_pods(client.clone(), node.clone(), Duration::ZERO));
        let world = Self {
            client,
            namespace: namespace.to_owned(),
            node,
            started: Instant::now(),
            kubelet,
        };
        world
            .create::<Node>(None, json!({"metadata": {"name": world.node}}))
            .await;
        world
    }

    pub fn drain(&self, config: DrainConfig) -> DrainHandle {
        self.drain_as(self.client.clone(), config)
    }

    pub fn drain_as(&self, client: Client, config: DrainConfig) -> DrainHandle {
        let started = self.started;
        let clock = move || {
            let mono = started.elapsed();
            Now {
                wall: Timestamp::UNIX_EPOCH.checked_add(mono).unwrap(),
                mono,
            }
        };
        DrainRunner::start_drain(client, &self.node, config, clock)
    }

    /// Nothing reports when an API server applies a new policy or webhook, so this asks repeatedly.
    /// The pod need not exist: admission comes before the pod is read.
    pub async fn until_evictions_are_refused(&self, pod: &str) {
        let one = EvictionAttempt {
            id: EvictionId(0),
            pod: PodIdentity {
                namespace: self.namespace.clone(),
                name: pod.to_owned(),
                uid: "u".into(),
            },
            removal_method: RemovalMethod::Evict,
        };
        self.within(async {
            while !matches!(
                request_pod_removal(&self.client, &one).await,
                EvictionAnswer::NotAdmitted { .. }
            ) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
    }

    pub async fn within<T>(&self, what: impl Future<Output = T>) -> T {
        tokio::time::timeout(PATIENCE, what)
            .await
            .expect("it never happened")
    }

    pub async fn until(
        &self,
        drain: &DrainHandle,
        holds: impl Fn(&DrainProgress) -> bool,
    ) -> DrainProgress {
        let mut progress = drain.progress.clone();
        let seen =
            tokio::time::timeout(PATIENCE, progress.wait_for(|progress| holds(progress))).await;
        match seen {
            Ok(seen) => seen.expect("the drain runs").clone(),
            Err(elapsed) => panic!("{elapsed}: {:#?}", drain.progress.borrow()),
        }
    }

    pub async fn until_drained(&self, drain: &DrainHandle) -> DrainProgress {
        self.until(drain, DrainProgress::is_drained).await
    }

    /// A running, ready pod on the node; `with` is merged into it.
    pub async fn pod(&self, name: &str, with: Value) -> Pod {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "nodeName": self.node,
                "containers": [{"name": "c", "image": "none"}],
            },
        });
        let status = with.get("status").cloned().unwrap_or_else(
            || json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
        );
        merge(&mut pod, with);
        let pod: Pod = self.create(Some(&self.namespace), pod).await;
        let pods = self.api::<Pod>();
        let status = Patch::Merge(json!({"status": status}));
        match pods
            .patch_status(name, &PatchParams::default(), &status)
            .await
        {
            Ok(_) => {}
            // A drain in progress deleted it first.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => panic!("{error}"),
        }
        pod
    }

    /// The names of the pods on the node, sorted.
    pub async fn pods(&self) -> Vec<String> {
        let here = ListParams::default().fields(&format!("spec.nodeName={}", self.node));
        let pods = self.api::<Pod>().list(&here).await.unwrap();
        let mut names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
        names.sort();
        names
    }

    pub async fn is_deleting(&self, pod: &str) -> bool {
        self.api::<Pod>()
            .get(pod)
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    }

    pub async fn delete(&self, pod: &str) {
        self.api::<Pod>()
            .delete(pod, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// A budget over `app=APP` that allows this number of disruptions, with a status as its
    /// controller would write it.
    pub async fn budget(&self, name: &str, app: &str, allowed: i32) {
        let budget = json!({
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
        });
        self.create::<PodDisruptionBudget>(Some(&self.namespace), budget)
            .await;
        self.allow(name, allowed).await;
    }

    /// A budget over `app=APP` whose status a controller writes.
    pub async fn guard(&self, name: &str, app: &str, min_available: i32) {
        let spec =
            json!({"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}});
        let budget = json!({"metadata": {"name": name, "namespace": self.namespace}, "spec": spec});
        self.create::<PodDisruptionBudget>(Some(&self.namespace), budget)
            .await;
    }

    pub async fn until_budget_allows(&self, name: &str, allowed: i32) {
        let here = ObjectSelection::by_fields(format!("metadata.name={name}"));
        let mut events = Box::pin(list_and_watch(
            FullObjects(self.api::<PodDisruptionBudget>()),
            here,
            || 0.5,
        ));
        let allows = |budget: &PodDisruptionBudget| {
            budget
                .status
                .as_ref()
                .and_then(|status| status.disruptions_allowed)
                == Some(allowed)
        };
        self.within(async {
            while let Some(event) = events.next().await {
                match event {
                    ObjectEvent::Restarted(all) if all.iter().any(allows) => return,
                    ObjectEvent::Applied(budget) if allows(&budget) => return,
                    ObjectEvent::Restarted(_)
                    | ObjectEvent::Applied(_)
                    | ObjectEvent::Deleted(_)
                    | ObjectEvent::Failed(_) => {}
                }
            }
        })
        .await;
    }

    pub async fn allow(&self, budget: &str, allowed: i32) {
        let status = Patch::Merge(json!({"status": {
            "disruptionsAllowed": allowed, "currentHealthy": 1 + allowed, "desiredHealthy": 1,
            "expectedPods": 1 + allowed, "observedGeneration": 1,
        }}));
        let budgets = self.api::<PodDisruptionBudget>();
        budgets
            .patch_status(budget, &PatchParams::default(), &status)
            .await
            .unwrap();
    }

    pub async fn remove_budget(&self, name: &str) {
        self.api::<PodDisruptionBudget>()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    pub async fn replicaset(&self, name: &str) -> ReplicaSet {
        self.create(
            Some(&self.namespace),
            workload(name, json!({"replicas": 1})),
        )
        .await
    }

    /// One replica, labelled `app=NAME`; `with` is merged into its spec.
    pub async fn deployment(&self, name: &str, with: Value) -> Deployment {
        let labels = json!({"app": name});
        let mut spec = json!({
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}},
        });
        merge(&mut spec, with);
        self.create(Some(&self.namespace), workload(name, spec))
            .await
    }

    /// One run, labelled `app=NAME`.
    pub async fn job(&self, name: &str) -> Job {
        let container = json!({"name": "c", "image": "none"});
        let template = json!({
            "metadata": {"labels": {"app": name}},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        });
        let job = json!({"metadata": {"name": name}, "spec": {"template": template}});
        self.create(Some(&self.namespace), job).await
    }

    pub async fn daemonset(&self, name: &str) -> DaemonSet {
        self.create(Some(&self.namespace), workload(name, json!({})))
            .await
    }

    /// The namespace is being deleted, and no controller completes the deletion.
    pub async fn terminate_namespace(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces
            .delete(&self.namespace, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// A volume of a claim in this namespace, attached to a node.
    pub async fn attached_volume(&self, name: &str, claim: &str, node: &str) {
        let volume = format!("{}-{name}", self.namespace);
        let spec = json!({
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "none", "volumeHandle": volume},
            "claimRef": {"namespace": self.namespace, "name": claim},
        });
        let volume_object = json!({"metadata": {"name": volume}, "spec": spec});
        self.create::<PersistentVolume>(None, volume_object).await;
        let attachment = json!({
            "metadata": {"name": self.attachment(name)},
            "spec": {"attacher": "none", "nodeName": node, "source": {"persistentVolumeName": volume}},
        });
        self.create::<VolumeAttachment>(None, attachment).await;
    }

    pub fn attachment(&self, name: &str) -> String {
        format!("{}-{name}-attached", self.namespace)
    }

    pub async fn detach(&self, name: &str) {
        let all: Api<VolumeAttachment> = Api::all(self.client.clone());
        all.delete(&self.attachment(name), &DeleteParams::default())
            .await
            .unwrap();
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn create<K>(&self, namespace: Option<&str>, object: Value) -> K
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
    {
        let plural = K::plural(&());
        let mut path = K::url_path(&(), namespace);
        path.push('?');
        let mut object = object;
        merge(
            &mut object,
            json!({"apiVersion": K::api_version(&()), "kind": K::kind(&())}),
        );
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(object.to_string().into_bytes())
            .unwrap();
        let made = self.client.request(request).await;
        made.unwrap_or_else(|error| panic!("cannot create one of {plural}: {error}"))
    }
}

fn workload(name: &str, with: Value) -> Value {
    let labels = json!({"set": name});
    let mut set = json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "none"}]},
            },
        },
    });
    merge(&mut set["spec"], with);
    set
}

/// A JSON merge patch.
pub fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Does a kubelet's last step: deletes a pod for good once its containers have stopped.
async fn end_pods(client: Client, node: String, after: Duration) {
    let pods: Api<Pod> = Api::all(client.clone());
    let here = ObjectSelection::by_fields(format!("spec.nodeName={node}"));
    let mut events = Box::pin(list_and_watch(FullObjects(pods), here, || 0.5));
    let mut ending = tokio::task::JoinSet::new();
    let mut known = std::collections::BTreeSet::new();
    while let Some(event) = events.next().await {
        let seen = match event {
            ObjectEvent::Restarted(pods) => pods,
            ObjectEvent::Applied(pod) => vec![pod],
            ObjectEvent::Deleted(_) | ObjectEvent::Failed(_) => Vec::new(),
        };
        for pod in seen
            .into_iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_some())
        {
            if known.insert(pod.uid()) {
                ending.spawn(end(client.clone(), pod, after));
            }
        }
    }
}

async fn end(client: Client, pod: Pod, after: Duration) {
    tokio::time::sleep(after).await;
    let pods: Api<Pod> = Api::namespaced(client, &pod.namespace().unwrap());
    let preconditions = Preconditions {
        uid: pod.uid(),
        resource_version: None,
    };
    let now = DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    }
    .grace_period(0);
    // Another caller may have deleted it already.
    drop(pods.delete(&pod.name_any(), &now).await);
}
