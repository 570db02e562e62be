//! Hosts whose BMCs tell one system UUID: the address of one of them leads to the machine of another.

use std::collections::{BTreeMap, BTreeSet};

use super::host::HostName;
use super::identity::SystemId;

/// Which machines the BMCs of all hosts say they are.
#[derive(Debug, Clone, Default)]
pub struct Systems {
    of: BTreeMap<HostName, SystemId>,
    at: BTreeMap<SystemId, BTreeSet<HostName>>,
}

impl Systems {
    /// What a host's BMC told last; `None`, and what many machines have: nothing that could be compared.
    pub fn put(&mut self, name: &HostName, system_uuid: Option<&str>) {
        let id = system_uuid.and_then(SystemId::parse);
        if self.of.get(name) == id.as_ref() {
            return;
        }
        self.remove(name);
        if let Some(id) = id {
            self.of.insert(name.clone(), id);
            self.at.entry(id).or_default().insert(name.clone());
        }
    }

    /// A host that is gone.
    pub fn remove(&mut self, name: &HostName) {
        let Some(id) = self.of.remove(name) else {
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

    /// The other hosts whose BMCs tell what the BMC of this one tells.
    pub fn with(&self, name: &HostName) -> Vec<HostName> {
        let here = self.of.get(name).and_then(|id| self.at.get(id));
        let others = here.into_iter().flatten();
        others.filter(|other| *other != name).cloned().collect()
    }
}
