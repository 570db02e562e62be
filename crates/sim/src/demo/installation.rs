//! What `kubectl apply` of Dogwatch's manifests leaves on a cluster: its kinds, and the DaemonSet of
//! the coordinators.

use dogwatch_api::{
    COORDINATOR, node_reboot, power_remediation, power_remediation_template, reboot_policy,
    reboot_schedule,
};
use dogwatch_kubesim::api::ApiServer;
use serde_json::{Value, json};

use crate::bare_metal::{AdminRequestError, create_object};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Installs the kinds, without BareMetalHost, and the DaemonSet.
pub(super) fn install_dogwatch(server: &ApiServer) -> Result<(), AdminRequestError> {
    let definitions = [
        node_reboot::node_reboot_crd(),
        power_remediation::remediation_crd(),
        power_remediation_template::template_crd(),
        reboot_policy::policy_crd(),
        reboot_schedule::schedule_crd(),
    ];
    for definition in definitions {
        create_object(server, DEFINITIONS, &definition)?;
    }
    let namespace = dogwatch_api::DEFAULT_NAMESPACE;
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/daemonsets");
    create_object(server, &sets, &coordinator_daemonset())
}

/// The pods stand for the coordinators, which run in this process. The storage nodes have none.
fn coordinator_daemonset() -> Value {
    let labels = json!({ "app.kubernetes.io/name": COORDINATOR });
    let control_plane = "node-role.kubernetes.io/control-plane";
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": COORDINATOR, "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": [{ "key": control_plane, "operator": "Exists" }],
                    "containers": [{ "name": "coordinator", "image": COORDINATOR }],
                },
            },
        },
    })
}
