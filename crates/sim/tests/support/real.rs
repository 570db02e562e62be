//! Clients of real API servers, and what accounts have asked of the one that all tests of a program share.

use std::path::{Path, PathBuf};

use dogwatch_testbed::{AuditEntry, shared};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::Mutex;

/// Who holds it is alone on the shared server: a process that leads there sees all that is on it.
pub static ALONE: Mutex<()> = Mutex::const_new(());

/// Each of these cases of `cases` alone on the shared server, in a `world()` of its own. In the end `after` looks at what
/// was asked in it; `CASES` is how many there are.
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
/// The controller's, with its parts for hosts and for Cluster API.
pub const ROLES: &str = concat!(
    include_str!("../../../../deploy/base/controller-rbac.yaml"),
    "---\n",
    include_str!("../../../../deploy/power/rbac.yaml"),
    "---\n",
    include_str!("../../../../deploy/cluster-api/rbac.yaml"),
);
pub const HOSTS_ROLE: &str = include_str!("../../../../deploy/hosts/rbac.yaml");
pub const REMEDIATION_ROLE: &str = include_str!("../../../../deploy/remediation/rbac.yaml");

/// The administrator of the shared one.
pub async fn client() -> Client {
    client_by(shared().await.kubeconfig()).await
}

/// A client that asks again by itself where a server has no time, as one does that has just learned a kind.
pub async fn client_by(kubeconfig: &Path) -> Client {
    Client::try_from(config(kubeconfig).await).unwrap()
}

/// One that takes each answer as it is: a refused eviction is an answer.
pub async fn client_that_asks_once(kubeconfig: &Path) -> Client {
    Client::try_from(config_of_one(kubeconfig).await).unwrap()
}

/// The same with this user agent: by it the audit log tells its calls apart.
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

/// Has these manifests on the shared one.
pub async fn apply(manifests: &str) {
    let apply = ["apply", "-f", "-"];
    shared().await.run_kubectl(&apply, manifests).await.unwrap();
}

/// The same for what names no namespace.
pub async fn apply_in(namespace: &str, manifests: &str) {
    let namespace = format!("--namespace={namespace}");
    let apply = ["apply", "-f", "-", namespace.as_str()];
    shared().await.run_kubectl(&apply, manifests).await.unwrap();
}

/// Lets the controller of namespace `dogwatch` read the Secrets of this one.
pub async fn let_read_secrets(namespace: &str) {
    apply_in(namespace, HOSTS_ROLE).await;
    let plane = shared().await;
    plane.wait_until_rights_are_in_force().await.unwrap();
}

/// How this account reaches the shared one.
pub async fn kubeconfig_of(namespace: &str, account: &str) -> PathBuf {
    let plane = shared().await;
    plane.kubeconfig_of(namespace, account).await.unwrap()
}

const CONTROLLER: &str = "dogwatch-controller";

/// The controller of the Dogwatch in this namespace.
pub async fn controller_of(namespace: &str) -> Client {
    client_by(&kubeconfig_of(namespace, CONTROLLER).await).await
}

/// The same as one that takes each answer as it is.
pub async fn controller_that_asks_once(namespace: &str) -> Client {
    client_that_asks_once(&kubeconfig_of(namespace, CONTROLLER).await).await
}

/// What the controller of the Dogwatch in this namespace has asked the shared one.
pub async fn asked_by_controller(namespace: &str) -> Vec<AuditEntry> {
    let user = format!("system:serviceaccount:{namespace}:{CONTROLLER}");
    shared().await.audit_of(&user).await.unwrap()
}
