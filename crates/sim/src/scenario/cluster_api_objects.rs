//! Objects of Cluster API that a script has: Machines of nodes, and MachineDrainRules.

use http::Method;
use serde_json::{Value, json};

use super::command_parser::parse_labels;
use super::line_words::LineWords;
use super::remediation_objects::open_definition;
use super::scenario_cluster::{DEFINITIONS_PATH, ScenarioCluster, UserRequestError};

const GROUP: &str = "cluster.x-k8s.io";
const VERSION: &str = "v1beta2";
/// The namespace of the pods: a script without hosts has no other of its own.
const NAMESPACE: &str = "default";

/// What a script has of Cluster API from the start.
#[derive(Debug, Clone, Default)]
pub struct ClusterApiSetup {
    installed: bool,
    machines: Vec<ClusterApiMachine>,
    rules: Vec<ScriptedDrainRule>,
}

/// The Machine that a node is.
#[derive(Debug, Clone)]
struct ClusterApiMachine {
    name: String,
    node: String,
    labels: Value,
}

#[derive(Debug, Clone)]
struct ScriptedDrainRule {
    name: String,
    spec: Value,
}

/// `cluster-api installed`, `cluster-api-machine …` or `machine-drain-rule …`.
pub(super) fn parse_cluster_api_line(
    setup: &mut ClusterApiSetup,
    name: &str,
    words: &mut LineWords,
) -> Result<(), String> {
    match name {
        "cluster-api" => {
            words.expect_word("installed")?;
            setup.installed = true;
        }
        "cluster-api-machine" => setup.machines.push(parse_machine(words)?),
        _ => setup.rules.push(parse_drain_rule(words)?),
    }
    Ok(())
}

/// `cluster-api-machine NAME node=NODE [labels=KEY=VALUE,KEY=VALUE]`.
fn parse_machine(words: &mut LineWords) -> Result<ClusterApiMachine, String> {
    Ok(ClusterApiMachine {
        name: words.next_word("the machine's name")?,
        node: words.take_option("node").ok_or("node=NODE is missing")?,
        labels: json!(
            words
                .read_option("labels", parse_labels)?
                .unwrap_or_default()
        ),
    })
}

/// `machine-drain-rule NAME behavior=Drain|Skip|WaitCompleted [order=N] [machines=KEY=VALUE,…]
/// [pods=KEY=VALUE,…]`: what is left out selects everything.
fn parse_drain_rule(words: &mut LineWords) -> Result<ScriptedDrainRule, String> {
    let name = words.next_word("the rule's name")?;
    let behavior = words.take_option("behavior");
    let mut spec = json!({ "drain": { "behavior": behavior.ok_or("write behavior=")? } });
    if let Some(order) = words.read_option("order", str::parse::<i32>)? {
        spec["drain"]["order"] = order.into();
    }
    for field in ["machines", "pods"] {
        if let Some(labels) = words.read_option(field, parse_labels)? {
            spec[field] = json!([{ "selector": { "matchLabels": labels } }]);
        }
    }
    Ok(ScriptedDrainRule { name, spec })
}

impl ScenarioCluster {
    /// Makes the kinds and objects of Cluster API of a script, if it has any.
    pub(super) fn create_cluster_api_objects(
        &self,
        setup: &ClusterApiSetup,
    ) -> Result<(), UserRequestError> {
        if setup.installed {
            for (kind, plural) in [
                ("Machine", "machines"),
                ("MachineDrainRule", "machinedrainrules"),
            ] {
                let definition = open_definition(GROUP, VERSION, kind, plural);
                self.send_user_request(Method::POST, DEFINITIONS_PATH, &definition)?;
            }
        }
        for machine in &setup.machines {
            self.create_cluster_api_machine(machine)?;
        }
        for rule in &setup.rules {
            let object = json!({ "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": "MachineDrainRule", "metadata": { "name": rule.name }, "spec": rule.spec });
            self.send_user_request(Method::POST, &objects_path("machinedrainrules"), &object)?;
        }
        Ok(())
    }

    /// Machine and Node name each other, as Cluster API writes it.
    fn create_cluster_api_machine(
        &self,
        machine: &ClusterApiMachine,
    ) -> Result<(), UserRequestError> {
        let ClusterApiMachine { name, node, labels } = machine;
        let object = json!({ "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Machine",
            "metadata": { "name": name, "labels": labels }, "spec": { "clusterName": "c" } });
        let machines = objects_path("machines");
        self.send_user_request(Method::POST, &machines, &object)?;
        let status = json!({ "status": { "nodeRef": { "name": node } } });
        let path = format!("{machines}/{name}/status");
        self.send_user_request(Method::PATCH, &path, &status)?;
        let annotations = json!({
            "cluster.x-k8s.io/machine": name,
            "cluster.x-k8s.io/cluster-namespace": NAMESPACE,
            "cluster.x-k8s.io/cluster-name": "c",
        });
        let patch = json!({ "metadata": { "annotations": annotations } });
        self.send_user_request(Method::PATCH, &format!("/api/v1/nodes/{node}"), &patch)
    }
}

fn objects_path(plural: &str) -> String {
    format!("/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{plural}")
}
