//! Watches one restart: the object, and the pods that it selects.

use std::collections::BTreeMap;

use dogwatch_core::rollout::{ObservedRolloutPod, RolloutSnapshot};
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::{Event as Said, Pod};
use kube::api::{Api, ListParams};
use kube::core::DynamicObject;
use kube::{Client, ResourceExt as _};

use super::restart::{RolloutClient, RolloutTarget, kind_of_resource};
use super::view::{join_reason, observed_object, observed_pod, pod_selector};
use crate::Error;
use crate::error::with_timeout;
use crate::informer::{InformerEvent, KindInformer, KindRecheck, fixed_jitter};
use crate::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};

#[expect(
    clippy::option_option,
    reason = "not looked at yet, seen to be gone, or there"
)]
pub struct RolloutWatch {
    found: RolloutTarget,
    client: Client,
    objects: BoxStream<'static, ObjectEvent<DynamicObject>>,
    /// Without a selector, no pods can be found.
    pod_informer: Option<KindInformer<String, ObservedRolloutPod>>,
    object: Option<Option<DynamicObject>>,
    pods: BTreeMap<String, ObservedRolloutPod>,
    warning: Option<String>,
}

impl RolloutClient {
    /// Sends nothing before [`RolloutWatch::wait_for_change`] is awaited.
    pub fn watch_restart(&self, found: &RolloutTarget) -> RolloutWatch {
        let api = self.object_api(&found.resource, found.namespace.as_deref());
        let name = ObjectSelection::by_fields(format!("metadata.name={}", found.object.name_any()));
        let pods = match &found.namespace {
            Some(namespace) => Api::namespaced(self.kube_client(), namespace),
            None => Api::all(self.kube_client()),
        };
        let pod_informer = pod_selector(&found.object).map(|labels| {
            KindInformer::new(
                FullObjects(pods),
                ObjectSelection::by_labels(labels),
                KindRecheck::AlwaysServed,
                &fixed_jitter(),
                |pod: &Pod| Some((pod.name_any(), observed_pod(pod))),
            )
        });
        RolloutWatch {
            found: found.clone(),
            client: self.kube_client(),
            objects: list_and_watch(FullObjects(api), name, || 0.5).boxed(),
            pod_informer,
            pods: BTreeMap::new(),
            object: None,
            warning: None,
        }
    }
}

impl RolloutWatch {
    /// Waits for the next change, or returns a temporary failure of the watch. Cancel-safe.
    pub async fn wait_for_change(&mut self) -> Result<(), Error> {
        tokio::select! {
            biased;
            Some(event) = self.objects.next() => self.apply_object_event(event),
            event = next_pod_event(&mut self.pod_informer) => {
                event.apply_to(&mut self.pods).map_or(Ok(()), Err)
            }
        }
    }

    /// `None` until the lists have arrived.
    pub fn current_snapshot(&self) -> Option<RolloutSnapshot> {
        let object = self.object.as_ref()?;
        if self
            .pod_informer
            .as_ref()
            .is_some_and(|pods| !pods.is_synced())
        {
            return None;
        }
        let kind = kind_of_resource(&self.found.resource);
        let object = object
            .as_ref()
            .map(|object| observed_object(&self.found.name, kind, object));
        Some(RolloutSnapshot {
            object,
            uid: self.found.seen.uid.clone(),
            pods: self.pods.values().cloned().collect(),
            warning: self.warning.clone(),
        })
    }

    /// Reads the last Warning about the object itself: if pods cannot even be created (a quota, an
    /// admission webhook), StatefulSets and DaemonSets report it in Events only. One list, read
    /// when a reason is needed; its failure is ignored.
    pub async fn read_warning(&mut self) {
        let uid = &self.found.seen.uid;
        let about = ListParams::default().fields(&format!("involvedObject.uid={uid},type=Warning"));
        let namespace = self.found.namespace.as_deref().unwrap_or("default");
        let events: Api<Said> = Api::namespaced(self.client.clone(), namespace);
        let Ok(events) = with_timeout(events.list(&about)).await else {
            return;
        };
        let last = events.items.into_iter().max_by_key(|event| {
            let time = event.last_timestamp.as_ref().map(|time| time.0);
            time.or_else(|| event.event_time.as_ref().map(|time| time.0))
        });
        self.warning = last.map(|event| {
            let reason = event.reason.as_deref().unwrap_or("Warning");
            join_reason(reason, event.message.as_deref())
        });
    }

    fn apply_object_event(&mut self, event: ObjectEvent<DynamicObject>) -> Result<(), Error> {
        match event {
            ObjectEvent::Restarted(objects) => self.object = Some(objects.into_iter().next()),
            ObjectEvent::Applied(object) => self.object = Some(Some(object)),
            ObjectEvent::Deleted(_) => self.object = Some(None),
            ObjectEvent::Failed(error) => return Err(error),
        }
        Ok(())
    }
}

async fn next_pod_event(
    informer: &mut Option<KindInformer<String, ObservedRolloutPod>>,
) -> InformerEvent<String, ObservedRolloutPod> {
    match informer {
        Some(informer) => informer.next_event().await,
        None => std::future::pending().await,
    }
}
