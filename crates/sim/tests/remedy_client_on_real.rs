//! The remediator's sight and hand on a real API server, with the rights that are shipped: the cases, and
//! what only it has.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod remedy_client_cases;

use std::path::Path;

use dogwatch_k8s::remedy::WriteError;
use dogwatch_testbed::{ControlPlane, UsedRights, rights_in, shared};
use remedy_client_cases::world::{HOST, World};
use remedy_client_cases::{owner, record};
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

const NAMESPACE: &str = include_str!("../../../deploy/base/namespace.yaml");
const ROLES: &str = include_str!("../../../deploy/base/controller-rbac.yaml");
const HOSTS_ROLE: &str = include_str!("../../../deploy/hosts/rbac.yaml");
const REMEDIATION: &str = include_str!("../../../deploy/remediation/rbac.yaml");
const LEASES: &str =
    r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-node-lease"}}"#;

/// The kinds are of the whole server: one test at a time.
static TURN: Mutex<()> = Mutex::const_new(());

async fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().await
}

/// A namespace in which the controller may do what `deploy/base`, `deploy/hosts` and
/// `deploy/remediation` let it do.
async fn world() -> World {
    static RIGHTS: OnceCell<()> = OnceCell::const_new();
    let plane = shared().await;
    RIGHTS.get_or_init(|| rights(plane)).await;
    let token = plane.service_account_token("dogwatch", "dogwatch-controller", None);
    let controller = plane.kubeconfig_for(&token.await.unwrap()).unwrap();
    let world = World::on(client(plane.kubeconfig()).await, client(&controller).await).await;
    let namespace = format!("--namespace={}", world.namespace);
    let apply = ["apply", "-f", "-", namespace.as_str()];
    plane.run_kubectl(&apply, HOSTS_ROLE).await.unwrap();
    plane.wait_until_rights_are_in_force().await.unwrap();
    world
}

async fn rights(plane: &ControlPlane) {
    let apply = ["apply", "-f", "-"];
    for manifests in [NAMESPACE, LEASES, ROLES, REMEDIATION] {
        plane.run_kubectl(&apply, manifests).await.unwrap();
    }
}

async fn client(file: &Path) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(file).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
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

/// What the loop asks by the hands of others: conditions of Nodes by the healer's, the lock of a Node by
/// the locks'.
const ELSEWHERE: [&str; 2] = ["patch nodes/status", "patch leases"];
const USER: &str = "system:serviceaccount:dogwatch:dogwatch-controller";

/// Nothing was refused; and once all cases have run, no right of the remediator's was unused.
async fn after() {
    static USED: UsedRights = UsedRights::none();
    let mut asked = shared().await.audit().await.unwrap();
    // What is served is open to everybody.
    asked.retain(|entry| entry.user == USER && !entry.resource.is_empty());
    let (used, all) = USED.after(&asked, CASES);
    let mut shipped = rights_in(&[ROLES, HOSTS_ROLE, REMEDIATION], |why| {
        why.contains("remediation:")
    });
    shipped.retain(|right| !ELSEWHERE.contains(&right.as_str()));
    assert!(shipped.len() > 18, "{shipped:?}");
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(!all || unused.is_empty(), "unused: {unused:?}");
    // A right that the remediator uses says so beside it.
    let unsaid: Vec<&String> = used.difference(&shipped).collect();
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
    let plane = shared().await;
    let account = ["create", "serviceaccount", "nobody", "--namespace=dogwatch"];
    plane.run_kubectl(&account, "").await.unwrap();
    let token = plane
        .service_account_token("dogwatch", "nobody", None)
        .await;
    let nobody = plane.kubeconfig_for(&token.unwrap()).unwrap();
    world.controller = client(&nobody).await;
    let answer = world.client().add_key(&host, &owner(), &record()).await;
    let Err(error @ WriteError::Forbidden { .. }) = answer else {
        panic!("{answer:?}");
    };
    let words = error.in_words();
    for part in [
        "patch baremetalhosts.metal3.io",
        "deploy/remediation",
        "dogwatch:nobody",
    ] {
        assert!(words.contains(part), "{words}");
    }
    let mut sight = world.sight();
    sight.until_so(|view| view.trouble.len() == 4).await;
    assert!(!sight.view().synced, "what may not be read is not known");
    assert!(world.object(HOST, "h").await.metadata.annotations.is_none());
}
