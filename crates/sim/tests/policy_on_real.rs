//! Policies on a real API server: the cases, and tests of what only it has (rights, CEL, tables).

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod policy_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use dogwatch_testbed::ControlPlane;
use policy_cases::world::{World, is_known, sight_of};
use serde_json::json;
use support::real::client_that_asks_once;
use tokio::sync::{Mutex, MutexGuard};

/// The kind belongs to the whole server: one test at a time.
static TURN: Mutex<()> = Mutex::const_new(());

async fn turn() -> (MutexGuard<'static, ()>, &'static ControlPlane) {
    (
        TURN.lock().await,
        dogwatch_testbed::shared_control_plane().await,
    )
}

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let (_turn, plane) = turn().await;
            policy_cases::$name(&World::without_the_kind(client(plane, None).await).await).await;
        }
    )* };
}

policy_cases::every_case!(on_real);

async fn client(plane: &ControlPlane, token: Option<&str>) -> kube::Client {
    let file = match token {
        Some(token) => plane.kubeconfig_for(token).unwrap(),
        None => plane.admin_kubeconfig().to_owned(),
    };
    client_that_asks_once(&file).await
}

#[tokio::test]
async fn who_may_not_read_policies_is_told_what_to_do_and_sees_them_once_allowed() {
    let plane = ControlPlane::builder()
        .with_controllers([])
        .with_user("nobody", "nobody", &[])
        .start()
        .await
        .unwrap();
    let world = World::without_the_kind(client(&plane, None).await).await;
    world.install_the_kind().await;
    world.create("workers", &json!({})).await;
    let mut sight = sight_of(client(&plane, Some("nobody")).await);
    let seen = sight.next().await;
    let dogwatch_core::policy::ClusterPolicies::Unreadable { why } = seen.policies else {
        panic!("{seen:?}");
    };
    assert!(
        why.contains("nobody") && why.contains("deploy/base/rbac.yaml"),
        "{why}"
    );

    let allow = [
        "create",
        "clusterrole",
        "reader",
        "--verb=list,watch",
        "--resource=rebootpolicies.dogwatch.dev",
    ];
    plane.run_kubectl(&allow, "").await.unwrap();
    let bind = [
        "create",
        "clusterrolebinding",
        "reader",
        "--clusterrole=reader",
        "--user=nobody",
    ];
    plane.run_kubectl(&bind, "").await.unwrap();
    sight.until(|seen| is_known(seen, &["workers"])).await;

    // While the API is down the last state stays, marked as possibly old.
    plane.stop_api();
    let seen = sight.until(|seen| seen.error.is_some()).await;
    assert!(is_known(&seen, &["workers"]), "{seen:?}");
    plane.start_api().await.unwrap();
    world.create("others", &json!({})).await;
    let seen = sight
        .until(|seen| is_known(seen, &["others", "workers"]))
        .await;
    assert_eq!(seen.error, None);
}
