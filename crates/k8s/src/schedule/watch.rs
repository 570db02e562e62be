//! The schedules kept in sight.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::schedule::{Schedule, ScheduleName};
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use kube::{Api, Client};

use super::{ScheduleObject, convert};
use crate::error::{Error, Kind};
use crate::watch::{Event, Full, Selection, watch};

/// The schedules as last seen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SchedulesSeen {
    /// All of them.
    pub schedules: BTreeMap<ScheduleName, Schedule>,
    /// A list has come, or it is known that the kind is not installed or may not be read: before that
    /// nothing may be concluded from what is not here.
    pub synced: bool,
    /// Why nothing newer can be seen for the moment, in words; it passes by itself.
    pub trouble: Option<String>,
}

/// Keeps [`SchedulesSeen`] up to date.
pub struct ScheduleWatch {
    client: Client,
    home: String,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    events: BoxStream<'static, Event<ScheduleObject>>,
    /// A list has come since the watch was begun.
    is_open: bool,
    seen: SchedulesSeen,
}

impl ScheduleWatch {
    /// Watches all namespaces of the cluster whose Dogwatch lives in `home`; nothing is sent before
    /// [`Self::changed`] is awaited. `jitter` gives a number in 0..1 for each pause.
    pub fn new(
        client: Client,
        home: impl Into<String>,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
        Self {
            events: events(&client, &jitter),
            client,
            home: home.into(),
            jitter,
            is_open: false,
            seen: SchedulesSeen::default(),
        }
    }

    /// What is seen now.
    pub fn seen(&self) -> &SchedulesSeen {
        &self.seen
    }

    /// Waits for the next change, and takes with it whatever else has arrived. Losing the future
    /// loses nothing.
    pub async fn changed(&mut self) {
        const NEVER: &str = "a watch has no end";
        let event = self.events.next().await.expect(NEVER);
        self.take(event);
        while let Some(event) = self.events.next().now_or_never() {
            self.take(event.expect(NEVER));
        }
    }

    fn take(&mut self, event: Event<ScheduleObject>) {
        let schedules = &mut self.seen.schedules;
        let entry = |object: &ScheduleObject| {
            let schedule = convert(object, &self.home);
            (schedule.name.clone(), schedule)
        };
        match event {
            Event::Restarted(all) => {
                *schedules = all.iter().map(entry).collect();
                self.is_open = true;
                self.seen.synced = true;
            }
            Event::Applied(object) => schedules.extend([entry(&object)]),
            Event::Deleted(object) => {
                schedules.remove(&entry(&object).0);
            }
            Event::Trouble(error) => return self.trouble(&error),
        }
        self.seen.trouble = None;
    }

    /// Not installed, or not to be read: there are none for us. After a list had come it begins
    /// anew, for a watch that is let in again would not repeat what stands.
    fn trouble(&mut self, error: &Error) {
        self.seen.trouble = Some(error.in_words());
        let is_shut = matches!(error.kind(), Kind::NotFound | Kind::Forbidden);
        if !is_shut {
            return;
        }
        if std::mem::take(&mut self.is_open) {
            self.events = events(&self.client, &self.jitter);
            return;
        }
        self.seen.schedules.clear();
        self.seen.synced = true;
        if error.kind() == Kind::NotFound {
            self.seen.trouble = None;
        }
    }
}

fn events(
    client: &Client,
    jitter: &Arc<dyn Fn() -> f64 + Send + Sync>,
) -> BoxStream<'static, Event<ScheduleObject>> {
    let jitter = Arc::clone(jitter);
    let all: Api<ScheduleObject> = Api::all(client.clone());
    watch(Full(all), Selection::default(), move || jitter()).boxed()
}
