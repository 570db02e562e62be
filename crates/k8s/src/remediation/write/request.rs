//! Writes to requests: their status, and our finalizer.

use dogwatch_api::power_remediation::FINALIZER;
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::remediation::{PowerRequest, RequestStatus};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch};
use serde_json::json;

use super::{RemediationWriteError, RequiredRight};
use crate::error::with_timeout;
use crate::remediation::client::{RemediationClient, patch_params, patch_precondition, send_write};
use crate::remediation::request::parse_request;
use crate::remediation::status;

const GET_RIGHT: RequiredRight = RequiredRight::new("get", "powerremediations.dogwatch.dev");
const PATCH_RIGHT: RequiredRight = RequiredRight::new("patch", "powerremediations.dogwatch.dev");
const PATCH_STATUS_RIGHT: RequiredRight =
    RequiredRight::new("patch", "powerremediations/status.dogwatch.dev");

/// # Errors
/// [`RemediationWriteError`]: only [`RemediationWriteError::Changed`] and
/// [`RemediationWriteError::Forbidden`] guarantee that nothing was written.
impl RemediationClient {
    /// Writes the status and these conditions, unless the request has changed since it was read;
    /// other conditions stay. Returns the request as written.
    pub async fn write_request_status(
        &self,
        request: &PowerRequest,
        wanted: &RequestStatus,
        conditions: &[ConditionWrite],
    ) -> Result<PowerRequest, RemediationWriteError> {
        let about = describe_request(request);
        let body = Patch::Merge(status::status_patch(request, wanted, conditions));
        let (requests, params) = (self.request_api(&request.name.namespace), patch_params());
        let call = requests.patch_status(&request.name.name, &params, &body);
        let answer = parse_request(&send_write(PATCH_STATUS_RIGHT, &about, call).await?);
        match status::dropped_fields(&answer.status, wanted, conditions) {
            dropped if dropped.is_empty() => Ok(answer),
            dropped => Err(RemediationWriteError::Dropped(format!(
                "status.{} of {about}",
                dropped.join(", status.")
            ))),
        }
    }

    /// Returns the request as written.
    pub async fn add_finalizer(
        &self,
        request: &PowerRequest,
    ) -> Result<PowerRequest, RemediationWriteError> {
        if request.has_finalizer {
            return Ok(request.clone());
        }
        let object = self.read_unchanged(request).await?;
        let mut finalizers = object.finalizers().to_vec();
        finalizers.push(FINALIZER.to_owned());
        let answer = parse_request(&self.write_finalizers(request, &finalizers).await?);
        if answer.has_finalizer {
            return Ok(answer);
        }
        let about = describe_request(request);
        Err(RemediationWriteError::Dropped(format!(
            "the finalizer of {about}"
        )))
    }

    /// `None`: the request had no other finalizer, and is gone.
    pub async fn remove_finalizer(
        &self,
        request: &PowerRequest,
    ) -> Result<Option<PowerRequest>, RemediationWriteError> {
        if !request.has_finalizer {
            return Ok(Some(request.clone()));
        }
        let object = self.read_unchanged(request).await?;
        let others = object.finalizers().iter().filter(|it| *it != FINALIZER);
        let others: Vec<String> = others.cloned().collect();
        let answer = self.write_finalizers(request, &others).await?;
        let is_gone = request.deleting && others.is_empty();
        Ok((!is_gone).then(|| parse_request(&answer)))
    }

    /// A list in a merge patch replaces the whole list, so it includes the finalizers of others.
    async fn write_finalizers(
        &self,
        request: &PowerRequest,
        finalizers: &[String],
    ) -> Result<DynamicObject, RemediationWriteError> {
        let mut metadata = patch_precondition(&request.uid, &request.resource_version);
        metadata["finalizers"] = json!(finalizers);
        let body = Patch::Merge(json!({ "metadata": metadata }));
        let (requests, params) = (self.request_api(&request.name.namespace), patch_params());
        let call = requests.patch(&request.name.name, &params, &body);
        send_write(PATCH_RIGHT, &describe_request(request), call).await
    }

    /// Reads the object; an error if it is not this version.
    async fn read_unchanged(
        &self,
        request: &PowerRequest,
    ) -> Result<DynamicObject, RemediationWriteError> {
        let about = describe_request(request);
        let requests = self.request_api(&request.name.namespace);
        let object = with_timeout(requests.get(&request.name.name)).await;
        let object = object.map_err(|error| GET_RIGHT.classify_error(&about, error))?;
        let is_it = object.uid().as_ref() == Some(&request.uid)
            && object.resource_version().as_ref() == Some(&request.resource_version);
        if is_it {
            Ok(object)
        } else {
            Err(RemediationWriteError::object_changed(about))
        }
    }
}

fn describe_request(request: &PowerRequest) -> String {
    format!("powerremediation {}", request.name)
}
