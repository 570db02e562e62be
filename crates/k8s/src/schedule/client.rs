//! The hand that reads targets, asks them, and writes down what came of it.

use std::time::Duration;

use dogwatch_api::{CONTROLLER, annotation};
use dogwatch_core::Now;
use dogwatch_core::condition::Observation;
use dogwatch_core::decision::Event;
use dogwatch_core::schedule::{
    Ask, Carried, Claim, Kind, Object, Plan, Schedule, ScheduleName, Status, TargetsSeen,
};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use super::status::body;
use super::target::{claim, of_host, of_node};
use super::{ScheduleObject, convert, pages};
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
        Ok(all.items.iter().map(of_node).collect())
    }

    /// Those of the namespace, each with what hosts of all namespaces say of the Node that it carries.
    async fn all_hosts(&self, namespace: &str) -> Result<Vec<Object>, String> {
        let all = pages::of(&self.hosts(namespace), of_host).await;
        let mut all = all.map_err(|error| match error.kind() {
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
        if all.iter().all(|host| host.carries.is_none()) {
            return Ok(all);
        }
        let claims = self.claims().await?;
        for host in &mut all {
            let own = claims.iter().find(|claim| claim.uid == host.uid);
            let older = own.and_then(|own| own.older(&claims));
            if let (Some(Carried { older_claim, .. }), Some(older)) = (&mut host.carries, older) {
                *older_claim = Some(older.to_string());
            }
        }
        Ok(all)
    }

    /// Which hosts name a Node, in all namespaces.
    async fn claims(&self) -> Result<Vec<Claim>, String> {
        let hosts: Api<HostObject> = Api::all(self.client.clone());
        let claims = pages::of_metadata(&hosts, claim).await;
        let claims = claims.map_err(|error| {
            format!(
                "the BareMetalHosts of all namespaces cannot be listed, so that it is not known which one \
                 carries a Node: {}",
                error.in_words()
            )
        })?;
        Ok(claims.into_iter().flatten().collect())
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
                of_node(&node)
            }
            Kind::Host => {
                let hosts = self.hosts(&schedule.namespace);
                of_host(&ask(hosts.patch(name, &params, &patch)).await?)
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
