//! CustomResourceDefinitions of other projects that the drain and remediation use: for the real
//! API server (`kubectl apply -f -` accepts their JSON) and for the embedded one.
//!
//! Those of Cluster API and Karpenter are the originals, from their Go modules. Without their
//! webhooks nothing is converted: what only one version has is not seen through the other.
//!
//! Those of OpenShift and metal3 were written by us from what these projects document, because
//! their modules were not to be had. They are as strict as the originals: unknown fields are
//! dropped, required fields are checked.
//!
//! The first call downloads the modules, and panics if that fails.

use serde_json::{Value, json};

use crate::{error::error_chain, module_crds::read_definition};

/// OpenShift's Machine: `machine.openshift.io/v1beta1`.
pub fn openshift_machines() -> Value {
    parse_fixture(include_str!(
        "../fixtures/machines.machine.openshift.io.yaml"
    ))
}

/// Cluster API's Machine: `cluster.x-k8s.io`, `v1beta2` (stored) and `v1beta1`.
pub fn cluster_api_machines() -> Value {
    module_crd("cluster.x-k8s.io_machines.yaml")
}

/// Cluster API's MachineDrainRule: `cluster.x-k8s.io`, `v1beta2` (stored) and `v1beta1`.
pub fn machine_drain_rules() -> Value {
    module_crd("cluster.x-k8s.io_machinedrainrules.yaml")
}

/// Cluster API's Cluster: `cluster.x-k8s.io`, `v1beta2` (stored) and `v1beta1`.
pub fn cluster_api_clusters() -> Value {
    module_crd("cluster.x-k8s.io_clusters.yaml")
}

/// Cluster API's MachineHealthCheck: `cluster.x-k8s.io`, `v1beta2` (stored) and `v1beta1`.
pub fn machine_health_checks() -> Value {
    module_crd("cluster.x-k8s.io_machinehealthchecks.yaml")
}

/// Karpenter's NodePool: `karpenter.sh/v1`.
pub fn karpenter_node_pools() -> Value {
    module_crd("karpenter.sh_nodepools.yaml")
}

/// metal3's machine for Cluster API: `infrastructure.cluster.x-k8s.io`, `v1beta1` (stored) and
/// `v1beta2`.
pub fn metal3_machines() -> Value {
    parse_fixture(include_str!(
        "../fixtures/metal3machines.infrastructure.cluster.x-k8s.io.yaml"
    ))
}

/// metal3's own BareMetalHost, which drops Dogwatch's fields of the status: `metal3.io/v1alpha1`.
pub fn metal3_hosts() -> Value {
    parse_fixture(include_str!("../fixtures/baremetalhosts.metal3.io.yaml"))
}

/// All definitions. Leave out the last one to use Dogwatch's own BareMetalHost.
pub fn all_definitions() -> [Value; 8] {
    [
        openshift_machines(),
        cluster_api_machines(),
        cluster_api_clusters(),
        machine_drain_rules(),
        machine_health_checks(),
        karpenter_node_pools(),
        metal3_machines(),
        metal3_hosts(),
    ]
}

/// The definition with only one of its versions.
///
/// # Panics
/// When it has no such version.
pub fn only_version(mut definition: Value, version: &str) -> Value {
    let versions = definition["spec"]["versions"].as_array_mut();
    let versions = versions.expect("a definition has versions");
    versions.retain(|there| there["name"] == version);
    let kept = versions.first_mut().expect("it has this version");
    kept["storage"] = Value::Bool(true);
    definition
}

/// The smallest Machine that [`openshift_machines`] accepts.
pub fn openshift_machine(name: &str) -> Value {
    json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": name }, "spec": {} })
}

/// The smallest Machine that [`cluster_api_machines`] accepts, in `v1beta2`; its Metal3Machine has
/// the same name.
pub fn cluster_api_machine(name: &str) -> Value {
    let infrastructure = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "Metal3Machine", "name": name });
    json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": { "name": name },
        "spec": { "clusterName": "c", "bootstrap": { "dataSecretName": "s" },
            "infrastructureRef": infrastructure } })
}

/// The smallest host that [`metal3_hosts`] accepts.
pub fn metal3_host(name: &str) -> Value {
    json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name }, "spec": { "online": true } })
}

fn module_crd(file: &str) -> Value {
    match read_definition(file) {
        Ok(text) => parse_fixture(&text),
        Err(error) => panic!("{}", error_chain(&error)),
    }
}

fn parse_fixture(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("a fixture is YAML")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_alone_is_the_one_that_is_stored() {
        let old = only_version(cluster_api_machines(), "v1beta1");
        let versions = old["spec"]["versions"].as_array().unwrap();
        assert_eq!(versions.len(), 1);
        assert_eq!(versions[0]["storage"], true);
        // Each version contains the parts that both share.
        let reference = &versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let reference = &reference["properties"]["infrastructureRef"]["properties"];
        assert_eq!(reference["name"]["type"], "string");
    }
}
