//! Watches hosts for people's commands.

use std::collections::BTreeMap;

use dogwatch_core::power::{HostName, HostSnapshot};
use futures::stream::{BoxStream, StreamExt as _};
use kube::ResourceExt as _;

use crate::Error;
use crate::fleet::FleetClient;
use crate::host::{HostObject, convert_host};
use crate::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};

pub struct FleetHostsWatch {
    events: BoxStream<'static, ObjectEvent<HostObject>>,
    hosts: Option<BTreeMap<HostName, HostSnapshot>>,
}

impl FleetClient {
    /// Watches the hosts of a namespace (`None`: of all namespaces), or one of them. Sends nothing
    /// before [`FleetHostsWatch::wait_for_change`] is awaited.
    pub fn watch_hosts(&self, namespace: Option<&str>, name: Option<&str>) -> FleetHostsWatch {
        let selection =
            name.map(|name| ObjectSelection::by_fields(format!("metadata.name={name}")));
        // A single watcher needs no jitter.
        let pauses = || 0.5;
        let source = FullObjects(self.host_api(namespace));
        FleetHostsWatch {
            events: list_and_watch(source, selection.unwrap_or_default(), pauses).boxed(),
            hosts: None,
        }
    }
}

impl FleetHostsWatch {
    /// Waits for the next change or failure.
    ///
    /// # Errors
    /// A temporary failure of the watch: await the next change.
    pub async fn wait_for_change(&mut self) -> Result<(), Error> {
        let event = self.events.next().await;
        let seen = |object: &HostObject| {
            let host = convert_host(object);
            (host.name.clone(), host)
        };
        match event.expect("a watch never ends by itself") {
            ObjectEvent::Restarted(objects) => {
                self.hosts = Some(objects.iter().map(seen).collect());
            }
            ObjectEvent::Applied(object) => {
                self.hosts.get_or_insert_default().extend([seen(&object)]);
            }
            ObjectEvent::Deleted(object) => {
                let name = HostName::new(object.namespace().unwrap_or_default(), object.name_any());
                self.hosts.get_or_insert_default().remove(&name);
            }
            ObjectEvent::Failed(error) => return Err(error),
        }
        Ok(())
    }

    /// `None` until the list has arrived.
    pub fn current_hosts(&self) -> Option<&BTreeMap<HostName, HostSnapshot>> {
        self.hosts.as_ref()
    }
}
