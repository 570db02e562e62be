//! Watches hosts for people's commands.

use std::collections::BTreeMap;

use dogwatch_core::power::{HostName, HostSnapshot};

use crate::Error;
use crate::fleet::FleetClient;
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
        FleetHostsWatch {
            informer: KindInformer::new(
                FullObjects(self.host_api(namespace)),
                selection.unwrap_or_default(),
                KindRecheck::AlwaysServed,
                &fixed_jitter(),
                |object: &HostObject| {
                    let host = convert_host(object);
                    Some((host.name.clone(), host))
                },
            ),
            hosts: BTreeMap::new(),
        }
    }
}

impl FleetHostsWatch {
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
