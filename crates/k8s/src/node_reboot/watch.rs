//! Watches the NodeReboots.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::node_reboot::ObservedNodeReboot;
use futures::FutureExt as _;
use kube::{Api, Client};

use super::{NodeRebootObject, convert_node_reboot};
use crate::informer::{InformerEvent, JitterFunction, KindInformer, KindRecheck};
use crate::watch::{FullObjects, ObjectSelection};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeRebootView {
    /// By name.
    pub reboots: BTreeMap<String, Arc<ObservedNodeReboot>>,
    /// A list has arrived, or the kind is not installed or may not be read. Before that, a
    /// NodeReboot that is missing here may still exist.
    pub synced: bool,
    /// Why they cannot be watched at the moment. The watch is retried.
    pub error: Option<String>,
}

/// Keeps a [`NodeRebootView`] up to date.
pub struct NodeRebootWatch {
    informer: KindInformer<String, Arc<ObservedNodeReboot>>,
    seen: NodeRebootView,
}

impl NodeRebootWatch {
    /// Sends nothing before [`Self::wait_for_change`] is awaited. `jitter` returns a number in 0..1
    /// for each pause.
    pub fn new(client: Client, jitter: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        let jitter: JitterFunction = Arc::new(jitter);
        let entry = |object: &NodeRebootObject| {
            let reboot = convert_node_reboot(object);
            Some((reboot.name.clone(), Arc::new(reboot)))
        };
        Self {
            informer: KindInformer::new(
                FullObjects(Api::<NodeRebootObject>::all(client)),
                ObjectSelection::default(),
                KindRecheck::WatchPauses,
                &jitter,
                entry,
            ),
            seen: NodeRebootView::default(),
        }
    }

    pub fn current_view(&self) -> &NodeRebootView {
        &self.seen
    }

    /// Waits for the next change, and applies all other changes that have arrived. Cancel-safe.
    pub async fn wait_for_change(&mut self) {
        let event = self.informer.next_event().await;
        self.apply_event(event);
        while let Some(event) = self.informer.next_event().now_or_never() {
            self.apply_event(event);
        }
    }

    fn apply_event(&mut self, event: InformerEvent<String, Arc<ObservedNodeReboot>>) {
        let error = event.apply_to(&mut self.seen.reboots);
        self.seen.error = error.map(|error| error.error_chain());
        self.seen.synced = self.informer.is_synced();
    }
}
