//! Clients of real API servers, and the requests of accounts to the server that all tests of a
//! program share.

use std::path::{Path, PathBuf};

use dogwatch_testbed::{AuditEntry, shared_control_plane};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::Mutex;

/// The holder is alone on the shared server: a process that leads there sees everything on it.
pub static ALONE: Mutex<()> = Mutex::const_new(());

/// Runs each of these cases of `cases` alone on the shared server, in its own `world()`. At the end
/// `after` checks the requests of the case; `CASES` is the number of cases.
#[allow(unused_macros, reason = "each test binary uses its part")]
macro_rules! alone_on_real {
    ($($name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let _alone = crate::support::real::ALONE.lock().await;
                let world = world().await;
                cases::$name(&world).await;
                world.end().await;
                after(&world).await;
            }
        )*
        #[allow(dead_code, reason = "who proves no rights does not count")]
        const CASES: usize = [$(stringify!($name)),*].len();
    };
}
#[allow(unused_imports, reason = "each test binary uses its part")]
pub(crate) use alone_on_real;

pub const NAMESPACE: &str = include_str!("../../../../deploy/base/namespace.yaml");
/// The controller's roles, with the parts for hosts and for Cluster API.
pub const ROLES: &str = concat!(
    include_str!("../../../../deploy/base/controller-rbac.yaml"),
    "---\n",
    include_str!("../../../../deploy/power/rbac.yaml"),
    "---\n",
    include_str!("../../../../deploy/cluster-api/rbac.yaml"),
);
pub const HOSTS_ROLE: &str = include_str!("../../../../deploy/hosts/rbac.yaml");
pub const REMEDIATION_ROLE: &str = include_str!("../../../../deploy/remediation/rbac.yaml");

/// The administrator of the shared server.
pub async fn client() -> Client {
    client_by(shared_control_plane().await.admin_kubeconfig()).await
}

/// A client that retries when a server is busy, for example after it has learned a new kind.
pub async fn client_by(kubeconfig: &Path) -> Client {
    Client::try_from(config(kubeconfig).await).unwrap()
}

/// A client without retries: a refused eviction is an answer.
pub async fn client_that_asks_once(kubeconfig: &Path) -> Client {
    Client::try_from(config_of_one(kubeconfig).await).unwrap()
}

/// The same with this user agent, which identifies its requests in the audit log.
pub async fn client_as(kubeconfig: &Path, agent: &str) -> Client {
    let mut config = config_of_one(kubeconfig).await;
    let agent = (http::header::USER_AGENT, agent.parse().unwrap());
    config.headers.push(agent);
    Client::try_from(config).unwrap()
}

async fn config_of_one(kubeconfig: &Path) -> Config {
    let mut config = config(kubeconfig).await;
    config.default_retry = false;
    config
}

async fn config(kubeconfig: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap()
}

/// Applies these manifests on the shared server.
pub async fn apply(manifests: &str) {
    let apply = ["apply", "-f", "-"];
    shared_control_plane()
        .await
        .run_kubectl(&apply, manifests)
        .await
        .unwrap();
}

/// The same for manifests without a namespace.
pub async fn apply_in(namespace: &str, manifests: &str) {
    let namespace = format!("--namespace={namespace}");
    let apply = ["apply", "-f", "-", namespace.as_str()];
    shared_control_plane()
        .await
        .run_kubectl(&apply, manifests)
        .await
        .unwrap();
}

/// Grants the controller of namespace `dogwatch` the right to read the Secrets of this namespace.
pub async fn let_read_secrets(namespace: &str) {
    apply_in(namespace, HOSTS_ROLE).await;
    let plane = shared_control_plane().await;
    plane.wait_until_rights_are_in_force().await.unwrap();
}

/// The kubeconfig of this account for the shared server.
pub async fn kubeconfig_of(namespace: &str, account: &str) -> PathBuf {
    let plane = shared_control_plane().await;
    plane.kubeconfig_of(namespace, account).await.unwrap()
}

const CONTROLLER: &str = "dogwatch-controller";

/// A client of the controller of the Dogwatch in this namespace.
pub async fn controller_of(namespace: &str) -> Client {
    client_by(&kubeconfig_of(namespace, CONTROLLER).await).await
}

/// The same without retries.
pub async fn controller_that_asks_once(namespace: &str) -> Client {
    client_that_asks_once(&kubeconfig_of(namespace, CONTROLLER).await).await
}

/// The requests of that controller to the shared server.
pub async fn asked_by_controller(namespace: &str) -> Vec<AuditEntry> {
    let user = format!("system:serviceaccount:{namespace}:{CONTROLLER}");
    shared_control_plane()
        .await
        .audit_entries_of(&user)
        .await
        .unwrap()
}
