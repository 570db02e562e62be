//! What the commands do with NodeReboots.

use std::time::Duration;

use dogwatch_api::node_reboot::NodeRebootSpec;
use dogwatch_core::duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::ObservedNodeReboot;
use dogwatch_k8s::fleet::NodeRebootFound;
use tokio::time::Instant;

use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output;
use crate::resource::not_found;

/// The longest part of a node's name in the name of an object, which has 253 characters at most.
const MAX_NODE_PART: usize = 200;
/// A controller that runs writes a status within 100 ms.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
const STATUS_READ_INTERVAL: Duration = Duration::from_millis(100);
const STATUS_HINT: &str = "a NodeReboot is carried to its node by a controller: \
                           `dogwatch check` shows whether one runs";

/// The NodeReboots of the node that have not ended; `None`: the kind is not installed.
pub async fn list_open_reboots(
    connected: &ConnectedCluster,
    node: &NodeName,
) -> Result<Option<Vec<ObservedNodeReboot>>, CommandFailure> {
    let listed = connected.fleet.list_node_reboots().await;
    let listed = listed.map_err(|error| connected.api_failure("list NodeReboots", &error))?;
    Ok(listed.open_of_node(node))
}

/// Creates a NodeReboot for the Node that exists now. Returns its name, which begins with `prefix`.
pub async fn create_node_reboot(
    connected: &ConnectedCluster,
    prefix: &str,
    node: &NodeName,
    spec: NodeRebootSpec,
) -> Result<String, CommandFailure> {
    let what = format!("request a {prefix} of node {node}");
    let fleet = &connected.fleet;
    let seen = fleet.read_node(node).await;
    let seen = seen.map_err(|error| connected.api_failure(&what, &error))?;
    let Some(seen) = seen else {
        return Err(connected.no_such_node(node).await);
    };
    let name = object_name(prefix, node);
    let spec = NodeRebootSpec {
        node_name: node.to_string(),
        node_uid: Some(seen.uid.clone()),
        ..spec
    };
    let created = fleet.create_node_reboot(&name, spec).await;
    created.map_err(|error| connected.api_failure(&what, &error))?;
    Ok(name)
}

/// A field that is left out if it is empty.
pub fn optional_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The time makes the name differ from that of a request that has ended.
fn object_name(prefix: &str, node: &NodeName) -> String {
    let short: String = node.as_str().chars().take(MAX_NODE_PART).collect();
    format!("{prefix}-{short}-{}", current_time().wall.as_second())
}

/// Warns when no controller writes the status of a NodeReboot that was just created.
pub async fn warn_if_without_status(connected: &ConnectedCluster, name: &str) {
    let deadline = Instant::now() + STATUS_TIMEOUT;
    while Instant::now() < deadline {
        match connected.fleet.find_node_reboot(name).await {
            Ok(NodeRebootFound::There(reboot)) if reboot.status.observed_generation.is_none() => {}
            Ok(_) | Err(_) => return,
        }
        tokio::time::sleep(STATUS_READ_INTERVAL).await;
    }
    let within = duration::format_duration(STATUS_TIMEOUT);
    output::print_warning(&format!(
        "dogwatch: no controller has answered nodereboot/{name} within {within}\n  → {STATUS_HINT}"
    ));
}

/// Reads the NodeReboot of this name.
pub async fn read_node_reboot(
    connected: &ConnectedCluster,
    name: &str,
) -> Result<ObservedNodeReboot, CommandFailure> {
    let found = connected.fleet.find_node_reboot(name).await;
    let what = format!("read NodeReboot {name}");
    match found.map_err(|error| connected.api_failure(&what, &error))? {
        NodeRebootFound::There(reboot) => Ok(*reboot),
        NodeRebootFound::NoNodeReboot { existing } => Err(not_found(
            format!("there is no NodeReboot {name} in this cluster"),
            name,
            &existing,
            "`kubectl get nodereboots` lists them",
        )),
        NodeRebootFound::NoKind => Err(kind_missing()),
    }
}

/// Says that the kind is not installed.
pub fn kind_missing() -> CommandFailure {
    let text = "the CRD NodeReboot is not installed in this cluster";
    CommandFailure::new(CliExitCode::NotFound, text)
        .with_next_step("install it: dogwatch crds | kubectl apply --server-side -f -")
}
