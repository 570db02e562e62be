//! Watches hosts for people's commands.

use std::collections::BTreeMap;

use dogwatch_core::power::{HostName, HostSnapshot};
use kube::Api;

use crate::Error;
use crate::fleet::{FleetClient, OPTIONAL_KIND_RECHECK};
use crate::host::{HostObject, convert_host};
use crate::informer::{KindInformer, KindRecheck, fixed_jitter};
use crate::watch::{FullObjects, ObjectSelection};

pub struct FleetHostsWatch {
    informer: KindInformer<HostName, HostSnapshot>,
    hosts: BTreeMap<HostName, HostSnapshot>,
}

impl FleetClient {
    /// Watches the hosts of a namespace (`None`: of all namespaces), or one of them. Sends nothing
    /// before [`FleetHostsWatch::wait_for_change`] is awaited.
    pub fn watch_hosts(&self, namespace: Option<&str>, name: Option<&str>) -> FleetHostsWatch {
        let selection =
            name.map(|name| ObjectSelection::by_fields(format!("metadata.name={name}")));
        let api = self.host_api(namespace);
        FleetHostsWatch::new(
            api,
            selection.unwrap_or_default(),
            KindRecheck::AlwaysServed,
        )
    }

    /// Watches the hosts of all namespaces. A cluster without the kind has no hosts.
    pub fn watch_hosts_if_installed(&self) -> FleetHostsWatch {
        let all = ObjectSelection::default();
        FleetHostsWatch::new(self.host_api(None), all, OPTIONAL_KIND_RECHECK)
    }
}

impl FleetHostsWatch {
    fn new(api: Api<HostObject>, selection: ObjectSelection, recheck: KindRecheck) -> Self {
        let entry = |object: &HostObject| {
            let host = convert_host(object);
            Some((host.name.clone(), host))
        };
        let source = FullObjects(api);
        Self {
            informer: KindInformer::new(source, selection, recheck, &fixed_jitter(), entry),
            hosts: BTreeMap::new(),
        }
    }

    /// Whether the watch has not failed since it was last answered.
    pub fn is_connected(&self) -> bool {
        self.informer.is_connected()
    }

    /// Waits for the next change or failure.
    ///
    /// # Errors
    /// A temporary failure of the watch: await the next change.
    pub async fn wait_for_change(&mut self) -> Result<(), Error> {
        let event = self.informer.next_event().await;
        event.apply_to(&mut self.hosts).map_or(Ok(()), Err)
    }

    /// `None` until the list has arrived.
    pub fn current_hosts(&self) -> Option<&BTreeMap<HostName, HostSnapshot>> {
        self.informer.is_synced().then_some(&self.hosts)
    }
}
