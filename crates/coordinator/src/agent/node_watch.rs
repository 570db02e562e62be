//! Watches this coordinator's Node.

use dogwatch_core::reboot::OwnNodeState;
use dogwatch_k8s::Client;
use dogwatch_k8s::node;
use dogwatch_k8s::watch::ObjectEvent as WatchEvent;
use futures::StreamExt as _;
use tokio::sync::mpsc::UnboundedSender;

use super::facts::ObservedFact;

/// The only standing watch of an idle coordinator, besides that of policies. Ends when the receiver
/// is dropped.
pub(super) async fn watch_node(client: Client, name: String, facts: UnboundedSender<ObservedFact>) {
    let mut events = std::pin::pin!(node::watch_node(client.clone(), &name));
    let mut shown = OwnNodeState::NotYet;
    while let Some(event) = events.next().await {
        let Some(node) = node_state_after(event) else {
            continue;
        };
        let fact = if node.is_older_version_of(&shown) {
            match read_restored_node(&client, &name, &shown).await {
                Some(fact) => fact,
                // The next event is compared with the same state again.
                None => continue,
            }
        } else {
            ObservedFact::Node(node.clone())
        };
        shown = node;
        if facts.send(fact).is_err() {
            return;
        }
    }
}

fn node_state_after(event: WatchEvent<node::Node>) -> Option<OwnNodeState> {
    match event {
        WatchEvent::Restarted(nodes) => match nodes.first() {
            Some(node) => node_fact_of(node),
            None => Some(OwnNodeState::Gone),
        },
        WatchEvent::Applied(node) => node_fact_of(&node),
        WatchEvent::Deleted(_) => Some(OwnNodeState::Gone),
        WatchEvent::Failed(error) => {
            tracing::warn!(
                error = error.error_chain(),
                "failed to watch the Node; retrying"
            );
            None
        }
    }
}

/// An event shows the Node older than one before: etcd was restored from a backup. A second read
/// confirms it, and its answer replaces what is known.
async fn read_restored_node(
    client: &Client,
    name: &str,
    shown: &OwnNodeState,
) -> Option<ObservedFact> {
    let read = node::get_node(client, name).await.ok()??;
    let node = node_fact_of(&read)?;
    let is_restored = node.is_older_version_of(shown);
    if is_restored {
        tracing::warn!("the Node is older than before: etcd was restored; its state is read anew");
    }
    let fact: fn(OwnNodeState) -> ObservedFact = if is_restored {
        ObservedFact::FreshNode
    } else {
        ObservedFact::Node
    };
    Some(fact(node))
}

fn node_fact_of(node: &node::Node) -> Option<OwnNodeState> {
    match node::observed_node(node) {
        Ok(seen) => Some(OwnNodeState::There(Box::new(seen))),
        Err(error) => {
            tracing::warn!(%error, "the API server returned a Node that is not valid");
            None
        }
    }
}
