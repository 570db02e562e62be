//! Reads, watches and patches our own Node.
//!
//! **May touch:** one Node, its status, and Events about it.
//! **Promises:** every change of the Node carries its UID and resourceVersion as preconditions
//! (specification §2.4); an answer to a write replaces the view, so that nobody decides on an older
//! one.

mod event;
mod gates;
mod patch;
mod view;

pub use event::EventWriter;
pub use gates::{list_blocking_pods, list_shut_gates};
pub use patch::{patch_conditions, patch_node};
pub use view::observed_node;

/// The taint that allows workloads to be removed from a node by force. Source: Kubernetes.
pub const OUT_OF_SERVICE_TAINT: &str = "node.kubernetes.io/out-of-service";

pub(crate) use patch::{cordon_spec, format_seconds, merge_patch};

pub use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};

use futures::stream::Stream;

use crate::Error;
use crate::error::with_timeout;
use crate::readable_dates::ReadableApi as _;
use crate::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};

/// `None`: the API server has no Node of this name.
pub async fn get_node(client: &Client, name: &str) -> Result<Option<Node>, Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    with_timeout(nodes.get_readable_opt(name)).await
}

/// The only standing watch of an idle coordinator.
pub fn watch_node(
    client: Client,
    name: &str,
) -> impl Stream<Item = ObjectEvent<Node>> + Send + use<> {
    let nodes = FullObjects(Api::<Node>::all(client));
    // One watcher of one object needs no jitter.
    list_and_watch(
        nodes,
        ObjectSelection::by_fields(format!("metadata.name={name}")),
        || 0.5,
    )
}
