//! Writes of Machines: the need taken away, conditions, and the Machine handed back.

use dogwatch_api::annotation::EXTERNAL_REMEDIATION;
use dogwatch_api::condition::OWNER_REMEDIATED;
use dogwatch_core::condition::{Observation, Status, Write};
use dogwatch_core::remedy::{Machine, MachineApi};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch};
use serde_json::json;

use super::{Form, Right, WriteError};
use crate::error::ask;
use crate::remedy::client::{RemedyClient, annotating, params, precondition, send, stand};
use crate::remedy::machine::machine as convert;

/// What Cluster API's own controllers give as the reason.
const WAITING: &str = "WaitingForRemediation";

/// Each answers with the Machine as it stands then.
///
/// # Errors
/// [`WriteError`]: only after [`WriteError::Changed`] and [`WriteError::Forbidden`] is it certain that
/// nothing was written.
impl RemedyClient {
    /// Takes the need away. The patch is for the version that was seen: a health check that marks the
    /// Machine again in between makes it fail, so that the new need stays.
    pub async fn remove_machine_need(&self, machine: &Machine) -> Result<Machine, WriteError> {
        let (api, name) = (machine.name.api, &machine.name.object);
        let about = format!("machine {name}");
        let wanted = vec![(EXTERNAL_REMEDIATION.to_owned(), None)];
        let (machines, _) = self.machines(api, &name.namespace).await?;
        let body = annotating(&machine.uid, &machine.resource_version, &wanted);
        let (params, body) = (params(), Patch::Merge(body));
        let call = machines.patch(&name.name, &params, &body);
        let answer = self.sent(api, send(patch(api), &about, call).await)?;
        stand(&answer, &about, &wanted)?;
        Ok(convert(&answer, api))
    }

    /// Writes conditions, in the form of the version that is served; those of others stay.
    pub async fn write_machine_conditions(
        &self,
        machine: &Machine,
        writes: &[Write],
    ) -> Result<Machine, WriteError> {
        let (api, name) = (machine.name.api, &machine.name.object);
        let about = format!("machine {name}");
        let (machines, version) = self.machines(api, &name.namespace).await?;
        // The list of conditions is written whole: it has to be that of this moment. That it was
        // another when we decided does not matter, for they say what was seen and nothing more.
        let read = ask(machines.get(&name.name)).await;
        let read = read.map_err(|error| get(api).refused(&about, error));
        let object = self.sent(api, read)?;
        if object.uid().as_deref() != Some(&*machine.uid) {
            return Err(WriteError::Changed(about));
        }
        let status = Form::of(api, &version).patch(&object.data["status"], writes);
        let resource_version = object.resource_version().unwrap_or_default();
        let metadata = precondition(&machine.uid, &resource_version);
        let body = Patch::Merge(json!({ "metadata": metadata, "status": status }));
        let params = params();
        let call = machines.patch_status(&name.name, &params, &body);
        let answer = self.sent(api, send(patch_status(api), &about, call).await)?;
        conditions_stand(&answer, &about, writes)?;
        Ok(convert(&answer, api))
    }

    /// Hands the Machine back to its owner, who deletes or makes it anew: `OwnerRemediated` False.
    /// Source: Cluster API. OpenShift has no owner that looks for it; it tells people there.
    pub async fn hand_back(
        &self,
        machine: &Machine,
        message: &str,
        now: Timestamp,
    ) -> Result<Machine, WriteError> {
        let mut standing = machine.conditions.iter();
        let same = standing.find(|it| it.kind == OWNER_REMEDIATED && it.status == "False");
        let write = Write {
            observation: Observation {
                kind: OWNER_REMEDIATED,
                status: Status::False,
                reason: WAITING.to_owned(),
                message: message.to_owned(),
                heartbeat: false,
            },
            last_transition: same.and_then(|it| it.last_transition).unwrap_or(now),
        };
        self.write_machine_conditions(machine, &[write]).await
    }

    /// A Machine that is not found may be one of a version that is not served any more.
    fn sent<T>(&self, api: MachineApi, answer: Result<T, WriteError>) -> Result<T, WriteError> {
        if matches!(answer, Err(WriteError::Changed(_))) {
            self.forget_version(api);
        }
        answer
    }
}

fn conditions_stand(
    answer: &DynamicObject,
    about: &str,
    writes: &[Write],
) -> Result<(), WriteError> {
    let there = answer.data["status"]["conditions"].as_array();
    let stands = |write: &&Write| {
        let wanted = &write.observation;
        there.into_iter().flatten().any(|there| {
            there["type"] == *wanted.kind
                && there["status"] == *wanted.status.as_str()
                && there["reason"] == *wanted.reason
        })
    };
    match writes.iter().find(|write| !stands(write)) {
        None => Ok(()),
        Some(write) => {
            let kind = write.observation.kind;
            Err(WriteError::Dropped(format!("condition {kind} of {about}")))
        }
    }
}

fn get(api: MachineApi) -> Right {
    Right::new("get", resource(api))
}

fn patch(api: MachineApi) -> Right {
    Right::new("patch", resource(api))
}

fn patch_status(api: MachineApi) -> Right {
    let resource = match api {
        MachineApi::OpenShift => "machines/status.machine.openshift.io",
        MachineApi::ClusterApi => "machines/status.cluster.x-k8s.io",
    };
    Right::new("patch", resource)
}

fn resource(api: MachineApi) -> &'static str {
    match api {
        MachineApi::OpenShift => "machines.machine.openshift.io",
        MachineApi::ClusterApi => "machines.cluster.x-k8s.io",
    }
}
