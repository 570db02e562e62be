//! Writes to Machines: removing the mark, conditions, and handing the Machine back.

use dogwatch_api::annotation::EXTERNAL_REMEDIATION;
use dogwatch_api::condition::OWNER_REMEDIATED;
use dogwatch_core::condition::{ConditionStatus, ConditionWrite, DesiredCondition};
use dogwatch_core::remediation::{MachineApi, ObservedMachine};
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch};
use serde_json::json;

use super::{ConditionForm, RemediationWriteError, RequiredRight};
use crate::error::with_timeout;
use crate::remediation::client::{
    RemediationClient, annotation_patch, check_annotations_written, patch_params,
    patch_precondition, send_write,
};
use crate::remediation::machine::parse_machine;

/// The reason that Cluster API's own controllers use.
const WAITING_REASON: &str = "WaitingForRemediation";

/// Each method returns the Machine as written.
///
/// # Errors
/// [`RemediationWriteError`]: only [`RemediationWriteError::Changed`] and
/// [`RemediationWriteError::Forbidden`] guarantee that nothing was written.
impl RemediationClient {
    /// Removes the mark. The patch is for the version that was read: if a health check marks the
    /// Machine again in between, the patch fails and the new mark stays.
    pub async fn remove_machine_need(
        &self,
        machine: &ObservedMachine,
    ) -> Result<ObservedMachine, RemediationWriteError> {
        let (api, name) = (machine.name.api, &machine.name.object);
        let about = format!("machine {name}");
        let wanted = vec![(EXTERNAL_REMEDIATION.to_owned(), None)];
        let (machines, _) = self.machine_api(api, &name.namespace).await?;
        let body = annotation_patch(&machine.uid, &machine.resource_version, &wanted);
        let (params, body) = (patch_params(), Patch::Merge(body));
        let call = machines.patch(&name.name, &params, &body);
        let answer = self.check_version(api, send_write(patch_right(api), &about, call).await)?;
        check_annotations_written(&answer, &about, &wanted)?;
        Ok(parse_machine(&answer, api))
    }

    /// Writes conditions in the form of the served version; those of others stay.
    pub async fn write_machine_conditions(
        &self,
        machine: &ObservedMachine,
        writes: &[ConditionWrite],
    ) -> Result<ObservedMachine, RemediationWriteError> {
        let (api, name) = (machine.name.api, &machine.name.object);
        let about = format!("machine {name}");
        let (machines, version) = self.machine_api(api, &name.namespace).await?;
        // The list of conditions is replaced as a whole, so it has to be read now. It may have
        // changed since the decision: conditions report observations and nothing more.
        let read = with_timeout(machines.get(&name.name)).await;
        let read = read.map_err(|error| get_right(api).classify_error(&about, error));
        let object = self.check_version(api, read)?;
        if object.uid().as_deref() != Some(&*machine.uid) {
            return Err(RemediationWriteError::object_changed(about));
        }
        let status =
            ConditionForm::of_version(api, &version).status_patch(&object.data["status"], writes);
        let resource_version = object.resource_version().unwrap_or_default();
        let metadata = patch_precondition(&machine.uid, &resource_version);
        let body = Patch::Merge(json!({ "metadata": metadata, "status": status }));
        let params = patch_params();
        let call = machines.patch_status(&name.name, &params, &body);
        let answer =
            self.check_version(api, send_write(patch_status_right(api), &about, call).await)?;
        check_conditions_written(&answer, &about, writes)?;
        Ok(parse_machine(&answer, api))
    }

    /// Hands the Machine back to its owner, who deletes or recreates it: `OwnerRemediated` False.
    /// Source: Cluster API. In OpenShift no owner reads the condition; it informs people.
    pub async fn hand_back_machine(
        &self,
        machine: &ObservedMachine,
        message: &str,
        now: Timestamp,
    ) -> Result<ObservedMachine, RemediationWriteError> {
        let mut standing = machine.conditions.iter();
        let same = standing.find(|it| it.kind == OWNER_REMEDIATED && it.status == "False");
        let write = ConditionWrite {
            observation: DesiredCondition {
                kind: OWNER_REMEDIATED,
                status: ConditionStatus::False,
                reason: WAITING_REASON.to_owned(),
                message: message.to_owned(),
                heartbeat: false,
                shows_reason: false,
            },
            last_transition: same.and_then(|it| it.last_transition).unwrap_or(now),
        };
        self.write_machine_conditions(machine, &[write]).await
    }

    /// A Machine that is not found may have a version that is not served any more.
    fn check_version<T>(
        &self,
        api: MachineApi,
        answer: Result<T, RemediationWriteError>,
    ) -> Result<T, RemediationWriteError> {
        if matches!(answer, Err(RemediationWriteError::Changed(_))) {
            self.forget_version(api);
        }
        answer
    }
}

fn check_conditions_written(
    answer: &DynamicObject,
    about: &str,
    writes: &[ConditionWrite],
) -> Result<(), RemediationWriteError> {
    let there = answer.data["status"]["conditions"].as_array();
    let stands = |write: &&ConditionWrite| {
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
            Err(RemediationWriteError::Dropped(format!(
                "condition {kind} of {about}"
            )))
        }
    }
}

fn get_right(api: MachineApi) -> RequiredRight {
    RequiredRight::new("get", resource_name(api))
}

fn patch_right(api: MachineApi) -> RequiredRight {
    RequiredRight::new("patch", resource_name(api))
}

fn patch_status_right(api: MachineApi) -> RequiredRight {
    let resource = match api {
        MachineApi::OpenShift => "machines/status.machine.openshift.io",
        MachineApi::ClusterApi => "machines/status.cluster.x-k8s.io",
    };
    RequiredRight::new("patch", resource)
}

fn resource_name(api: MachineApi) -> &'static str {
    match api {
        MachineApi::OpenShift => "machines.machine.openshift.io",
        MachineApi::ClusterApi => "machines.cluster.x-k8s.io",
    }
}
