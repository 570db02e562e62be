//! The hand that reads targets, asks them, and writes down what came of it.

use std::time::Duration;

use dogwatch_api::{CONTROLLER, annotation};
use dogwatch_core::Now;
use dogwatch_core::condition::Observation;
use dogwatch_core::decision::Event;
use dogwatch_core::reboot::Parsed;
use dogwatch_core::schedule::{
    Ask, Kind, Object, Plan, Schedule, ScheduleName, Status, TargetsSeen,
};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::{Value, json};

use super::status::body;
use super::{ScheduleObject, convert};
use crate::error::{self, Error, ask};
use crate::event::{Name, Said};
use crate::host::HostObject;
use crate::manager::patched_by;

/// Asks with this client, for a Dogwatch that lives in one namespace.
#[derive(Clone)]
pub struct ScheduleClient {
    client: Client,
    home: String,
}

impl ScheduleClient {
    /// For the cluster behind `client`, whose Dogwatch lives in `home`.
    pub fn new(client: Client, home: impl Into<String>) -> Self {
        Self {
            client,
            home: home.into(),
        }
    }

    /// Whom the plan may choose from, read now; `taken` is when. What cannot be read is said in its
    /// place.
    pub async fn targets(
        &self,
        plan: &Plan,
        schedule: &ScheduleName,
        taken: Duration,
    ) -> TargetsSeen {
        let hosts = match &plan.hosts {
            Some(_) => self.all_hosts(&schedule.namespace).await,
            None => Ok(Vec::new()),
        };
        let carried = hosts.iter().flatten().any(|host| host.carries.is_some());
        let nodes = if plan.nodes.is_some() || carried {
            self.all_nodes().await
        } else {
            Ok(Vec::new())
        };
        TargetsSeen {
            nodes,
            hosts,
            taken,
        }
    }

    async fn all_nodes(&self) -> Result<Vec<Object>, String> {
        let all = ask(self.nodes().list_metadata(&ListParams::default())).await;
        let all = all.map_err(|error| format!("Nodes cannot be listed: {}", error.in_words()))?;
        Ok(all
            .items
            .iter()
            .map(|node| seen(Kind::Node, node))
            .collect())
    }

    async fn all_hosts(&self, namespace: &str) -> Result<Vec<Object>, String> {
        let all = ask(self.hosts(namespace).list_metadata(&ListParams::default())).await;
        let all = all.map_err(|error| match error.kind() {
            error::Kind::NotFound => "there are no BareMetalHosts in this cluster".to_owned(),
            error::Kind::AlreadyExists
            | error::Kind::Conflict
            | error::Kind::Gone
            | error::Kind::Forbidden
            | error::Kind::Throttled { .. }
            | error::Kind::Refused
            | error::Kind::Transient => {
                format!("BareMetalHosts cannot be listed: {}", error.in_words())
            }
        })?;
        Ok(all
            .items
            .iter()
            .map(|host| seen(Kind::Host, host))
            .collect())
    }

    /// Asks one target, and marks it as asked, in one patch. How it stands then.
    ///
    /// # Errors
    /// [`Kind::Conflict`](error::Kind::Conflict) where it has changed, or is another one of that name.
    pub async fn ask(&self, schedule: &ScheduleName, wanted: &Ask) -> Result<Object, Error> {
        let patch = Patch::Merge(asking(wanted));
        let name = &wanted.target.name;
        let params = params();
        Ok(match wanted.target.kind {
            Kind::Node => {
                let nodes = self.nodes();
                let node = ask(nodes.patch_metadata(name, &params, &patch)).await?;
                seen(Kind::Node, &node)
            }
            Kind::Host => {
                let hosts = self.hosts(&schedule.namespace);
                let host = ask(hosts.patch_metadata(name, &params, &patch)).await?;
                seen(Kind::Host, &host)
            }
        })
    }

    /// Writes a schedule's status, on the condition that the schedule is as it was seen. Its answer
    /// says that it still is.
    ///
    /// # Errors
    /// [`Kind::Conflict`](error::Kind::Conflict) where it has changed,
    /// [`Kind::NotFound`](error::Kind::NotFound) where it is gone.
    pub async fn write_status(
        &self,
        schedule: &Schedule,
        status: &Status,
        conditions: &[Observation],
        now: Now,
    ) -> Result<Schedule, Error> {
        let schedules: Api<ScheduleObject> =
            Api::namespaced(self.client.clone(), &schedule.name.namespace);
        let body = Patch::Merge(body(schedule, status, conditions, now.wall));
        let name = &schedule.name.name;
        let answer = ask(schedules.patch_status(name, &params(), &body)).await?;
        Ok(convert(&answer, &self.home))
    }

    /// Says it about the schedule, unless it was said before.
    pub async fn say(&self, schedule: &Schedule, event: &Event, now: Now) -> Result<(), Error> {
        let ScheduleName { namespace, name } = &schedule.name;
        let said = Said {
            namespace,
            name: Name::of(name, &schedule.uid, "", event),
            about: json!({
                "kind": ScheduleObject::kind(&()), "apiVersion": ScheduleObject::api_version(&()),
                "name": name, "namespace": namespace, "uid": schedule.uid,
            }),
            component: CONTROLLER,
            host: None,
            event,
        };
        said.say(&self.client, now).await
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn hosts(&self, namespace: &str) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn params() -> PatchParams {
    patched_by(CONTROLLER)
}

/// The request and the mark.
pub(super) fn asking(wanted: &Ask) -> Value {
    let marks = serde_json::to_string(&wanted.marks).expect("texts and times serialise");
    let mut annotations = json!({ annotation::SCHEDULED: marks });
    if let Some((key, value)) = &wanted.request {
        annotations[*key] = value.clone().into();
    }
    json!({ "metadata": {
        "uid": wanted.uid,
        "resourceVersion": wanted.resource_version,
        "annotations": annotations,
    }})
}

fn seen<K>(kind: Kind, object: &kube::api::PartialObjectMeta<K>) -> Object
where
    kube::api::PartialObjectMeta<K>: kube::ResourceExt,
{
    let annotations = object.annotations();
    let (request, carries) = match kind {
        Kind::Node => (annotation::REBOOT_REQUESTED, None),
        Kind::Host => (annotation::METAL3_REBOOT, annotations.get(annotation::NODE)),
    };
    let marks = annotations.get(annotation::SCHEDULED);
    Object {
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        labels: object.labels().clone(),
        marks: Parsed::read(marks.map(String::as_str)),
        is_asked: annotations.contains_key(request),
        carries: carries.cloned(),
    }
}
