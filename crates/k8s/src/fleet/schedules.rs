//! Reads RebootSchedules for people's commands.

use std::collections::BTreeMap;

use dogwatch_core::schedule::{Schedule, ScheduleName};
use kube::Api;
use kube::api::ListParams;

use super::{FleetClient, OPTIONAL_KIND_RECHECK};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::informer::{KindInformer, KindRecheck, fixed_jitter};
use crate::schedule::{ScheduleObject, convert_schedule, schedule_entry};
use crate::watch::{FullObjects, ObjectSelection};

#[derive(Debug, Clone, PartialEq)]
pub enum SchedulesFound {
    /// Sorted by namespace and name.
    Schedules(Vec<Schedule>),
    /// The kind RebootSchedule is not installed.
    NoKind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleFound {
    There(Box<Schedule>),
    NoSchedule,
    /// The kind RebootSchedule is not installed.
    NoKind,
}

impl FleetClient {
    /// The schedules of a namespace; `None`: of all namespaces.
    pub async fn list_schedules(&self, namespace: Option<&str>) -> Result<SchedulesFound, Error> {
        let listed = with_timeout(self.schedule_api(namespace).list(&ListParams::default())).await;
        match listed {
            Ok(list) => {
                let schedules = list.items.iter();
                let schedules = schedules.map(|object| convert_schedule(object, &self.namespace));
                let mut schedules: Vec<Schedule> = schedules.collect();
                schedules.sort_by(|one, other| one.name.cmp(&other.name));
                Ok(SchedulesFound::Schedules(schedules))
            }
            // Only a missing kind makes a list fail with 404: the list of a missing namespace is
            // empty.
            Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(SchedulesFound::NoKind),
            Err(error) => Err(error),
        }
    }

    /// Reads one schedule from the API server.
    pub async fn read_schedule(&self, name: &ScheduleName) -> Result<ScheduleFound, Error> {
        let api = self.schedule_api(Some(&name.namespace));
        match with_timeout(api.get(&name.name)).await {
            Ok(object) => {
                let schedule = convert_schedule(&object, &self.namespace);
                Ok(ScheduleFound::There(Box::new(schedule)))
            }
            Err(error) if error.kind() == ApiErrorKind::NotFound => {
                Ok(Self::schedule_not_found(&api).await)
            }
            Err(error) => Err(error),
        }
    }

    /// A missing schedule and a missing kind both answer 404; only a list tells them apart. If the
    /// caller may read one schedule but not list them, "no such schedule" is the best answer.
    async fn schedule_not_found(api: &Api<ScheduleObject>) -> ScheduleFound {
        match with_timeout(api.list_metadata(&ListParams::default().limit(1))).await {
            Err(error) if error.kind() == ApiErrorKind::NotFound => ScheduleFound::NoKind,
            Err(_) | Ok(_) => ScheduleFound::NoSchedule,
        }
    }

    /// Watches the schedules of a namespace (`None`: of all namespaces). Sends nothing before
    /// [`FleetSchedulesWatch::wait_for_change`] is awaited.
    pub fn watch_schedules(&self, namespace: Option<&str>) -> FleetSchedulesWatch {
        self.open_schedules_watch(namespace, KindRecheck::AlwaysServed)
    }

    /// Watches the schedules of all namespaces. A cluster without the kind has no schedules.
    pub fn watch_schedules_if_installed(&self) -> FleetSchedulesWatch {
        self.open_schedules_watch(None, OPTIONAL_KIND_RECHECK)
    }

    fn open_schedules_watch(
        &self,
        namespace: Option<&str>,
        recheck: KindRecheck,
    ) -> FleetSchedulesWatch {
        let home = self.namespace.clone();
        FleetSchedulesWatch {
            informer: KindInformer::new(
                FullObjects(self.schedule_api(namespace)),
                ObjectSelection::default(),
                recheck,
                &fixed_jitter(),
                move |object: &ScheduleObject| Some(schedule_entry(object, &home)),
            ),
            schedules: BTreeMap::new(),
        }
    }

    fn schedule_api(&self, namespace: Option<&str>) -> Api<ScheduleObject> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}

pub struct FleetSchedulesWatch {
    informer: KindInformer<ScheduleName, Schedule>,
    schedules: BTreeMap<ScheduleName, Schedule>,
}

impl FleetSchedulesWatch {
    /// Whether the watch has not failed since it was last answered.
    pub fn is_connected(&self) -> bool {
        self.informer.is_connected()
    }

    /// Waits for the next change or failure.
    ///
    /// # Errors
    /// A temporary failure of the watch: await the next change.
    pub async fn wait_for_change(&mut self) -> Result<(), Error> {
        let event = self.informer.next_event().await;
        event.apply_to(&mut self.schedules).map_or(Ok(()), Err)
    }

    /// `None` until the list has arrived.
    pub fn current_schedules(&self) -> Option<&BTreeMap<ScheduleName, Schedule>> {
        self.informer.is_synced().then_some(&self.schedules)
    }
}
