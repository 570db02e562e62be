//! Maintains the provisioning state where no other controller does. Source: specification §3.2.

use super::host::{HostSnapshot, HostStatus};

const EXTERNALLY_PROVISIONED: &str = "externally provisioned";
const AVAILABLE: &str = "available";
const PROVISIONED: &str = "provisioned";

/// Whether reboot annotations without force are obeyed in this state.
pub(super) fn is_provisioned(state: Option<&str>) -> bool {
    matches!(state, Some(PROVISIONED | EXTERNALLY_PROVISIONED))
}

/// The state to record: a provisioner's own state stays, otherwise the state follows the present or
/// the last value of `spec.externallyProvisioned`.
pub(super) fn provisioning_state(host: &HostSnapshot) -> Option<String> {
    let standing = host.status.provisioning.as_deref();
    if standing.is_some_and(|state| ![EXTERNALLY_PROVISIONED, AVAILABLE].contains(&state)) {
        return host.status.provisioning.clone();
    }
    let is_externally = host.externally_provisioned.unwrap_or_else(|| {
        // metal3's clients omit false: absent after true means false.
        let was_true = host.status.power.externally_provisioned == Some(true);
        !was_true && standing != Some(AVAILABLE)
    });
    Some(
        if is_externally {
            EXTERNALLY_PROVISIONED
        } else {
            AVAILABLE
        }
        .to_owned(),
    )
}

/// Whether the host was acted upon as provisioned, and is not provisioned any more.
pub(super) fn was_deprovisioned(host: &HostSnapshot) -> bool {
    let was = is_provisioned(host.status.power.obeyed_in.as_deref());
    was && !is_provisioned(provisioning_state(host).as_deref())
}

/// Records the state and the value of `spec.externallyProvisioned` that it follows.
pub(super) fn record_provisioning(host: &HostSnapshot, status: &mut HostStatus) {
    status.provisioning = provisioning_state(host);
    status.power.obeyed_in.clone_from(&status.provisioning);
    if host.externally_provisioned.is_some() {
        status.power.externally_provisioned = host.externally_provisioned;
    }
}
