//! Watches one restart: the object, and the pods that it selects.

use std::collections::BTreeMap;

use dogwatch_core::rollout::{PodSeen, Seen};
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::{Event as Said, Pod};
use kube::api::{Api, ListParams};
use kube::core::DynamicObject;
use kube::{Client, ResourceExt as _};

use super::restart::{Found, RolloutClient, kind_of};
use super::view::{object_seen, pod_labels, pod_seen, said};
use crate::Error;
use crate::error::ask;
use crate::watch::{Event, Full, Selection, watch};

/// A restart under way.
#[expect(
    clippy::option_option,
    reason = "not looked at yet, seen to be gone, or there"
)]
pub struct Follow {
    found: Found,
    client: Client,
    objects: BoxStream<'static, Event<DynamicObject>>,
    pods: BoxStream<'static, Event<Pod>>,
    object: Option<Option<DynamicObject>>,
    known: Option<BTreeMap<String, PodSeen>>,
    warning: Option<String>,
}

impl RolloutClient {
    /// Follows a restart; nothing is sent before [`Follow::changed`] is awaited.
    pub fn follow(&self, found: &Found) -> Follow {
        let api = self.api(&found.resource, found.namespace.as_deref());
        let name = Selection::fields(format!("metadata.name={}", found.object.name_any()));
        let pods = match &found.namespace {
            Some(namespace) => Api::namespaced(self.client(), namespace),
            None => Api::all(self.client()),
        };
        // One person looks: pauses need no spreading.
        let pauses = || 0.5;
        let selected = pod_labels(&found.object)
            .map(|labels| watch(Full(pods), Selection::labels(labels), pauses).boxed());
        Follow {
            found: found.clone(),
            client: self.client(),
            objects: watch(Full(api), name, pauses).boxed(),
            // What selects nothing has no pods that could be found.
            known: selected.is_none().then(BTreeMap::new),
            pods: selected.unwrap_or_else(|| futures::stream::pending().boxed()),
            object: None,
            warning: None,
        }
    }
}

impl Follow {
    /// Waits for the next change, or for trouble, which passes by itself. Losing the future loses
    /// nothing.
    pub async fn changed(&mut self) -> Result<(), Error> {
        tokio::select! {
            biased;
            Some(event) = self.objects.next() => self.take_object(event),
            Some(event) = self.pods.next() => self.take_pod(event),
        }
    }

    /// What was last seen; `None` until the lists have come.
    pub fn seen(&self) -> Option<Seen> {
        let (object, pods) = (self.object.as_ref()?, self.known.as_ref()?);
        let kind = kind_of(&self.found.resource);
        let object = object
            .as_ref()
            .map(|object| object_seen(&self.found.name, kind, object));
        Some(Seen {
            object,
            uid: self.found.seen.uid.clone(),
            pods: pods.values().cloned().collect(),
            warning: self.warning.clone(),
        })
    }

    /// Reads the last Warning about the object itself: where pods cannot even be made (a quota, an
    /// admission webhook) StatefulSets and DaemonSets say so in Events only. One list; it is read when
    /// a reason is needed, and its failure is no news.
    pub async fn read_warning(&mut self) {
        let uid = &self.found.seen.uid;
        let about = ListParams::default().fields(&format!("involvedObject.uid={uid},type=Warning"));
        let namespace = self.found.namespace.as_deref().unwrap_or("default");
        let events: Api<Said> = Api::namespaced(self.client.clone(), namespace);
        let Ok(events) = ask(events.list(&about)).await else {
            return;
        };
        let last = events.items.into_iter().max_by_key(|event| {
            let time = event.last_timestamp.as_ref().map(|time| time.0);
            time.or_else(|| event.event_time.as_ref().map(|time| time.0))
        });
        self.warning = last.map(|event| {
            let reason = event.reason.as_deref().unwrap_or("Warning");
            said(reason, event.message.as_deref())
        });
    }

    fn take_object(&mut self, event: Event<DynamicObject>) -> Result<(), Error> {
        match event {
            Event::Restarted(objects) => self.object = Some(objects.into_iter().next()),
            Event::Applied(object) => self.object = Some(Some(object)),
            Event::Deleted(_) => self.object = Some(None),
            Event::Trouble(error) => return Err(error),
        }
        Ok(())
    }

    fn take_pod(&mut self, event: Event<Pod>) -> Result<(), Error> {
        let entry = |pod: &Pod| (pod.name_any(), pod_seen(pod));
        match event {
            Event::Restarted(pods) => self.known = Some(pods.iter().map(entry).collect()),
            Event::Applied(pod) => self.known.get_or_insert_default().extend([entry(&pod)]),
            Event::Deleted(pod) => {
                self.known.get_or_insert_default().remove(&pod.name_any());
            }
            Event::Trouble(error) => return Err(error),
        }
        Ok(())
    }
}
