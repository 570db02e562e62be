//! RebootSchedules, for people.

use std::collections::BTreeMap;

use dogwatch_core::schedule::{Schedule, ScheduleName};
use futures::stream::{BoxStream, StreamExt as _};
use kube::Api;
use kube::api::ListParams;

use super::FleetClient;
use crate::error::{Error, Kind, ask};
use crate::schedule::{ScheduleObject, convert};
use crate::watch::{Event, Full, Selection, watch};

/// What a look for schedules found.
#[derive(Debug, Clone, PartialEq)]
pub enum SchedulesFound {
    /// These, by namespace and name.
    Schedules(Vec<Schedule>),
    /// The kind RebootSchedule is not installed.
    NoKind,
}

/// What a look for one schedule found.
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleFound {
    /// It.
    There(Box<Schedule>),
    /// There is none of that name.
    NoSchedule,
    /// The kind RebootSchedule is not installed.
    NoKind,
}

impl FleetClient {
    /// The schedules of a namespace; of all where none is named.
    pub async fn schedules(&self, namespace: Option<&str>) -> Result<SchedulesFound, Error> {
        let listed = ask(self.schedules_in(namespace).list(&ListParams::default())).await;
        match listed {
            Ok(list) => {
                let schedules = list.items.iter();
                let schedules = schedules.map(|object| convert(object, &self.namespace));
                let mut schedules: Vec<Schedule> = schedules.collect();
                schedules.sort_by(|one, other| one.name.cmp(&other.name));
                Ok(SchedulesFound::Schedules(schedules))
            }
            // A list is answered 404 for a kind only: a namespace that is not there is an empty one.
            Err(error) if error.kind() == Kind::NotFound => Ok(SchedulesFound::NoKind),
            Err(error) => Err(error),
        }
    }

    /// One schedule, read afresh.
    pub async fn schedule(&self, name: &ScheduleName) -> Result<ScheduleFound, Error> {
        let api = self.schedules_in(Some(&name.namespace));
        match ask(api.get(&name.name)).await {
            Ok(object) => {
                let schedule = convert(&object, &self.namespace);
                Ok(ScheduleFound::There(Box::new(schedule)))
            }
            Err(error) if error.kind() == Kind::NotFound => Ok(Self::no_schedule(&api).await),
            Err(error) => Err(error),
        }
    }

    /// No schedule and no such kind are both a 404; only a list tells which. Whoever may read one and
    /// not all is answered by what is known.
    async fn no_schedule(api: &Api<ScheduleObject>) -> ScheduleFound {
        match ask(api.list_metadata(&ListParams::default().limit(1))).await {
            Err(error) if error.kind() == Kind::NotFound => ScheduleFound::NoKind,
            Err(_) | Ok(_) => ScheduleFound::NoSchedule,
        }
    }

    /// Watches the schedules of a namespace, of all where none is named; nothing is sent before
    /// [`FleetSchedulesWatch::changed`] is awaited.
    pub fn watch_schedules(&self, namespace: Option<&str>) -> FleetSchedulesWatch {
        // One person looks: pauses need no spreading.
        let pauses = || 0.5;
        let source = Full(self.schedules_in(namespace));
        FleetSchedulesWatch {
            events: watch(source, Selection::default(), pauses).boxed(),
            home: self.namespace.clone(),
            schedules: None,
        }
    }

    fn schedules_in(&self, namespace: Option<&str>) -> Api<ScheduleObject> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}

/// The schedules as a person's watch shows them.
pub struct FleetSchedulesWatch {
    events: BoxStream<'static, Event<ScheduleObject>>,
    home: String,
    schedules: Option<BTreeMap<ScheduleName, Schedule>>,
}

impl FleetSchedulesWatch {
    /// Waits for the next change, or for trouble, which passes by itself.
    ///
    /// # Errors
    /// That trouble: await the next.
    pub async fn changed(&mut self) -> Result<(), Error> {
        let event = self.events.next().await;
        let entry = |object: &ScheduleObject| {
            let schedule = convert(object, &self.home);
            (schedule.name.clone(), schedule)
        };
        match event.expect("a watch never ends by itself") {
            Event::Restarted(objects) => {
                self.schedules = Some(objects.iter().map(entry).collect());
            }
            Event::Applied(object) => {
                let schedules = self.schedules.get_or_insert_default();
                schedules.extend([entry(&object)]);
            }
            Event::Deleted(object) => {
                let name = entry(&object).0;
                self.schedules.get_or_insert_default().remove(&name);
            }
            Event::Trouble(error) => return Err(error),
        }
        Ok(())
    }

    /// The schedules as last seen; `None` until the list has come.
    pub fn schedules(&self) -> Option<&BTreeMap<ScheduleName, Schedule>> {
        self.schedules.as_ref()
    }
}
