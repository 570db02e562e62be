//! Watches the schedules.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::schedule::{Schedule, ScheduleName};
use futures::FutureExt as _;
use kube::{Api, Client};

use super::{ScheduleObject, convert_schedule};
use crate::informer::{InformerEvent, JitterFunction, KindInformer, KindRecheck};
use crate::watch::{FullObjects, ObjectSelection};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScheduleWatchView {
    pub schedules: BTreeMap<ScheduleName, Schedule>,
    /// A list has arrived, or the kind is not installed or may not be read. Before that, a schedule
    /// that is missing here may still exist.
    pub synced: bool,
    /// Why the schedules cannot be watched at the moment. The watch is retried.
    pub error: Option<String>,
}

/// Keeps a [`ScheduleWatchView`] up to date.
pub struct ScheduleWatch {
    informer: KindInformer<ScheduleName, Schedule>,
    seen: ScheduleWatchView,
}

impl ScheduleWatch {
    /// Watches all namespaces of the cluster; Dogwatch runs in `home`. Sends nothing before
    /// [`Self::wait_for_change`] is awaited. `jitter` returns a number in 0..1 for each pause.
    pub fn new(
        client: Client,
        home: impl Into<String>,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        let (home, jitter): (String, JitterFunction) = (home.into(), Arc::new(jitter));
        let entry = move |object: &ScheduleObject| Some(schedule_entry(object, &home));
        Self {
            informer: KindInformer::new(
                FullObjects(Api::<ScheduleObject>::all(client)),
                ObjectSelection::default(),
                KindRecheck::WatchPauses,
                &jitter,
                entry,
            ),
            seen: ScheduleWatchView::default(),
        }
    }

    pub fn current_view(&self) -> &ScheduleWatchView {
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

    fn apply_event(&mut self, event: InformerEvent<ScheduleName, Schedule>) {
        let error = event.apply_to(&mut self.seen.schedules);
        self.seen.error = error.map(|error| error.error_chain());
        self.seen.synced = self.informer.is_synced();
    }
}

pub(crate) fn schedule_entry(object: &ScheduleObject, home: &str) -> (ScheduleName, Schedule) {
    let schedule = convert_schedule(object, home);
    (schedule.name.clone(), schedule)
}
