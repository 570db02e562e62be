//! The remediator's watches.

use dogwatch_core::remediation::{MachineApi, MachineName};
use dogwatch_testbed::fixtures;
use serde_json::json;

use super::world::{
    CAPI, CAPI_OLD, CLUSTER, METAL3_MACHINE, OPENSHIFT, REQUEST, World, capi_spec, definitions,
};

pub async fn kinds_that_come_are_found_and_one_that_is_taken_out_leaves_nothing(world: &World) {
    for kind in [OPENSHIFT, CAPI, METAL3_MACHINE, CLUSTER, REQUEST] {
        world.take_out(kind).await;
    }
    let mut sight = world.sight();
    sight.until_so(|view| view.synced).await;
    assert!(sight.view().installed.is_empty() && sight.view().errors.is_empty());
    for definition in definitions() {
        world.install(&definition).await;
    }
    world.make(OPENSHIFT, "m", json!({ "spec": {} })).await;
    world
        .make(CAPI, "m", json!({ "spec": capi_spec(CAPI) }))
        .await;
    let is_mine = |name: &MachineName| name.object == world.object_name("m");
    sight
        .until_so(|view| {
            view.machines.keys().filter(|name| is_mine(name)).count() == 2
                && view.installed.len() == 5
        })
        .await;
    world.take_out(OPENSHIFT).await;
    // The Machines of the other API stay.
    sight
        .until_so(|view| {
            view.machines
                .keys()
                .all(|it| it.api == MachineApi::ClusterApi)
        })
        .await;
    assert!(sight.view().synced && sight.view().machines.keys().any(is_mine));
    sight.until_so(|view| view.installed.len() == 4).await;
}

pub async fn machines_of_both_apis_are_seen_from_their_creation_to_their_end(world: &World) {
    let mut sight = world.sight();
    sight.until_so(|view| view.synced).await;
    let name = |api| MachineName {
        api,
        object: world.object_name("same"),
    };
    let both = [name(MachineApi::OpenShift), name(MachineApi::ClusterApi)];
    world.make(OPENSHIFT, "same", json!({ "spec": {} })).await;
    let spec = capi_spec(CAPI);
    let status = json!({ "nodeRef": { "name": "n" } });
    world
        .make(CAPI, "same", json!({ "spec": spec, "status": status }))
        .await;
    sight
        .until_so(|view| {
            let there = both.iter().filter_map(|name| view.machines.get(name));
            let nodes: Vec<_> = there.map(|it| it.node.as_deref()).collect();
            nodes == [None, Some("n")]
        })
        .await;
    let infra = sight.view().machines[&both[1]].infra.clone().unwrap();
    assert_eq!(
        infra.object,
        world.object_name("mm"),
        "in its own namespace"
    );
    assert_eq!(
        (&*infra.group, &*infra.kind),
        (METAL3_MACHINE.0, "Metal3Machine")
    );
    let need = json!({ "host.metal3.io/external-remediation": "" });
    world.annotate(OPENSHIFT, "same", need).await;
    sight
        .until_so(|view| view.machines[&both[0]].need.is_some())
        .await;
    assert_eq!(sight.view().machines[&both[1]].need, None);
    world.delete(OPENSHIFT, "same").await;
    sight
        .until_so(|view| !view.machines.contains_key(&both[0]))
        .await;
    assert!(sight.view().machines.contains_key(&both[1]));
}

pub async fn the_older_version_is_used_where_that_is_all_there_is_and_the_newer_one_once_it_is_not(
    world: &World,
) {
    world.take_out(CAPI).await;
    let whole = fixtures::cluster_api_machines();
    world
        .install(&fixtures::only_version(whole.clone(), "v1beta1"))
        .await;
    let reference = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "Metal3Machine", "namespace": "elsewhere", "name": "mm" });
    let mut spec = capi_spec(CAPI_OLD);
    spec["infrastructureRef"] = reference;
    let need = json!({ "host.metal3.io/external-remediation": "" });
    let old = json!({ "metadata": { "annotations": need }, "spec": spec });
    world.make(CAPI_OLD, "old", old).await;
    let name = MachineName {
        api: MachineApi::ClusterApi,
        object: world.object_name("old"),
    };
    let mut sight = world.sight();
    sight
        .until_so(|view| view.machines.contains_key(&name))
        .await;
    let group = "machines.cluster.x-k8s.io";
    assert_eq!(sight.view().installed[group], "cluster.x-k8s.io/v1beta1");
    let infra = sight.view().machines[&name].infra.clone().unwrap();
    assert_eq!(infra.object.namespace, "elsewhere");
    // Both versions are served, then only the newer one: existing objects are never lost.
    world.install(&whole).await;
    let mut newer = whole.clone();
    let versions = newer["spec"]["versions"].as_array_mut().unwrap();
    let older = versions.iter_mut().find(|one| one["name"] == "v1beta1");
    older.unwrap()["served"] = json!(false);
    world.install(&newer).await;
    world
        .until_answered("/apis/cluster.x-k8s.io/v1beta1/machines", 404)
        .await;
    sight
        .until_so(|view| {
            assert!(view.machines.contains_key(&name));
            view.installed[group] == "cluster.x-k8s.io/v1beta2"
        })
        .await;
    let machine = &sight.view().machines[&name];
    assert_eq!(machine.need.as_deref(), Some(""));
    world.take_out(CAPI).await;
    world.install(&whole).await;
}

pub async fn what_is_between_a_machine_and_its_host_is_seen_and_so_are_requests(world: &World) {
    let metadata = json!({ "annotations": { "metal3.io/BareMetalHost": "site/h" } });
    let made = json!({ "metadata": metadata, "spec": {} });
    world.make(METAL3_MACHINE, "mm", made).await;
    let strategy = json!({ "type": "OutOfServiceTaint", "retryLimit": 3, "timeout": "5m" });
    let made = json!({ "spec": { "strategy": strategy } });
    world.make(REQUEST, "r", made).await;
    let mut sight = world.sight();
    let (infra, request) = (world.object_name("mm"), world.object_name("r"));
    sight
        .until_so(|view| view.infra.contains_key(&infra) && view.requests.contains_key(&request))
        .await;
    let view = sight.view();
    assert_eq!(view.infra[&infra].host.as_deref(), Some("site/h"));
    let strategy = view.requests[&request].strategy.clone().unwrap();
    assert_eq!(
        (strategy.kind.as_str(), strategy.retry_limit),
        ("OutOfServiceTaint", 3)
    );
    assert_eq!(strategy.timeout.as_secs(), 300);
    assert_eq!(view.requests[&request].generation, 1);
    world.delete(METAL3_MACHINE, "mm").await;
    world.delete(REQUEST, "r").await;
    sight
        .until_so(|view| !view.infra.contains_key(&infra) && !view.requests.contains_key(&request))
        .await;
}

pub async fn a_cluster_that_is_paused_is_seen_until_it_is_not(world: &World) {
    let mut sight = world.sight();
    sight.until_so(|view| view.synced).await;
    let name = world.object_name("c");
    let paused = json!({ "spec": { "paused": true } });
    world.make(CLUSTER, "c", paused.clone()).await;
    world.make(CLUSTER, "other", json!({ "spec": {} })).await;
    sight
        .until_so(|view| view.paused_clusters.contains(&name))
        .await;
    let goes_on = json!({ "spec": { "paused": false } });
    world.change(CLUSTER, "c", &goes_on).await;
    sight
        .until_so(|view| !view.paused_clusters.contains(&name))
        .await;
    world.change(CLUSTER, "c", &paused).await;
    let mut later = world.sight();
    later
        .until_so(|view| view.paused_clusters.contains(&name))
        .await;
    assert!(
        !later
            .view()
            .paused_clusters
            .contains(&world.object_name("other"))
    );
    world.delete(CLUSTER, "c").await;
    later
        .until_so(|view| !view.paused_clusters.contains(&name))
        .await;
}
