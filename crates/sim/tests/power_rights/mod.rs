//! The power controller's rights on the real API server are exactly those that `deploy` ships, and
//! the cases use each of them; so are those that only the power cycle of a NodeReboot needs. Source:
//! specification §6.

use dogwatch_testbed::{UsedRights, rights_in_manifests};
use tokio::sync::OnceCell;

use crate::support::real::{
    HOSTS_ROLE, NAMESPACE, ROLES, apply, asked_by_controller, controller_of, let_read_secrets,
};

/// What the comment of a right contains that only the power cycle of a NodeReboot needs.
const POWER_CYCLE: &str = "NodeReboots: in a power cycle";

/// The controller's client, without the rights that each namespace with hosts grants.
pub async fn controller() -> kube::Client {
    static RIGHTS: OnceCell<()> = OnceCell::const_new();
    RIGHTS
        .get_or_init(|| async {
            for manifests in [NAMESPACE, ROLES] {
                apply(manifests).await;
            }
        })
        .await;
    controller_of("dogwatch").await
}

/// Grants it the right to read the Secrets of this namespace.
pub async fn in_namespace(namespace: &str) {
    let_read_secrets(namespace).await;
}

/// Checks that nothing was refused in this namespace and, after the last case, that every right was
/// used.
pub async fn after(namespace: &str, cases: usize) {
    static USED: UsedRights = UsedRights::none();
    let mut asked = asked_by_controller("dogwatch").await;
    // One case grants no rights in its own namespace.
    asked.retain(|entry| entry.code != 403 || entry.namespace == namespace);
    let shipped = rights_in_manifests(&[ROLES, HOSTS_ROLE], |why| {
        why.contains("power:") || why.contains(POWER_CYCLE)
    });
    assert!(shipped.len() >= 9, "{shipped:?}");
    assert!(shipped.contains("get nodereboots"), "{shipped:?}");
    USED.record_test(&asked, cases, &shipped);
}
