//! The cases of the handshake on a real API server: with the rights that are shipped, no more and no
//! less, and with all admission policies in force.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod handshake_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod heal_rights;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use dogwatch_process::clock::Clock;
use dogwatch_testbed::{AuditEntry, rights_in, shared};
use tokio::sync::Mutex;

use handshake_cases::world::World;

const ROLES: &str = include_str!("../../../deploy/base/controller-rbac.yaml");
const MEDIK8S_ROLE: &str = include_str!("../../../deploy/medik8s/rbac.yaml");

/// One after the other: a leader sees every Node of the cluster.
static ALONE: Mutex<()> = Mutex::const_new(());

/// What all cases so far have used, and how many they were.
static USED: std::sync::Mutex<(BTreeSet<String>, usize)> =
    std::sync::Mutex::new((BTreeSet::new(), 0));

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let _alone = ALONE.lock().await;
            let world = world().await;
            handshake_cases::$name(&world).await;
            world.end().await;
            after(&world.home).await;
        }
    )*
        const CASES: usize = [$(stringify!($name)),*].len();
    };
}

handshake_cases::every_case!(on_real);

async fn world() -> World {
    let client = client_by(shared().await.kubeconfig()).await;
    let timeout = Duration::from_mins(2);
    let world = World::on(client, Clock::system(), timeout).await;
    let mut world = world.with_listeners().await;
    let here = format!("namespace: {}\n", world.home);
    let role = MEDIK8S_ROLE.replace("namespace: dogwatch\n", &here);
    let apply = ["apply", "-f", "-"];
    shared().await.run_kubectl(&apply, &role).await.unwrap();
    world.leading = heal_rights::controller(&world.home).await;
    world
}

async fn client_by(path: &Path) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Nothing was refused in this case; and once all have run, no right of the handshake was unused.
async fn after(namespace: &str) {
    let user = format!("system:serviceaccount:{namespace}:dogwatch-controller");
    let mut entries = shared().await.audit().await.unwrap();
    entries.retain(|entry| entry.user == user);
    let refused: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.code == 403).collect();
    assert!(
        refused.is_empty(),
        "what is shipped does not let it work: {refused:#?}"
    );
    let (used, all) = {
        let mut used = USED.lock().unwrap();
        used.0.extend(entries.iter().map(AuditEntry::right));
        used.1 += 1;
        (used.0.clone(), used.1 == CASES)
    };
    let shipped = rights_in(&[ROLES, MEDIK8S_ROLE], |why| why.contains("handshake:"));
    assert!(shipped.len() > 5, "{shipped:?}");
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(!all || unused.is_empty(), "unused: {unused:?}");
}
