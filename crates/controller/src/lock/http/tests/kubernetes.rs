//! Real tokens, checked by a real API server.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dogwatch_k8s::connect::connect_by_kubeconfig;
use dogwatch_testbed::ControlPlane;

use super::rig::{Answer, Rig, config, post, within};
use crate::lock::http::{DEFAULT_LOCK_AUDIENCE, KubernetesAccess, LockAuthMode};

/// The accounts that ask for locks (`pleb` may lock n1 alone, `operator` every host), and the
/// server's account.
const SETUP: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: lock-http}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: pleb, namespace: lock-http}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: operator, namespace: lock-http}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: server, namespace: lock-http}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lock-n1}
rules: [{apiGroups: [dogwatch.dev], resources: [rebootlocks], resourceNames: [n1], verbs: [lock]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lock-all}
rules: [{apiGroups: [dogwatch.dev], resources: [rebootlocks], verbs: [lock]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lock-n1}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lock-n1}
subjects: [{kind: ServiceAccount, name: pleb, namespace: lock-http}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lock-all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lock-all}
subjects: [{kind: ServiceAccount, name: operator, namespace: lock-http}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lock-http-server}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}
subjects: [{kind: ServiceAccount, name: server, namespace: lock-http}]
";

const NAMESPACE: &str = "lock-http";

async fn token(plane: &ControlPlane, account: &str) -> String {
    token_for(plane, account, "dogwatch").await
}

async fn token_for(plane: &ControlPlane, account: &str, audience: &str) -> String {
    let create = [
        "create",
        "token",
        account,
        "--namespace",
        NAMESPACE,
        "--audience",
        audience,
    ];
    let token = plane.run_kubectl(&create, "").await.unwrap();
    token.trim().to_owned()
}

/// A token without a requested audience: it grants everything that its owner may do.
async fn plain(plane: &ControlPlane, account: &str) -> String {
    plane
        .service_account_token(NAMESPACE, account, None)
        .await
        .unwrap()
}

async fn rig(kubeconfig: &Path) -> Rig {
    let client = connect_by_kubeconfig(kubeconfig).await.unwrap();
    let access = Arc::new(KubernetesAccess::new(
        client,
        vec![DEFAULT_LOCK_AUDIENCE.to_owned()],
    ));
    Rig::with_access(config(LockAuthMode::Kubernetes), access).await
}

async fn call(rig: &Rig, path: &str, token: &str, host: &str) -> Answer {
    let header = format!("authorization: Bearer {token}");
    let form = format!("hostname={host}");
    rig.raw(post(path, &[&header], &form)).await
}

async fn lock(rig: &Rig, token: &str, host: &str) -> u16 {
    call(rig, "/api/v1/lock", token, host).await.status
}

/// The control plane with the accounts. They are made once: two tests that apply them at the same
/// time would fail, and one would bring back what the other has removed.
async fn plane_with_accounts() -> &'static dogwatch_testbed::ControlPlane {
    static ACCOUNTS: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    let plane = dogwatch_testbed::shared_control_plane().await;
    let make = || async {
        plane
            .run_kubectl(&["apply", "-f", "-"], SETUP)
            .await
            .unwrap();
    };
    ACCOUNTS.get_or_init(make).await;
    plane
}

#[tokio::test]
async fn the_api_server_says_who_may_lock_which_host() {
    let plane = plane_with_accounts().await;
    let server = plain(plane, "server").await;
    let (pleb, operator) = (token(plane, "pleb").await, token(plane, "operator").await);
    let rig = rig(&plane.kubeconfig_for(&server).unwrap()).await;
    // The API server's authorizer knows a binding only a moment after it was made.
    let bound = async { while lock(&rig, &operator, "n1").await == 403 {} };
    within("the bindings work", bound).await;
    let other = call(&rig, "/api/v1/unlock", &pleb, "n2").await;
    assert_eq!(other.status, 403);
    let words = "user \"system:serviceaccount:lock-http:pleb\" may not lock n2";
    assert!(other.body.contains(words), "{other:?}");
    for (path, token, host, status) in [
        ("/api/v1/lock", &pleb, "n2", 403),
        ("/api/v1/unlock", &pleb, "N1", 200),
        ("/api/v1/lock", &pleb, "n1", 200),
        ("/api/v1/unlock", &operator, "n1", 200),
        ("/api/v1/lock", &token(plane, "server").await, "n1", 403),
        ("/api/v1/lock", &"made.up.token".to_owned(), "n1", 401),
    ] {
        let answer = call(&rig, path, token, host).await;
        assert_eq!(answer.status, status, "{path} {host} {answer:?}");
    }
    // A host's token for the API server itself, or for another service, is worth nothing here.
    let elsewhere = token_for(plane, "pleb", "elsewhere").await;
    for token in [plain(plane, "pleb").await, elsewhere] {
        let answer = call(&rig, "/api/v1/lock", &token, "n1").await;
        assert_eq!(answer.status, 401);
        assert!(answer.body.contains("--audience dogwatch"), "{answer:?}");
    }
    // Nothing is cached here: a revoked right is gone as soon as the API server says so.
    plane
        .run_kubectl(&["delete", "clusterrolebinding", "lock-n1"], "")
        .await
        .unwrap();
    let gone = async { while lock(&rig, &pleb, "n1").await == 200 {} };
    within("the right is gone", gone).await;
}

#[tokio::test]
async fn a_server_that_may_not_ask_lets_nobody_in() {
    let plane = plane_with_accounts().await;
    let (pleb, operator) = (plain(plane, "pleb").await, token(plane, "operator").await);
    let rig = rig(&plane.kubeconfig_for(&pleb).unwrap()).await;
    let answer = call(&rig, "/api/v1/lock", &operator, "n1").await;
    assert_eq!(answer.status, 503);
    assert!(
        !answer.body.contains("serviceaccount"),
        "the operator's to read: {answer:?}"
    );
}

#[tokio::test]
async fn nobody_gets_in_while_the_api_server_is_away() {
    let plane = dogwatch_testbed::shared_control_plane().await;
    let here = fs::read_to_string(plane.admin_kubeconfig()).unwrap();
    let away = here.replace(&plane.api_url(), "https://127.0.0.1:1");
    let file = plane.folder().join("away.kubeconfig");
    fs::write(&file, away).unwrap();
    let rig = rig(&file).await;
    let answer = call(&rig, "/api/v1/lock", "some.token", "n1").await;
    assert_eq!(answer.status, 503);
    assert!(answer.is_one_line() && answer.header("retry-after").is_some());
}
