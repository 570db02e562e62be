//! The power controller's view of all hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::power::{
    HostName, HostOwner, HostSeniority, HostSnapshot, Metal3Leaders, OwnerRules, SharedBmcs,
};

#[derive(Debug, Clone, Default)]
pub struct HostWatchView {
    pub hosts: BTreeMap<HostName, Arc<HostSnapshot>>,
    /// The hosts were listed, or the kind is not installed.
    pub synced: bool,
    pub installed: bool,
    /// The last read error, by kind. The cause may have passed since.
    pub errors: BTreeMap<&'static str, String>,
    pub(super) sharing: SharedBmcs,
    pub(super) metal3_leaders: Metal3Leaders,
    pub(super) rules: OwnerRules,
}

impl HostWatchView {
    pub fn owner_of(&self, host: &HostSnapshot) -> HostOwner {
        self.metal3_leaders.host_owner(host, &self.rules)
    }

    /// Leases that look like those of metal3's leaders but are in untrusted namespaces: the holder,
    /// by namespace.
    pub fn untrusted_leaders(&self) -> BTreeMap<String, String> {
        let others = self.metal3_leaders.untrusted_leases(&self.rules);
        others
            .map(|(at, who)| (at.to_owned(), who.to_owned()))
            .collect()
    }

    /// The other hosts that name one of this host's BMCs and take precedence over it.
    pub fn hosts_sharing_bmc(&self, name: &HostName) -> Vec<HostName> {
        self.sharing.senior_hosts(name)
    }

    /// Whether this host takes precedence over others that claim the same BMC.
    pub fn seniority_of(&self, host: &HostSnapshot) -> HostSeniority {
        HostSeniority::of_host(host, &self.rules)
    }

    /// The owner of the hosts that no rule makes ours. When it changes, all of them change owner.
    /// `None`: there are no such hosts.
    pub(super) fn default_owner(&self) -> Option<HostOwner> {
        let mut hosts = self.hosts.values();
        let plain = hosts.find(|host| !Metal3Leaders::is_always_ours(host, &self.rules))?;
        Some(self.owner_of(plain))
    }
}
