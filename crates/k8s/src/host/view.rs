//! What is seen of all hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_core::power::{Host, HostName, Operators, Owner, Sharing};

/// The hosts as last seen.
#[derive(Debug, Clone, Default)]
pub struct HostView {
    /// All of them.
    pub hosts: BTreeMap<HostName, Arc<Host>>,
    /// It is known how things stand: the hosts were listed, or the kind is not installed.
    pub synced: bool,
    /// Whether there is such a kind in this cluster.
    pub installed: bool,
    /// What could not be seen when it was last looked at, by kind; it may have passed since.
    pub trouble: BTreeMap<&'static str, String>,
    pub(super) sharing: Sharing,
    pub(super) operators: Operators,
    pub(super) ours: BTreeSet<String>,
}

impl HostView {
    /// Whose this host is.
    pub fn owner(&self, host: &Host) -> Owner {
        self.operators.owner(host, &self.ours)
    }

    /// The other hosts that name one of its BMCs.
    pub fn shared_with(&self, name: &HostName) -> Vec<HostName> {
        self.sharing.with(name)
    }

    /// Whose a host is that is ours by no rule: with it all of them change hands.
    pub(super) fn plain_owner(&self) -> Option<Owner> {
        let mut hosts = self.hosts.values();
        let plain = hosts.find(|host| !Operators::is_ours_anyway(host, &self.ours))?;
        Some(self.owner(plain))
    }
}
