//! What the power controller may do on the real API server is what `deploy` ships, and what it does is
//! that. Source: specification §6.

use std::collections::BTreeSet;
use std::sync::Mutex;

use dogwatch_testbed::{AuditEntry, rights_in, shared};
use tokio::sync::OnceCell;

const USER: &str = "system:serviceaccount:dogwatch:dogwatch-controller";
const NAMESPACE: &str = include_str!("../../../../deploy/base/namespace.yaml");
const ROLES: &str = include_str!("../../../../deploy/base/controller-rbac.yaml");
const HOSTS_ROLE: &str = include_str!("../../../../deploy/hosts/rbac.yaml");

/// What all cases so far have used, and how many they were.
static USED: Mutex<(BTreeSet<String>, usize)> = Mutex::new((BTreeSet::new(), 0));

/// The controller, without what each namespace with hosts gives it.
pub async fn controller() -> kube::Client {
    static RIGHTS: OnceCell<()> = OnceCell::const_new();
    let plane = shared().await;
    RIGHTS
        .get_or_init(|| async {
            for manifests in [NAMESPACE, ROLES] {
                let apply = ["apply", "-f", "-"];
                plane.run_kubectl(&apply, manifests).await.unwrap();
            }
            plane.wait_until_rights_are_in_force().await.unwrap();
        })
        .await;
    let token = plane.service_account_token("dogwatch", "dogwatch-controller", None);
    let kubeconfig = plane.kubeconfig_for(&token.await.unwrap()).unwrap();
    crate::client_by(&kubeconfig).await
}

/// Lets it read the Secrets of this namespace.
pub async fn in_namespace(namespace: &str) {
    let namespace = format!("--namespace={namespace}");
    let apply = ["apply", "-f", "-", namespace.as_str()];
    let plane = shared().await;
    plane.run_kubectl(&apply, HOSTS_ROLE).await.unwrap();
    plane.wait_until_rights_are_in_force().await.unwrap();
}

/// Nothing was refused in this namespace; and once all cases have run, no right was unused.
pub async fn after(namespace: &str, cases: usize) {
    let mut entries = shared().await.audit().await.unwrap();
    entries.retain(|entry| entry.user == USER);
    assert!(!entries.is_empty(), "{USER} did nothing");
    let refused = entries
        .iter()
        .filter(|entry| entry.code == 403 && entry.namespace == namespace);
    let refused: Vec<&AuditEntry> = refused.collect();
    assert!(
        refused.is_empty(),
        "what is shipped does not let it work: {refused:#?}"
    );
    let (used, all) = {
        let mut used = USED.lock().unwrap();
        used.0.extend(entries.iter().map(AuditEntry::right));
        used.1 += 1;
        (used.0.clone(), used.1 == cases)
    };
    let shipped = rights_in(&[ROLES, HOSTS_ROLE], |why| why.contains("power:"));
    assert!(shipped.len() >= 8, "{shipped:?}");
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(!all || unused.is_empty(), "unused: {unused:?}");
}
