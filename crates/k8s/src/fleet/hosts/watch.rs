//! Hosts kept in sight.

use std::collections::BTreeMap;

use dogwatch_core::power::{Host, HostName};
use futures::stream::{BoxStream, StreamExt as _};
use kube::ResourceExt as _;

use crate::Error;
use crate::fleet::FleetClient;
use crate::host::{HostObject, convert};
use crate::watch::{Event, Full, Selection, watch};

/// The hosts as a watch shows them.
pub struct HostsWatch {
    events: BoxStream<'static, Event<HostObject>>,
    hosts: Option<BTreeMap<HostName, Host>>,
}

impl FleetClient {
    /// Watches the hosts of a namespace (of all where none is named), or one of them; nothing is sent
    /// before [`HostsWatch::changed`] is awaited.
    pub fn watch_hosts(&self, namespace: Option<&str>, name: Option<&str>) -> HostsWatch {
        let selection = name.map(|name| Selection::fields(format!("metadata.name={name}")));
        // One person looks: pauses need no spreading.
        let pauses = || 0.5;
        let source = Full(self.hosts_in(namespace));
        HostsWatch {
            events: watch(source, selection.unwrap_or_default(), pauses).boxed(),
            hosts: None,
        }
    }
}

impl HostsWatch {
    /// Waits for the next change, or for trouble, which passes by itself.
    ///
    /// # Errors
    /// That trouble: await the next.
    pub async fn changed(&mut self) -> Result<(), Error> {
        let event = self.events.next().await;
        let seen = |object: &HostObject| {
            let host = convert(object);
            (host.name.clone(), host)
        };
        match event.expect("a watch never ends by itself") {
            Event::Restarted(objects) => self.hosts = Some(objects.iter().map(seen).collect()),
            Event::Applied(object) => self.hosts.get_or_insert_default().extend([seen(&object)]),
            Event::Deleted(object) => {
                let name = HostName::new(object.namespace().unwrap_or_default(), object.name_any());
                self.hosts.get_or_insert_default().remove(&name);
            }
            Event::Trouble(error) => return Err(error),
        }
        Ok(())
    }

    /// The hosts as last seen; `None` until the list has come.
    pub fn hosts(&self) -> Option<&BTreeMap<HostName, Host>> {
        self.hosts.as_ref()
    }
}
