//! Finds hosts whose BMCs report the same system UUID: the address of one of them leads to the
//! machine of another. The senior host is believed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::host::HostName;
use super::seniority::HostSeniority;
use super::system_id::SystemId;

/// The system UUID that each host's BMC reported.
#[derive(Debug, Clone, Default)]
pub struct SharedSystemIds {
    by_host: BTreeMap<HostName, (SystemId, Arc<HostSeniority>)>,
    /// One flat set: most UUIDs have one host, and a set of one takes as much memory as one of eleven.
    by_system_id: BTreeSet<(SystemId, HostName)>,
}

impl SharedSystemIds {
    /// Records the UUID that a host's BMC last reported. `None` and dummy UUIDs cannot be compared.
    pub fn put_host(
        &mut self,
        name: &HostName,
        seniority: &Arc<HostSeniority>,
        system_uuid: Option<&str>,
    ) {
        let id = system_uuid.and_then(SystemId::parse);
        if self.by_host.get(name).map(|(known, _)| *known) == id {
            return;
        }
        self.remove_host(name);
        if let Some(id) = id {
            self.by_host
                .insert(name.clone(), (id, Arc::clone(seniority)));
            self.by_system_id.insert((id, name.clone()));
        }
    }

    pub fn remove_host(&mut self, name: &HostName) {
        if let Some((id, _)) = self.by_host.remove(name) {
            self.by_system_id.remove(&(id, name.clone()));
        }
    }

    /// The senior hosts whose BMCs report the same system UUID as this host's.
    pub fn senior_hosts(&self, name: &HostName) -> Vec<HostName> {
        let Some((id, own)) = self.by_host.get(name) else {
            return Vec::new();
        };
        let here = self.by_system_id.range((*id, HostName::new("", ""))..);
        let here = here.take_while(|(other, _)| other == id);
        let here = here.map(|(_, host)| host);
        let goes_before = |other: &&HostName| {
            let theirs = self.by_host.get(*other);
            *other != name && theirs.is_some_and(|(_, theirs)| theirs < own)
        };
        here.filter(goes_before).cloned().collect()
    }
}
