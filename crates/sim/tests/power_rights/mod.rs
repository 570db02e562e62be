//! What the power controller may do on the real API server is what `deploy` ships, and what it does is
//! that. Source: specification §6.

use dogwatch_testbed::{UsedRights, rights_in};
use tokio::sync::OnceCell;

use crate::support::real::{
    HOSTS_ROLE, NAMESPACE, ROLES, apply, asked_by_controller, controller_of, let_read_secrets,
};

/// The controller, without what each namespace with hosts gives it.
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

/// Lets it read the Secrets of this namespace.
pub async fn in_namespace(namespace: &str) {
    let_read_secrets(namespace).await;
}

/// Nothing was refused in this namespace; and once all cases have run, no right was unused.
pub async fn after(namespace: &str, cases: usize) {
    static USED: UsedRights = UsedRights::none();
    let mut asked = asked_by_controller("dogwatch").await;
    // There is a case that gives it no rights in its own namespace.
    asked.retain(|entry| entry.code != 403 || entry.namespace == namespace);
    let shipped = rights_in(&[ROLES, HOSTS_ROLE], |why| why.contains("power:"));
    assert!(shipped.len() >= 8, "{shipped:?}");
    USED.after(&asked, cases, &shipped);
}
