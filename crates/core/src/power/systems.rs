//! Hosts whose BMCs tell one system UUID: the address of one of them leads to the machine of another. The one that
//! was there first is believed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::host::HostName;
use super::identity::SystemId;
use super::seniority::Seniority;

/// Which machines the BMCs of all hosts say they are.
#[derive(Debug, Clone, Default)]
pub struct Systems {
    of: BTreeMap<HostName, (SystemId, Arc<Seniority>)>,
    at: BTreeMap<SystemId, BTreeSet<HostName>>,
}

impl Systems {
    /// What a host's BMC told last; `None`, and what many machines have: nothing that could be compared.
    pub fn put(&mut self, name: &HostName, seniority: &Arc<Seniority>, system_uuid: Option<&str>) {
        let id = system_uuid.and_then(SystemId::parse);
        if self.of.get(name).map(|(known, _)| *known) == id {
            return;
        }
        self.remove(name);
        if let Some(id) = id {
            self.of.insert(name.clone(), (id, Arc::clone(seniority)));
            self.at.entry(id).or_default().insert(name.clone());
        }
    }

    /// A host that is gone.
    pub fn remove(&mut self, name: &HostName) {
        let Some((id, _)) = self.of.remove(name) else {
            return;
        };
        let Some(here) = self.at.get_mut(&id) else {
            return;
        };
        here.remove(name);
        if here.is_empty() {
            self.at.remove(&id);
        }
    }

    /// The other hosts whose BMCs tell what the BMC of this one tells, and that go before it.
    pub fn before(&self, name: &HostName) -> Vec<HostName> {
        let Some((id, own)) = self.of.get(name) else {
            return Vec::new();
        };
        let here = self.at.get(id).into_iter().flatten();
        let goes_before = |other: &&HostName| {
            let theirs = self.of.get(*other);
            *other != name && theirs.is_some_and(|(_, theirs)| theirs < own)
        };
        here.filter(goes_before).cloned().collect()
    }
}
