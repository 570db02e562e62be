//! The remediator's watches and writes on a real API server, with the rights that are shipped: the
//! cases, and tests of what only it has.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod remedy_client_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use dogwatch_k8s::remediation::RemediationWriteError;
use dogwatch_testbed::{UsedRights, rights_in_manifests, shared_control_plane};
use remedy_client_cases::world::{HOST, World};
use remedy_client_cases::{owner, record};
use serde_json::json;
use support::real::{
    HOSTS_ROLE, NAMESPACE, REMEDIATION_ROLE, ROLES, apply, asked_by_controller,
    client_that_asks_once, controller_that_asks_once, kubeconfig_of, let_read_secrets,
};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

const LEASES: &str =
    r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-node-lease"}}"#;

/// The kinds belong to the whole server: one test at a time.
static TURN: Mutex<()> = Mutex::const_new(());

async fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().await
}

/// A namespace in which the controller has the rights of `deploy/base`, `deploy/hosts` and
/// `deploy/remediation`.
async fn world() -> World {
    static RIGHTS: OnceCell<()> = OnceCell::const_new();
    RIGHTS.get_or_init(rights).await;
    let people = client_that_asks_once(shared_control_plane().await.admin_kubeconfig()).await;
    let world = World::on(people, controller_that_asks_once("dogwatch").await).await;
    let_read_secrets(&world.namespace).await;
    world
}

async fn rights() {
    for manifests in [NAMESPACE, LEASES, ROLES, REMEDIATION_ROLE] {
        apply(manifests).await;
    }
}

macro_rules! on_real {
    ($($name:ident)*) => {
        const CASES: usize = [$(stringify!($name)),*].len();
        $(
            #[tokio::test]
            async fn $name() {
                let _turn = turn().await;
                remedy_client_cases::$name(&world().await).await;
                after().await;
            }
        )*
    };
}

/// Rights that the loop uses through other clients: conditions of Nodes through the healer's, the
/// lock of a Node through the lock's.
const ELSEWHERE: [&str; 2] = ["patch nodes/status", "patch leases"];

/// Checks that nothing was refused and, after the last case, that every right was used.
async fn after() {
    static USED: UsedRights = UsedRights::none();
    let mut asked = asked_by_controller("dogwatch").await;
    // Everybody may use discovery.
    asked.retain(|entry| !entry.resource.is_empty());
    let mut shipped = rights_in_manifests(&[ROLES, HOSTS_ROLE, REMEDIATION_ROLE], |why| {
        why.contains("remediation:")
    });
    shipped.retain(|right| !ELSEWHERE.contains(&right.as_str()));
    assert!(shipped.len() > 18, "{shipped:?}");
    let unsaid = USED.record_test(&asked, CASES, &shipped);
    // A comment beside the right names the remediator.
    assert!(
        unsaid.is_empty(),
        "not said to be for remediation: {unsaid:?}"
    );
}

remedy_client_cases::every_case!(on_real);

#[tokio::test]
async fn a_right_that_is_missing_is_named_with_the_role_that_has_it() {
    let _turn = turn().await;
    let mut world = world().await;
    let host = world.host("h", json!({})).await;
    let account = ["create", "serviceaccount", "nobody", "--namespace=dogwatch"];
    shared_control_plane()
        .await
        .run_kubectl(&account, "")
        .await
        .unwrap();
    let nobody = kubeconfig_of("dogwatch", "nobody").await;
    world.controller = client_that_asks_once(&nobody).await;
    let answer = world.client().add_key(&host, &owner(), &record()).await;
    let Err(error @ RemediationWriteError::Forbidden { .. }) = answer else {
        panic!("{answer:?}");
    };
    let words = error.error_chain();
    for part in [
        "patch baremetalhosts.metal3.io",
        "deploy/remediation",
        "dogwatch:nobody",
    ] {
        assert!(words.contains(part), "{words}");
    }
    let mut sight = world.sight();
    sight.until_so(|view| view.errors.len() == 6).await;
    assert!(!sight.view().synced, "what may not be read is not known");
    assert!(world.object(HOST, "h").await.metadata.annotations.is_none());
}
