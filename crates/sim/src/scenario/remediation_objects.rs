//! Objects around a remediation that a script has: Machines of a Machine API, and requests to remediate.

use dogwatch_api::annotation::{BARE_METAL_HOST, NHC_NODE_NAME};
use dogwatch_api::bare_metal_host::{API_VERSION as HOST_API_VERSION, PLURAL as HOST_PLURAL};
use dogwatch_api::node_reboot::node_reboot_crd;
use dogwatch_api::power_remediation::{API_VERSION, KIND, PLURAL, condition, remediation_crd};
use dogwatch_api::reboot_schedule::schedule_crd;
use http::Method;
use serde_json::{Value, json};

use super::command::{ScenarioSetup, UserCommand};
use super::line_words::LineWords;
use super::node_reboot_objects::node_reboot_path;
use super::scenario_cluster::{DEFINITIONS_PATH, ScenarioCluster, UserRequestError};
use super::schedule_objects::schedule_path;
use crate::bare_metal::LAB_NAMESPACE;

const MACHINE_GROUP: &str = "machine.openshift.io";
const MACHINE_VERSION: &str = "v1beta1";
const MACHINE_API_VERSION: &str = "machine.openshift.io/v1beta1";
const MACHINE_PLURAL: &str = "machines";

/// A Machine that there is from the start.
#[derive(Debug, Clone)]
pub struct MachineSetup {
    /// Its name.
    pub name: String,
    /// The host that it is linked to.
    pub host: String,
    /// The node that it became, if it became one.
    pub node: Option<String>,
}

/// `machine NAME host=HOST [node=NODE]`.
pub(super) fn parse_machine_setup(words: &mut LineWords) -> Result<MachineSetup, String> {
    Ok(MachineSetup {
        name: words.next_word("the machine's name")?,
        host: words.take_option("host").ok_or("host=HOST is missing")?,
        node: words.take_option("node"),
    })
}

/// `remediation NAME of NODE [strategy=DeleteNode|OutOfServiceTaint] [timeout=TIME] [retries=N]`.
pub(super) fn parse_remediation(words: &mut LineWords) -> Result<UserCommand, String> {
    let name = words.next_word("the request's name")?;
    words.expect_word("of")?;
    let node = words.next_word("the node")?;
    let mut strategy = json!({});
    if let Some(kind) = words.take_option("strategy") {
        strategy["type"] = kind.into();
    }
    if let Some(time) = words.take_option("timeout") {
        strategy["timeout"] = time.into();
    }
    if let Some(retries) = words.number_option("retries")? {
        strategy["retryLimit"] = retries.into();
    }
    Ok(UserCommand::CreateObject {
        path: objects_path(API_VERSION, PLURAL),
        object: json!({ "apiVersion": API_VERSION, "kind": KIND,
            "metadata": { "name": name, "annotations": { NHC_NODE_NAME: node } },
            "spec": { "strategy": strategy } }),
    })
}

/// The path of `host/NAME`, `machine/NAME`, `remediation/NAME`, `node-reboot/NAME` or `schedule/NAME`; anything
/// else is a Node's name.
pub(super) fn object_path(object: &str) -> String {
    let path = |version, plural, name| format!("{}/{name}", objects_path(version, plural));
    match object.split_once('/') {
        Some(("host", name)) => path(HOST_API_VERSION, HOST_PLURAL, name),
        Some(("machine", name)) => path(MACHINE_API_VERSION, MACHINE_PLURAL, name),
        Some(("remediation", name)) => path(API_VERSION, PLURAL, name),
        Some(("node-reboot", name)) => node_reboot_path(name),
        Some(("schedule", name)) => schedule_path(name),
        Some(_) | None => format!("/api/v1/nodes/{object}"),
    }
}

fn objects_path(version: &str, plural: &str) -> String {
    format!("/apis/{version}/namespaces/{LAB_NAMESPACE}/{plural}")
}

impl ScenarioCluster {
    /// Makes the kinds and the Machines of a script, if it has any.
    pub(super) fn create_remediation_objects(
        &self,
        setup: &ScenarioSetup,
    ) -> Result<(), UserRequestError> {
        if setup.node_reboots_installed {
            self.send_user_request(Method::POST, DEFINITIONS_PATH, &node_reboot_crd())?;
        }
        if setup.schedules_installed {
            self.send_user_request(Method::POST, DEFINITIONS_PATH, &schedule_crd())?;
        }
        if setup.remediations_installed {
            self.send_user_request(Method::POST, DEFINITIONS_PATH, &remediation_crd())?;
        }
        if !setup.machines.is_empty() {
            let machines =
                open_definition(MACHINE_GROUP, MACHINE_VERSION, "Machine", MACHINE_PLURAL);
            self.send_user_request(Method::POST, DEFINITIONS_PATH, &machines)?;
        }
        for machine in &setup.machines {
            let link = format!("{LAB_NAMESPACE}/{}", machine.host);
            let object = json!({ "apiVersion": MACHINE_API_VERSION, "kind": "Machine", "spec": {},
                "metadata": { "name": machine.name, "annotations": { BARE_METAL_HOST: link } } });
            let all = objects_path(MACHINE_API_VERSION, MACHINE_PLURAL);
            self.send_user_request(Method::POST, &all, &object)?;
            if let Some(node) = &machine.node {
                let status = json!({ "status": { "nodeRef": { "kind": "Node", "name": node } } });
                let path = format!("{all}/{}/status", machine.name);
                self.send_user_request(Method::PATCH, &path, &status)?;
            }
        }
        Ok(())
    }

    /// All PowerRemediations, if the kind is installed.
    pub(super) fn list_remediations(&self) -> Vec<Value> {
        let all = self.read_object(&objects_path(API_VERSION, PLURAL));
        let items = all.and_then(|all| all["items"].as_array().cloned());
        items.unwrap_or_default()
    }

    /// Whether this object has this annotation; `None`: there is no such object.
    pub(super) fn has_annotation(&self, object: &str, name: &str) -> Option<bool> {
        let object = self.read_object(&object_path(object))?;
        Some(!object["metadata"]["annotations"][name].is_null())
    }

    /// The status of the condition `Succeeded` of `remediation/NAME` or `node-reboot/NAME`; `None`: there is no such object.
    pub(super) fn request_outcome(&self, object: &str) -> Option<String> {
        let request = self.read_object(&object_path(object))?;
        let conditions = request["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let succeeded = conditions.find(|one| one["type"] == condition::SUCCEEDED);
        let status = succeeded.and_then(|one| one["status"].as_str());
        Some(status.unwrap_or("Unknown").to_owned())
    }
}

/// As much of another project's own definition as a script needs: any field is kept.
pub(super) fn open_definition(group: &str, version: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({ "openAPIV3Schema":
        { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": { "group": group, "scope": "Namespaced",
            "names": { "kind": kind, "listKind": format!("{kind}List"),
                "plural": plural, "singular": kind.to_lowercase() },
            "versions": [{ "name": version, "served": true, "storage": true,
                "schema": schema, "subresources": { "status": {} } }] } })
}
