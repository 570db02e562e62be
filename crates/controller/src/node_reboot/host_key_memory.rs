//! The keys on hosts for which no watched NodeReboot answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::node_reboot::{
    HostKeyName, HostKeySnapshot, KeyOwnerRead, ObservedNodeReboot, host_keys, is_power_cycle_open,
};
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::resource_version::is_older_version;

/// What is known of one key.
struct HostKeyState {
    /// From the power controller's watch, or from the answer to our own patch if that is newer.
    host: Arc<HostSnapshot>,
    read: Option<KeyOwnerRead>,
}

#[derive(Default)]
pub(super) struct HostKeyMemory(BTreeMap<HostKeyName, HostKeyState>);

impl HostKeyMemory {
    /// Applies what the watches show. A key that its NodeReboot answers for is not listed.
    pub(super) fn observe_hosts<'a>(
        &mut self,
        hosts: &[Arc<HostSnapshot>],
        reboots: impl Iterator<Item = &'a Arc<ObservedNodeReboot>>,
    ) {
        if hosts.is_empty() {
            return self.0.clear();
        }
        let reboots: BTreeMap<&str, _> = reboots.map(|one| (one.uid.as_str(), one)).collect();
        let mut before = std::mem::take(&mut self.0);
        for host in hosts {
            for owner in host_keys(host) {
                let reboot = reboots.get(owner);
                if reboot.is_some_and(|one| is_power_cycle_open(one, host)) {
                    continue;
                }
                let name = HostKeyName {
                    host: host.name.clone(),
                    owner: owner.to_owned(),
                };
                let state = HostKeyState::newest(before.remove(&name), host);
                // Our own patch may have removed it, and the watch does not show that yet.
                if host_keys(&state.host).any(|there| there == owner) {
                    self.0.insert(name, state);
                }
            }
        }
    }

    pub(super) fn list_names(&self) -> impl Iterator<Item = &HostKeyName> {
        self.0.keys()
    }

    pub(super) fn build_snapshot(&self, name: &HostKeyName) -> HostKeySnapshot {
        let state = &self.0[name];
        HostKeySnapshot {
            host: Arc::clone(&state.host),
            owner: name.owner.clone(),
            read: state.read.clone(),
        }
    }

    pub(super) fn observe_read(&mut self, name: &HostKeyName, read: KeyOwnerRead) {
        if let Some(state) = self.0.get_mut(name) {
            state.read = Some(read);
        }
    }

    pub(super) fn observe_written_host(&mut self, name: &HostKeyName, host: HostSnapshot) {
        if let Some(state) = self.0.get_mut(name) {
            state.host = Arc::new(host);
        }
    }
}

impl HostKeyState {
    fn newest(before: Option<Self>, host: &Arc<HostSnapshot>) -> Self {
        let (written, read) = match before {
            Some(before) => (Some(before.host), before.read),
            None => (None, None),
        };
        let is_newer = |written: &Arc<HostSnapshot>| {
            written.uid == host.uid
                && is_older_version(&host.resource_version, &written.resource_version)
        };
        let written = written.filter(is_newer);
        Self {
            host: written.unwrap_or_else(|| Arc::clone(host)),
            read,
        }
    }
}
