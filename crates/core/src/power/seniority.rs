//! Decides which of two hosts that claim the same thing keeps it. Otherwise anybody who may create
//! a host could stop the fencing of another one by claiming its BMC. Source: specification §6,
//! "Hosts".

use jiff::Timestamp;

use super::host::HostSnapshot;
use super::metal3_leader::OwnerRules;

/// The smaller value wins: a host of `--host-namespaces`, then the older host, then the smaller
/// UID.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostSeniority {
    is_elsewhere: bool,
    created: Timestamp,
    uid: String,
}

impl HostSeniority {
    pub fn of_host(host: &HostSnapshot, rules: &OwnerRules) -> Self {
        Self {
            is_elsewhere: !rules.host_namespaces.contains(&host.name.namespace),
            created: host.created.unwrap_or(Timestamp::MAX),
            uid: host.uid.clone(),
        }
    }
}
