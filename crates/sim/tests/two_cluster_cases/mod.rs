//! Cases of remediation with two clusters.

pub mod world;

use std::time::Duration;

use dogwatch_api::reboot_policy;
use dogwatch_core::remediation::RemediationReason;
use dogwatch_testbed::shared_control_plane;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use self::world::{TwoClusters, kubeconfig_of};
use crate::remedy_cases::world::{KEY, Member};

/// Long enough for several passes and checks of the connection.
const A_WHILE: Duration = Duration::from_secs(12);

async fn is_keyed(clusters: &TwoClusters, short: &str) -> bool {
    let host = clusters.world.metal.read(short).await;
    host.annotations.contains_key(KEY)
}

/// Waits until the Node is back as it was, and the host was switched off and on once.
async fn until_remediated(clusters: &TwoClusters, member: &Member) {
    let world = &clusters.world;
    world.until_back(member).await;
    world
        .until("its label is back", || async {
            let node = world.node(&member.short).await;
            node.is_some_and(|node| node.labels().contains_key("rack"))
        })
        .await;
    assert!(!clusters.is_marked(&member.short).await);
    world.metal.time_passes().await;
    member.assert_cycled_once();
}

async fn label(clusters: &TwoClusters, short: &str) {
    let labels = json!({ "metadata": { "labels": { "rack": "r1" } } });
    clusters.world.change_node(short, labels).await;
}

/// Installs Dogwatch's kind in the workload cluster.
async fn install_dogwatch(clusters: &TwoClusters) {
    let kinds = [reboot_policy::CRD_NAME];
    let installed = clusters
        .workload
        .install_manifests(reboot_policy::CRD_MANIFEST, &kinds);
    installed.await.unwrap();
}

pub async fn a_machine_here_and_its_node_there_are_remediated_whole(clusters: &TwoClusters) {
    let world = &clusters.world;
    clusters.give_kubeconfig(&clusters.kubeconfig().await).await;
    let member = clusters.member("h0").await;
    label(clusters, "h0").await;
    let _process = world.process_over("first", &[&member]).await;
    clusters.mark("h0").await;
    world
        .until("the Node is gone", || async {
            world.node("h0").await.is_none()
        })
        .await;
    let is_off = member.bmc.machine().power_state().running_boot().is_none();
    assert!(is_off, "the machine lives");
    until_remediated(clusters, &member).await;
    let said = world.said().await.into_iter();
    let said: Vec<String> = said.filter_map(|event| event.message).collect();
    let is_said = |text: &str| said.iter().any(|message| message.contains(text));
    assert!(
        is_said("Dogwatch is not installed in workload cluster"),
        "{said:#?}"
    );
    let refused = clusters
        .workload
        .audit_entries_of("system:serviceaccount:dogwatch:dogwatch-remediator");
    let mut refused = refused.await.unwrap();
    refused.retain(|entry| entry.code == 403);
    assert!(refused.is_empty(), "{refused:#?}");
}

pub async fn where_dogwatch_is_installed_its_lease_counts_the_node(clusters: &TwoClusters) {
    let world = &clusters.world;
    install_dogwatch(clusters).await;
    clusters.give_kubeconfig(&clusters.kubeconfig().await).await;
    let member = clusters.member("h0").await;
    label(clusters, "h0").await;
    let _process = world.process_over("first", &[&member]).await;
    clusters.mark("h0").await;
    world
        .until("its host is held off", || is_keyed(clusters, "h0"))
        .await;
    assert!(world.is_leased("h0").await, "before the key");
    until_remediated(clusters, &member).await;
    let here: Api<Lease> = Api::namespaced(world.metal.client.clone(), &world.home);
    let name = format!("dogwatch-remedy-{}", world.node_name("h0"));
    assert_eq!(here.get_opt(&name).await.unwrap(), None, "not here");
}

pub async fn the_lease_is_in_the_namespace_that_the_kubeconfig_names(clusters: &TwoClusters) {
    const NAMESPACE: &str = "dogs";
    let world = &clusters.world;
    install_dogwatch(clusters).await;
    clusters
        .give_kubeconfig(&clusters.kubeconfig_in(NAMESPACE).await)
        .await;
    let member = clusters.member("h0").await;
    label(clusters, "h0").await;
    let _process = world.process_over("first", &[&member]).await;
    clusters.mark("h0").await;
    world
        .until("its host is held off", || is_keyed(clusters, "h0"))
        .await;
    let name = format!("dogwatch-remedy-{}", world.node_name("h0"));
    let lease_in = async |namespace: &str| {
        let leases: Api<Lease> = Api::namespaced(world.node_client.clone(), namespace);
        leases.get_opt(&name).await.unwrap()
    };
    assert!(lease_in(NAMESPACE).await.is_some(), "before the key");
    until_remediated(clusters, &member).await;
    assert_eq!(lease_in(&world.home).await, None, "the name it has here");
}

pub async fn a_kubeconfig_that_is_missing_unsafe_or_of_another_cluster_is_said_and_nothing_is_touched(
    clusters: &TwoClusters,
) {
    let world = &clusters.world;
    let member = clusters.member("h0").await;
    label(clusters, "h0").await;
    let _process = world.process_over("first", &[&member]).await;
    clusters.mark("h0").await;
    let missing = RemediationReason::KubeconfigMissing.as_str();
    clusters.until_said("h0", missing).await;
    let invalid = RemediationReason::KubeconfigInvalid.as_str();
    let exec =
        json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "id" } });
    let exec = kubeconfig_of(&clusters.workload, &exec);
    clusters.give_kubeconfig(&exec).await;
    clusters.until_said("h0", invalid).await;
    // The management cluster has no Node of the Machine either.
    let here = shared_control_plane().await;
    let admin = here.service_account_token("dogwatch", "dogwatch-controller", None);
    let other = kubeconfig_of(here, &json!({ "token": admin.await.unwrap() }));
    clusters.give_kubeconfig(&other).await;
    let another = RemediationReason::OtherCluster.as_str();
    clusters.until_said("h0", another).await;
    assert_eq!(world.node_uid("h0").await, member.uid);
    assert!(!is_keyed(clusters, "h0").await);
    assert_eq!(member.bmc.machine().transition_log().count_power_offs(), 0);
    clusters.give_kubeconfig(&clusters.kubeconfig().await).await;
    until_remediated(clusters, &member).await;
}

pub async fn a_new_credential_is_used_at_once_after_the_old_one_was_refused(
    clusters: &TwoClusters,
) {
    let world = &clusters.world;
    clusters.give_kubeconfig(&clusters.kubeconfig().await).await;
    let member = clusters.member("h0").await;
    label(clusters, "h0").await;
    let process = world.process_over("first", &[&member]).await;
    clusters.renew_account().await;
    // The API server may accept the old token for some more seconds.
    tokio::time::sleep(A_WHILE).await;
    clusters.mark("h0").await;
    let refused = RemediationReason::WorkloadClusterUnreachable.as_str();
    clusters.until_said("h0", refused).await;
    assert!(!is_keyed(clusters, "h0").await);
    clusters.give_kubeconfig(&clusters.kubeconfig().await).await;
    until_remediated(clusters, &member).await;
    drop(process);
}

/// The workload cluster freezes before the key, while the host is being switched off, and after the
/// Node was deleted.
pub async fn a_cluster_that_is_away_at_any_step_releases_nothing_and_leaves_nobody_off(
    clusters: &TwoClusters,
) {
    let world = &clusters.world;
    clusters.give_kubeconfig(&clusters.kubeconfig().await).await;
    let members = [clusters.member("h0").await, clusters.member("h1").await];
    let _process = world
        .process_over("first", &[&members[0], &members[1]])
        .await;
    for member in &members {
        label(clusters, &member.short).await;
    }
    let away = RemediationReason::WorkloadClusterUnreachable.as_str();

    // Before the key.
    clusters.workload.freeze_api().unwrap();
    clusters.mark("h0").await;
    clusters.until_said("h0", away).await;
    assert!(!is_keyed(clusters, "h0").await);
    clusters.workload.thaw_api().unwrap();
    until_remediated(clusters, &members[0]).await;

    // With the key on the host.
    let member = &members[1];
    clusters.mark("h1").await;
    world
        .until("its host is held off", || is_keyed(clusters, "h1"))
        .await;
    clusters.workload.freeze_api().unwrap();
    world
        .until("the host is off", || async {
            member.bmc.machine().power_state().running_boot().is_none()
        })
        .await;
    clusters.until_said("h1", away).await;
    tokio::time::sleep(A_WHILE).await;
    assert!(is_keyed(clusters, "h1").await, "it stays off meanwhile");
    assert!(clusters.is_marked("h1").await);
    clusters.workload.thaw_api().unwrap();
    world
        .until("the Node is gone", || async {
            world
                .node("h1")
                .await
                .is_none_or(|node| node.uid().as_ref() != Some(&member.uid))
        })
        .await;
    // After the release.
    clusters.workload.freeze_api().unwrap();
    tokio::time::sleep(A_WHILE).await;
    clusters.workload.thaw_api().unwrap();
    until_remediated(clusters, member).await;
}
