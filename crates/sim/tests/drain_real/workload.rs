//! One workload on a real control plane: its pods are bound, made ready and ended as by a scheduler
//! and kubelets, and every moment without a ready pod is seen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use dogwatch_k8s::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::drain_cases::world::World;

/// The scheduler and the kubelets of one workload, `app=web`. Pods go to the world's node until it
/// is cordoned, then elsewhere.
pub struct PlayedWorkload {
    pub world: World,
    state: Arc<PlayedState>,
    elsewhere: World,
    player: JoinHandle<()>,
}

#[derive(Default)]
struct PlayedState {
    cordoned: AtomicBool,
    /// New pods do not become ready.
    stuck: AtomicBool,
    /// The fewest ready pods since the first one, plus one; 0 before that.
    fewest: AtomicUsize,
}

impl Drop for PlayedWorkload {
    fn drop(&mut self) {
        self.player.abort();
    }
}

impl PlayedWorkload {
    pub async fn start(client: Client) -> Self {
        let world = World::on(client.clone()).await;
        let elsewhere = World::beside(client, &world.namespace, "elsewhere").await;
        let state = Arc::new(PlayedState::default());
        let nodes = [world.node.clone(), elsewhere.node.clone()];
        let player = tokio::spawn(play(world.api(), nodes, Arc::clone(&state)));
        Self {
            world,
            state,
            elsewhere,
            player,
        }
    }

    pub fn cordon(&self) {
        self.state.cordoned.store(true, Ordering::SeqCst);
    }

    /// From now on new pods do not become ready.
    pub fn hold_new_pods(&self) {
        self.state.stuck.store(true, Ordering::SeqCst);
    }

    pub async fn let_new_pods_be_ready(&self) {
        self.state.stuck.store(false, Ordering::SeqCst);
        let pods = self.world.api::<Pod>();
        let all = pods.list(&ListParams::default()).await.unwrap();
        for pod in all.items.iter().filter(|pod| !is_ready(pod)) {
            make_ready(&pods, &pod.name_any()).await;
        }
    }

    /// The fewest ready pods at any moment since the first one was ready.
    pub fn fewest_ready(&self) -> usize {
        let fewest = self.state.fewest.load(Ordering::SeqCst);
        fewest.checked_sub(1).expect("a pod was ready")
    }

    /// Waits until this pod of the workload is on the node and ready.
    pub async fn until_ready(&self) {
        self.world
            .within(async {
                while self.state.fewest.load(Ordering::SeqCst) == 0 {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            })
            .await;
    }

    pub async fn pods_elsewhere(&self) -> Vec<String> {
        self.elsewhere.pods().await
    }
}

async fn play(pods: Api<Pod>, nodes: [String; 2], state: Arc<PlayedState>) {
    let web = ObjectSelection::by_labels("app=web");
    let mut events = Box::pin(list_and_watch(FullObjects(pods.clone()), web, || 0.5));
    let mut ready = BTreeMap::new();
    while let Some(event) = events.next().await {
        let seen = match event {
            ObjectEvent::Restarted(all) => all,
            ObjectEvent::Applied(pod) => vec![pod],
            ObjectEvent::Deleted(pod) => {
                ready.remove(&pod.name_any());
                count(&ready, &state);
                continue;
            }
            ObjectEvent::Failed(_) => continue,
        };
        for pod in seen {
            let leaving = pod.metadata.deletion_timestamp.is_some();
            ready.insert(pod.name_any(), is_ready(&pod) && !leaving);
            count(&ready, &state);
            if !leaving {
                advance(&pods, &pod, &nodes, &state).await;
            }
        }
    }
}

fn count(ready: &BTreeMap<String, bool>, state: &PlayedState) {
    let now = ready.values().filter(|ready| **ready).count() + 1;
    let fewest = state.fewest.load(Ordering::SeqCst);
    // Counted from the first ready pod on.
    if now > 1 || fewest > 0 {
        let fewest = if fewest == 0 { now } else { fewest.min(now) };
        state.fewest.store(fewest, Ordering::SeqCst);
    }
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Binds a pod without a node, and makes a bound one ready.
async fn advance(pods: &Api<Pod>, pod: &Pod, nodes: &[String; 2], state: &PlayedState) {
    let name = pod.name_any();
    let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    if bound.is_none() {
        let cordoned = state.cordoned.load(Ordering::SeqCst);
        let node = &nodes[usize::from(cordoned)];
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        // The pod may be gone already.
        let params = PostParams::default();
        let bound = pods.create_subresource::<Value, Value>("binding", &name, &params, &binding);
        drop(bound.await);
    } else if !is_ready(pod) && !state.stuck.load(Ordering::SeqCst) && !has_ended(pod) {
        make_ready(pods, &name).await;
    }
}

async fn make_ready(pods: &Api<Pod>, name: &str) {
    let status = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}});
    let params = PatchParams::default();
    // The pod may be gone already.
    drop(
        pods.patch_status(name, &params, &Patch::Merge(status))
            .await,
    );
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}
