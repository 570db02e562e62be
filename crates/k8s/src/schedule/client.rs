//! Reads the targets of schedules, requests their reboots, and writes the schedules' status.

use std::time::Duration;

use dogwatch_api::{CONTROLLER, annotation};
use dogwatch_core::Now;
use dogwatch_core::condition::DesiredCondition;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::schedule::{
    CarriedNode, HostNodeClaim, ObservedTargets, RebootRequestPatch, Schedule, ScheduleName,
    SchedulePlan, ScheduleStatus, ScheduleTargetKind, TargetObject,
};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use super::status::status_patch;
use super::target::{claim_of_host, target_of_host, target_of_node};
use super::{ScheduleObject, convert_schedule, pages};
use crate::error::{self, Error, with_timeout};
use crate::event::{EventDraft, EventName};
use crate::field_manager::patch_params_for;
use crate::host::HostObject;
use crate::readable_dates::ReadableApi as _;
use crate::status_write::{StatusWriteError, check_kept_status};

#[derive(Clone)]
pub struct ScheduleClient {
    pub(super) client: Client,
    home: String,
}

impl ScheduleClient {
    /// `home`: the namespace where Dogwatch runs.
    pub fn new(client: Client, home: impl Into<String>) -> Self {
        Self {
            client,
            home: home.into(),
        }
    }

    /// The targets that the schedule may choose from; `taken`: the time of the read. A part that
    /// cannot be read contains the error instead.
    pub async fn read_targets(
        &self,
        plan: &SchedulePlan,
        schedule: &ScheduleName,
        taken: Duration,
    ) -> ObservedTargets {
        let hosts = match &plan.hosts {
            Some(_) => self.list_hosts(&schedule.namespace).await,
            None => Ok(Vec::new()),
        };
        let carried = hosts.iter().flatten().any(|host| host.carries.is_some());
        let nodes = if plan.nodes.is_some() || carried {
            self.list_nodes().await
        } else {
            Ok(Vec::new())
        };
        ObservedTargets {
            nodes,
            hosts,
            taken,
        }
    }

    async fn list_nodes(&self) -> Result<Vec<TargetObject>, String> {
        let all = with_timeout(
            self.node_api()
                .list_readable_metadata(&ListParams::default()),
        )
        .await;
        let all =
            all.map_err(|error| format!("Nodes cannot be listed: {}", error.error_chain()))?;
        Ok(all.items.iter().map(target_of_node).collect())
    }

    /// The hosts of the namespace, each with the Node that it carries by the claims of hosts in all
    /// namespaces.
    async fn list_hosts(&self, namespace: &str) -> Result<Vec<TargetObject>, String> {
        let all = pages::list_pages(&self.host_api(namespace), target_of_host).await;
        let mut all = all.map_err(|error| match error.kind() {
            error::ApiErrorKind::NotFound => {
                "there are no BareMetalHosts in this cluster".to_owned()
            }
            error::ApiErrorKind::AlreadyExists
            | error::ApiErrorKind::Conflict
            | error::ApiErrorKind::Gone
            | error::ApiErrorKind::Forbidden
            | error::ApiErrorKind::Throttled { .. }
            | error::ApiErrorKind::Refused
            | error::ApiErrorKind::Transient => {
                format!("BareMetalHosts cannot be listed: {}", error.error_chain())
            }
        })?;
        if all.iter().all(|host| host.carries.is_none()) {
            return Ok(all);
        }
        let claims = self.list_claims().await?;
        for host in &mut all {
            let own = claims.iter().find(|claim| claim.uid == host.uid);
            let older = own.and_then(|own| own.find_older_claim(&claims));
            if let (Some(CarriedNode { older_claim, .. }), Some(older)) = (&mut host.carries, older)
            {
                *older_claim = Some(older.to_string());
            }
        }
        Ok(all)
    }

    /// Which hosts name a Node, in all namespaces.
    async fn list_claims(&self) -> Result<Vec<HostNodeClaim>, String> {
        let hosts: Api<HostObject> = Api::all(self.client.clone());
        let claims = pages::list_metadata_pages(&hosts, claim_of_host).await;
        let claims = claims.map_err(|error| {
            format!(
                "the BareMetalHosts of all namespaces cannot be listed, so it is unknown which one runs a Node: {}",
                error.error_chain()
            )
        })?;
        Ok(claims.into_iter().flatten().collect())
    }

    /// Writes the request and the mark for one target in one patch. Returns the target as written.
    ///
    /// # Errors
    /// [`ApiErrorKind::Conflict`](error::ApiErrorKind::Conflict) if the target has changed or was
    /// replaced.
    pub async fn request_target(
        &self,
        schedule: &ScheduleName,
        wanted: &RebootRequestPatch,
    ) -> Result<TargetObject, Error> {
        let patch = Patch::Merge(request_patch(wanted));
        let name = &wanted.target.name;
        let params = patch_params();
        Ok(match wanted.target.kind {
            ScheduleTargetKind::Node => {
                let nodes = self.node_api();
                let node = with_timeout(nodes.patch_metadata(name, &params, &patch)).await?;
                target_of_node(&node)
            }
            ScheduleTargetKind::Host => {
                let hosts = self.host_api(&schedule.namespace);
                target_of_host(&with_timeout(hosts.patch(name, &params, &patch)).await?)
            }
        })
    }

    /// Writes a schedule's status, unless the schedule has changed since it was read. Success
    /// proves that it has not.
    ///
    /// # Errors
    /// [`ApiErrorKind::Conflict`](error::ApiErrorKind::Conflict) if it has changed,
    /// [`ApiErrorKind::NotFound`](error::ApiErrorKind::NotFound) if it is gone;
    /// [`StatusWriteError::Pruned`] if not all of the status was kept.
    pub async fn write_status(
        &self,
        schedule: &Schedule,
        status: &ScheduleStatus,
        conditions: &[DesiredCondition],
        now: Now,
    ) -> Result<Schedule, StatusWriteError> {
        let schedules: Api<ScheduleObject> =
            Api::namespaced(self.client.clone(), &schedule.name.namespace);
        let patch = status_patch(schedule, status, conditions, now.wall);
        let (name, body) = (&schedule.name.name, Patch::Merge(&patch));
        let answer = with_timeout(schedules.patch_status(name, &patch_params(), &body)).await?;
        check_kept_status(&patch, &answer.status)?;
        Ok(convert_schedule(&answer, &self.home))
    }

    /// Writes an Event about the schedule, unless it was written before.
    pub async fn write_event(
        &self,
        schedule: &Schedule,
        event: &DecisionEvent,
        now: Now,
    ) -> Result<(), Error> {
        let ScheduleName { namespace, name } = &schedule.name;
        let said = EventDraft {
            namespace,
            name: EventName::of_episode(name, &schedule.uid, "", event),
            involved_object: json!({
                "kind": ScheduleObject::kind(&()), "apiVersion": ScheduleObject::api_version(&()),
                "name": name, "namespace": namespace, "uid": schedule.uid,
            }),
            component: CONTROLLER,
            host: None,
            event,
        };
        said.write_event(&self.client, now).await
    }

    fn node_api(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn host_api(&self, namespace: &str) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn patch_params() -> PatchParams {
    patch_params_for(CONTROLLER)
}

/// The request and the mark.
pub(super) fn request_patch(wanted: &RebootRequestPatch) -> Value {
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
