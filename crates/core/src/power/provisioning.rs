//! The provisioning state, where nobody else keeps it. Source: specification §3.2.

use super::host::{Host, HostStatus};

const EXTERNALLY: &str = "externally provisioned";
const AVAILABLE: &str = "available";
const PROVISIONED: &str = "provisioned";

/// Whether reboot annotations are obeyed in this state without force.
pub(super) fn is_provisioned(state: Option<&str>) -> bool {
    matches!(state, Some(PROVISIONED | EXTERNALLY))
}

/// The state as it should stand: kept where a provisioner wrote one that is not ours, else what
/// `spec.externallyProvisioned` says, or last said.
pub(super) fn state(host: &Host) -> Option<String> {
    let standing = host.status.provisioning.as_deref();
    if standing.is_some_and(|state| ![EXTERNALLY, AVAILABLE].contains(&state)) {
        return host.status.provisioning.clone();
    }
    let is_externally = host.externally_provisioned.unwrap_or_else(|| {
        // metal3's clients leave a false out: absent after true is turned false.
        let was_true = host.status.power.externally_provisioned == Some(true);
        !was_true && standing != Some(AVAILABLE)
    });
    Some(if is_externally { EXTERNALLY } else { AVAILABLE }.to_owned())
}

/// Whether the host was obeyed as a provisioned one, and is none any more.
pub(super) fn is_leaving(host: &Host) -> bool {
    let was = is_provisioned(host.status.power.obeyed_in.as_deref());
    was && !is_provisioned(state(host).as_deref())
}

/// Writes down the state, and what it was told by.
pub(super) fn note(host: &Host, status: &mut HostStatus) {
    status.provisioning = state(host);
    status.power.obeyed_in.clone_from(&status.provisioning);
    if host.externally_provisioned.is_some() {
        status.power.externally_provisioned = host.externally_provisioned;
    }
}
