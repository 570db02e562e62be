//! What is seen of all hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::power::{Host, HostName, Operators, Owner, OwnerRules, Seniority, Sharing};

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
    pub(super) rules: OwnerRules,
}

impl HostView {
    /// Whose this host is.
    pub fn owner(&self, host: &Host) -> Owner {
        self.operators.owner(host, &self.rules)
    }

    /// Leases that look like those of metal3's leaders, where none is believed: namespace, and who holds it.
    pub fn leaders_not_believed(&self) -> BTreeMap<String, String> {
        let others = self.operators.not_believed(&self.rules);
        others
            .map(|(at, who)| (at.to_owned(), who.to_owned()))
            .collect()
    }

    /// The other hosts that name one of its BMCs, and keep it: they go before it.
    pub fn shared_with(&self, name: &HostName) -> Vec<HostName> {
        self.sharing.before(name)
    }

    /// Whether it goes before others that claim what it has.
    pub fn seniority(&self, host: &Host) -> Seniority {
        Seniority::of(host, &self.rules)
    }

    /// Whose a host is that is ours by no rule: with it all of them change hands.
    pub(super) fn plain_owner(&self) -> Option<Owner> {
        let mut hosts = self.hosts.values();
        let plain = hosts.find(|host| !Operators::is_ours_anyway(host, &self.rules))?;
        Some(self.owner(plain))
    }
}
