//! Our own Node: from the object to what the decision sees, from the decision to patches.
//!
//! **May touch:** one Node, its status, and Events about it.
//! **Promises:** every change of the Node carries its uid and resourceVersion as preconditions
//! (specification §2.4); an answer is the newest view, so that nobody decides on an older one.

mod event;
mod gates;
mod patch;
mod view;

pub use event::EventWriter;
pub use gates::{blocking_pods, shut_gates};
pub use patch::{patch_conditions, patch_node};
pub use view::node_seen;

/// The taint that says that a node's workloads may be taken from it by force. Source: Kubernetes.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

pub(crate) use patch::{cordon, merge_patch, seconds};

pub use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

use futures::stream::Stream;

use crate::Error;
use crate::error::ask;
use crate::watch::{Event, Full, Selection, watch};

/// Reads one Node. `None`: the API server says that there is none of that name.
pub async fn get_node(client: &Client, name: &str) -> Result<Option<Node>, Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    ask(nodes.get_opt(name)).await
}

/// Watches one Node: the only standing watch of an idle coordinator.
pub fn watch_node(client: Client, name: &str) -> impl Stream<Item = Event<Node>> + Send + use<> {
    let nodes = Full(Api::<Node>::all(client));
    // One watcher of one object: its pauses need no spreading.
    watch(
        nodes,
        Selection::fields(format!("metadata.name={name}")),
        || 0.5,
    )
}
