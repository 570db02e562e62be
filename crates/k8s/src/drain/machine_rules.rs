//! Reads the MachineDrainRules of Cluster API that apply to the Machine of one node.

use std::collections::BTreeMap;

use dogwatch_core::drain::{
    MachineDrainBehavior, MachineDrainRule, MachineRulesLookup, RuleMachines, RulePods,
    need_cluster_labels, select_machine_rules,
};
use dogwatch_core::name::is_dns_name;
use dogwatch_core::printable::one_line;
use dogwatch_core::selector::LabelSelector;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, ListParams};
use kube::core::DynamicObject;
use kube::{Api, Client, ResourceExt as _};
use serde::Deserialize;

use super::answer::is_not_found_of;
use crate::Error;
use crate::error::with_timeout;
use crate::policy::selector_problem;
use crate::remediation::{
    CLUSTER_API_CLUSTER, CLUSTER_API_MACHINE, MACHINE_DRAIN_RULE, OptionalKind,
};

/// Annotations of Cluster API on a Node: its Machine, and the namespace of the Machine.
const MACHINE_ANNOTATION: &str = "cluster.x-k8s.io/machine";
const NAMESPACE_ANNOTATION: &str = "cluster.x-k8s.io/cluster-namespace";

/// One call where the Node names no Machine; else two kinds are looked up, and two or three objects
/// and lists are read.
pub(crate) async fn look_up_machine_rules(client: &Client, node: &str) -> MachineRulesLookup {
    let reader = MachineRulesReader { client, node };
    reader.read_rules().await.unwrap_or_else(|lookup| lookup)
}

struct MachineRulesReader<'a> {
    client: &'a Client,
    node: &'a str,
}

/// Where a Machine is, by the annotations of its Node.
struct MachineRef {
    namespace: String,
    name: String,
}

impl MachineRulesReader<'_> {
    /// An `Err` ends the reading, with the answer.
    async fn read_rules(&self) -> Result<MachineRulesLookup, MachineRulesLookup> {
        let machine = self.read_machine_ref().await?;
        let rules_kind = self.find_kind(MACHINE_DRAIN_RULE, &machine).await?;
        let MachineLabels { own, cluster } = self.read_machine(&machine).await?;
        let rules = self.list_rules(&rules_kind, &machine.namespace).await?;
        let cluster = if need_cluster_labels(&rules) {
            self.read_cluster_labels(&machine, &cluster).await?
        } else {
            BTreeMap::new()
        };
        let rules = select_machine_rules(rules, &own, &cluster);
        Ok(MachineRulesLookup::Found(rules))
    }

    async fn read_machine_ref(&self) -> Result<MachineRef, MachineRulesLookup> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let node = with_timeout(nodes.get_metadata_opt(self.node)).await;
        let node = node.map_err(|error| failed_read(&error))?;
        let annotations = node.and_then(|node| node.metadata.annotations);
        let mut annotations = annotations.unwrap_or_default();
        // Whoever may write the Node chooses these names, and they become part of a request path.
        let mut take_name = |key: &str| annotations.remove(key).filter(|name| is_dns_name(name));
        match (
            take_name(NAMESPACE_ANNOTATION),
            take_name(MACHINE_ANNOTATION),
        ) {
            (Some(namespace), Some(name)) => Ok(MachineRef { namespace, name }),
            (None | Some(_), None) | (None, Some(_)) => Err(MachineRulesLookup::NoMachine),
        }
    }

    async fn find_kind(
        &self,
        kind: OptionalKind,
        machine: &MachineRef,
    ) -> Result<ApiResource, MachineRulesLookup> {
        let served = kind.find_served_version(self.client).await;
        let served = served.map_err(|error| failed_read(&error))?;
        served.ok_or_else(|| {
            let kind = kind.full_name;
            MachineRulesLookup::Elsewhere {
                why: format!(
                    "this cluster has no {kind}; Machine {machine} may have some in its management cluster"
                ),
            }
        })
    }

    async fn read_machine(
        &self,
        machine: &MachineRef,
    ) -> Result<MachineLabels, MachineRulesLookup> {
        let kind = self.find_kind(CLUSTER_API_MACHINE, machine).await?;
        let found = self.get_object(&kind, machine, &machine.name).await?;
        let elsewhere = |why: String| MachineRulesLookup::Elsewhere { why };
        let found =
            found.ok_or_else(|| elsewhere(format!("Machine {machine} is not in this cluster")))?;
        // In a management cluster there may be a Machine of the same name, of another cluster.
        match found.data["status"]["nodeRef"]["name"].as_str() {
            Some(node) if node == self.node => Ok(MachineLabels {
                own: found.labels().clone(),
                cluster: found.data["spec"]["clusterName"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            }),
            Some(_) | None => Err(elsewhere(format!(
                "Machine {machine} in this cluster is not that of the node"
            ))),
        }
    }

    async fn list_rules(
        &self,
        kind: &ApiResource,
        namespace: &str,
    ) -> Result<Vec<MachineDrainRule>, MachineRulesLookup> {
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, kind);
        let list = with_timeout(api.list(&ListParams::default())).await;
        let list = list.map_err(|error| failed_read(&error))?;
        let rules = list.items.iter().map(parse_machine_rule);
        let rules: Result<Vec<MachineDrainRule>, String> = rules.collect();
        rules.map_err(|why| MachineRulesLookup::Failed { why })
    }

    async fn read_cluster_labels(
        &self,
        machine: &MachineRef,
        name: &str,
    ) -> Result<BTreeMap<String, String>, MachineRulesLookup> {
        let kind = self.find_kind(CLUSTER_API_CLUSTER, machine).await?;
        let missing = || MachineRulesLookup::Failed {
            why: format!("Cluster {}/{name} does not exist", machine.namespace),
        };
        let valid = is_dns_name(name).then_some(name).ok_or_else(missing)?;
        let found = self.get_object(&kind, machine, valid).await?;
        Ok(found.ok_or_else(missing)?.labels().clone())
    }

    /// `None`: the API server itself says that it does not exist. What a proxy says does not count.
    async fn get_object(
        &self,
        kind: &ApiResource,
        machine: &MachineRef,
        name: &str,
    ) -> Result<Option<DynamicObject>, MachineRulesLookup> {
        let namespace = &machine.namespace;
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, kind);
        match with_timeout(api.get(name)).await {
            Ok(object) => Ok(Some(object)),
            Err(Error::Answer(status)) if is_not_found_of(name, &status) => Ok(None),
            Err(error) => Err(failed_read(&error)),
        }
    }
}

/// What selectors see of a Machine: its labels, and the name of its Cluster.
struct MachineLabels {
    own: BTreeMap<String, String>,
    cluster: String,
}

impl std::fmt::Display for MachineRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

fn failed_read(error: &Error) -> MachineRulesLookup {
    MachineRulesLookup::Failed {
        why: error.error_chain(),
    }
}

#[derive(Debug, Deserialize)]
struct MachineRuleSpec {
    drain: MachineRuleDrain,
    #[serde(default)]
    machines: Vec<RuleMachinesSpec>,
    #[serde(default)]
    pods: Vec<RulePodsSpec>,
}

#[derive(Debug, Deserialize)]
struct MachineRuleDrain {
    behavior: String,
    order: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleMachinesSpec {
    selector: Option<LabelSelector>,
    cluster_selector: Option<LabelSelector>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RulePodsSpec {
    selector: Option<LabelSelector>,
    namespace_selector: Option<LabelSelector>,
}

/// As with Cluster API, a rule that cannot be understood stops every drain of its namespace: it may
/// protect a pod. The error names the rule.
pub fn parse_machine_rule(object: &DynamicObject) -> Result<MachineDrainRule, String> {
    let name = format!(
        "{}/{}",
        object.namespace().unwrap_or_default(),
        object.name_any()
    );
    // The error quotes what somebody wrote: an operator, for example, has no schema.
    let bad = |why: String| one_line(&format!("MachineDrainRule {name} is not valid: {why}"));
    let spec = MachineRuleSpec::deserialize(&object.data["spec"]);
    let spec = spec.map_err(|error| bad(error.to_string()))?;
    let behavior = match spec.drain.behavior.as_str() {
        "Drain" => MachineDrainBehavior::Drain {
            order: spec.drain.order.unwrap_or_default(),
        },
        "Skip" => MachineDrainBehavior::Skip,
        "WaitCompleted" => MachineDrainBehavior::WaitCompleted,
        other => return Err(bad(format!("spec.drain.behavior {other:?} is not known"))),
    };
    let mut machines = Vec::new();
    for entry in spec.machines {
        machines.push(RuleMachines {
            machine: parse_selector(entry.selector)
                .map_err(bad)?
                .unwrap_or_default(),
            cluster: parse_selector(entry.cluster_selector).map_err(bad)?,
        });
    }
    let mut pods = Vec::new();
    for entry in spec.pods {
        pods.push(RulePods {
            pod: parse_selector(entry.selector)
                .map_err(bad)?
                .unwrap_or_default(),
            namespace: parse_selector(entry.namespace_selector).map_err(bad)?,
        });
    }
    Ok(MachineDrainRule {
        name: name.as_str().into(),
        machines,
        pods,
        behavior,
    })
}

/// `None`: it selects everything.
fn parse_selector(selector: Option<LabelSelector>) -> Result<Option<LabelSelector>, String> {
    let restricts = |selector: &LabelSelector| *selector != LabelSelector::default();
    let selector = selector.filter(restricts);
    match selector.as_ref().and_then(selector_problem) {
        Some(problem) => Err(problem),
        None => Ok(selector),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(spec: &Value) -> Result<MachineDrainRule, String> {
        let object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDrainRule",
            "metadata": { "name": "r", "namespace": "ns" }, "spec": spec,
        });
        parse_machine_rule(&serde_json::from_value(object).unwrap())
    }

    fn app(name: &str) -> LabelSelector {
        LabelSelector {
            match_labels: [("app".to_owned(), name.to_owned())].into(),
            ..LabelSelector::default()
        }
    }

    #[test]
    fn a_rule_is_read_as_cluster_api_defines_it() {
        let web = json!({ "matchLabels": { "app": "web" } });
        let parsed = parse(&json!({
            "drain": { "behavior": "Drain", "order": -3 },
            "machines": [{ "selector": {}, "clusterSelector": web }],
            "pods": [{ "selector": web }, { "namespaceSelector": web }],
        }));
        let expected = MachineDrainRule {
            name: "ns/r".into(),
            machines: vec![RuleMachines {
                machine: LabelSelector::default(),
                cluster: Some(app("web")),
            }],
            pods: vec![
                RulePods {
                    pod: app("web"),
                    namespace: None,
                },
                RulePods {
                    pod: LabelSelector::default(),
                    namespace: Some(app("web")),
                },
            ],
            behavior: MachineDrainBehavior::Drain { order: -3 },
        };
        assert_eq!(parsed, Ok(expected));
        for (behavior, expected) in [
            ("Drain", MachineDrainBehavior::Drain { order: 0 }),
            ("Skip", MachineDrainBehavior::Skip),
            ("WaitCompleted", MachineDrainBehavior::WaitCompleted),
        ] {
            let parsed = parse(&json!({ "drain": { "behavior": behavior } }));
            assert_eq!(parsed.unwrap().behavior, expected);
        }
    }

    #[test]
    fn a_rule_that_is_not_understood_is_named_and_never_left_out() {
        let skip = json!({ "behavior": "Skip" });
        let broken = |operator: &str, values: &Value| {
            let part = json!({ "key": "app", "operator": operator, "values": values });
            json!({ "drain": skip, "pods": [{ "selector": { "matchExpressions": [part] } }] })
        };
        for (spec, words) in [
            (json!({}), "missing field `drain`"),
            (json!({ "drain": { "behavior": "Delete" } }), "\"Delete\""),
            (broken("Near", &json!(["a"])), "Near"),
            (broken("In", &json!([])), "needs at least one of `values`"),
        ] {
            let why = parse(&spec).unwrap_err();
            assert!(
                why.starts_with("MachineDrainRule ns/r is not valid: "),
                "{why}"
            );
            assert!(why.contains(words), "{spec}: {why}");
        }
    }
}
