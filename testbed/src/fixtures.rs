//! The kinds of others that remediation meets, as their projects document them: CustomResourceDefinitions for
//! the real API server (`kubectl apply -f -` takes their JSON) and for the embedded one.
//!
//! They are strict where theirs are: what they do not know is dropped, what they require is demanded.

use serde_json::{Value, json};

/// OpenShift's Machine: `machine.openshift.io/v1beta1`.
pub fn openshift_machines() -> Value {
    read(include_str!(
        "../fixtures/machines.machine.openshift.io.yaml"
    ))
}

/// Cluster API's Machine: `cluster.x-k8s.io`, `v1beta2` (stored) and `v1beta1`.
pub fn cluster_api_machines() -> Value {
    read(include_str!("../fixtures/machines.cluster.x-k8s.io.yaml"))
}

/// metal3's machine for Cluster API: `infrastructure.cluster.x-k8s.io`, `v1beta1` (stored) and `v1beta2`.
pub fn metal3_machines() -> Value {
    read(include_str!(
        "../fixtures/metal3machines.infrastructure.cluster.x-k8s.io.yaml"
    ))
}

/// metal3's own BareMetalHost, which drops what is Dogwatch's in a status: `metal3.io/v1alpha1`.
pub fn metal3_hosts() -> Value {
    read(include_str!("../fixtures/baremetalhosts.metal3.io.yaml"))
}

/// All of them. Where Dogwatch's own BareMetalHost is wanted, leave out the last one.
pub fn all() -> [Value; 4] {
    [
        openshift_machines(),
        cluster_api_machines(),
        metal3_machines(),
        metal3_hosts(),
    ]
}

/// The same kind where only one of its versions is installed.
///
/// # Panics
/// When it has no such version.
pub fn only(mut definition: Value, version: &str) -> Value {
    let versions = definition["spec"]["versions"].as_array_mut();
    let versions = versions.expect("a definition has versions");
    versions.retain(|there| there["name"] == version);
    let kept = versions.first_mut().expect("it has this version");
    kept["storage"] = Value::Bool(true);
    definition
}

/// The least Machine that [`openshift_machines`] takes.
pub fn openshift_machine(name: &str) -> Value {
    json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": name }, "spec": {} })
}

/// The least Machine that [`cluster_api_machines`] takes, in `v1beta2`; its Metal3Machine has its name.
pub fn cluster_api_machine(name: &str) -> Value {
    let infrastructure = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "Metal3Machine", "name": name });
    json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": { "name": name },
        "spec": { "clusterName": "c", "bootstrap": { "dataSecretName": "s" },
            "infrastructureRef": infrastructure } })
}

/// The least host that [`metal3_hosts`] takes.
pub fn host(name: &str) -> Value {
    json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name }, "spec": { "online": true } })
}

fn read(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("a fixture is YAML")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_alone_is_the_one_that_is_stored() {
        let old = only(cluster_api_machines(), "v1beta1");
        let versions = old["spec"]["versions"].as_array().unwrap();
        assert_eq!(versions.len(), 1);
        assert_eq!(versions[0]["storage"], true);
        // What both versions share stands in each of them.
        let reference = &versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let reference = &reference["properties"]["infrastructureRef"]["properties"];
        assert_eq!(reference["name"]["type"], "string");
    }
}
