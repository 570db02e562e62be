//! Remediation's cases on a real API server, with short times, with the rights that are shipped.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(
    clippy::disallowed_methods,
    reason = "a real API server has the real time"
)]

#[allow(dead_code, reason = "each test binary uses its part")]
mod power_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod power_rights;
mod remedy_cases;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dogwatch_core::power::Config;
use dogwatch_testbed::{AuditEntry, rights_in, shared};
use jiff::Timestamp;
use tokio::sync::Mutex;

use power_cases::world::World as Metal;
use remedy_cases::world::World;

const ROLE: &str = include_str!("../../../deploy/remediation/rbac.yaml");
const BASE: &str = include_str!("../../../deploy/base/controller-rbac.yaml");
const ACCOUNT: &str = "system:serviceaccount:dogwatch:dogwatch-controller";

/// One after the other: a process keeps every host of the cluster.
static ALONE: Mutex<()> = Mutex::const_new(());
/// How many cases have run.
static RUN: AtomicUsize = AtomicUsize::new(0);

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let _alone = ALONE.lock().await;
            let world = world().await;
            remedy_cases::$name(&world).await;
            world.end().await;
            rights(CASES).await;
        }
    )*
        const CASES: usize = [$(stringify!($name)),*].len();
    };
}

every_remedy_case!(on_real);

async fn world() -> World {
    let mut metal = Metal::on(client().await, short(), Timestamp::now()).await;
    metal.leading = power_rights::controller().await;
    power_rights::in_namespace(&metal.namespace).await;
    let apply = ["apply", "-f", "-"];
    shared().await.run_kubectl(&apply, ROLE).await.unwrap();
    let mut world = World::on(metal).await;
    world.home = "dogwatch".into();
    world
}

/// Nothing was refused; and once all cases have run, no right was unused.
async fn rights(cases: usize) {
    let mut entries = shared().await.audit().await.unwrap();
    entries.retain(|entry| entry.user == ACCOUNT);
    let refused: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.code == 403).collect();
    assert!(
        refused.is_empty(),
        "what is shipped does not let it work: {refused:#?}"
    );
    let run = RUN.fetch_add(1, Ordering::Relaxed) + 1;
    let used: BTreeSet<String> = entries.iter().map(AuditEntry::right).collect();
    let shipped = rights_in(&[BASE, ROLE], |why| why.contains("remediation:"));
    assert!(shipped.len() >= 10, "{shipped:?}");
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(run < cases || unused.is_empty(), "unused: {unused:?}");
}

fn short() -> Config {
    let seconds = Duration::from_secs;
    Config {
        poll: seconds(1),
        check: seconds(2),
        confirm: Duration::from_millis(500),
        settle: seconds(4),
        soft: seconds(20),
        call: seconds(2),
    }
}

async fn client() -> kube::Client {
    client_by(shared().await.kubeconfig()).await
}

async fn client_by(path: &Path) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}
