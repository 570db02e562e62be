//! Watches the schedules.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::schedule::{Schedule, ScheduleName};
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use kube::{Api, Client};

use super::{ScheduleObject, convert_schedule};
use crate::error::{ApiErrorKind, Error};
use crate::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};

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
    client: Client,
    home: String,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    events: BoxStream<'static, ObjectEvent<ScheduleObject>>,
    /// A list has arrived since the watch was started.
    is_open: bool,
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
        let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
        Self {
            events: watch_schedule_objects(&client, &jitter),
            client,
            home: home.into(),
            jitter,
            is_open: false,
            seen: ScheduleWatchView::default(),
        }
    }

    pub fn current_view(&self) -> &ScheduleWatchView {
        &self.seen
    }

    /// Waits for the next change, and applies all other changes that have arrived. Cancel-safe.
    pub async fn wait_for_change(&mut self) {
        const WATCH_NEVER_ENDS: &str = "a watch has no end";
        let event = self.events.next().await.expect(WATCH_NEVER_ENDS);
        self.apply_event(event);
        while let Some(event) = self.events.next().now_or_never() {
            self.apply_event(event.expect(WATCH_NEVER_ENDS));
        }
    }

    fn apply_event(&mut self, event: ObjectEvent<ScheduleObject>) {
        let schedules = &mut self.seen.schedules;
        let entry = |object: &ScheduleObject| {
            let schedule = convert_schedule(object, &self.home);
            (schedule.name.clone(), schedule)
        };
        match event {
            ObjectEvent::Restarted(all) => {
                *schedules = all.iter().map(entry).collect();
                self.is_open = true;
                self.seen.synced = true;
            }
            ObjectEvent::Applied(object) => schedules.extend([entry(&object)]),
            ObjectEvent::Deleted(object) => {
                schedules.remove(&entry(&object).0);
            }
            ObjectEvent::Failed(error) => return self.handle_error(&error),
        }
        self.seen.error = None;
    }

    /// A kind that is not installed or may not be read gives no schedules. If a list had arrived,
    /// the watch restarts: once permitted again, the old one would not repeat the existing objects.
    fn handle_error(&mut self, error: &Error) {
        self.seen.error = Some(error.error_chain());
        let is_shut = matches!(
            error.kind(),
            ApiErrorKind::NotFound | ApiErrorKind::Forbidden
        );
        if !is_shut {
            return;
        }
        if std::mem::take(&mut self.is_open) {
            self.events = watch_schedule_objects(&self.client, &self.jitter);
            return;
        }
        self.seen.schedules.clear();
        self.seen.synced = true;
        if error.kind() == ApiErrorKind::NotFound {
            self.seen.error = None;
        }
    }
}

fn watch_schedule_objects(
    client: &Client,
    jitter: &Arc<dyn Fn() -> f64 + Send + Sync>,
) -> BoxStream<'static, ObjectEvent<ScheduleObject>> {
    let jitter = Arc::clone(jitter);
    let all: Api<ScheduleObject> = Api::all(client.clone());
    list_and_watch(FullObjects(all), ObjectSelection::default(), move || {
        jitter()
    })
    .boxed()
}
