//! Writes of requests: their status, and our finalizer.

use dogwatch_api::power_remediation::FINALIZER;
use dogwatch_core::condition::Write;
use dogwatch_core::remedy::{PowerRequest, RequestStatus};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch};
use serde_json::json;

use super::{Right, WriteError};
use crate::error::ask;
use crate::remedy::client::{RemedyClient, params, precondition, send};
use crate::remedy::request::request as convert;
use crate::remedy::status;

const GET: Right = Right::new("get", "powerremediations.dogwatch.dev");
const PATCH: Right = Right::new("patch", "powerremediations.dogwatch.dev");
const PATCH_STATUS: Right = Right::new("patch", "powerremediations/status.dogwatch.dev");

/// # Errors
/// [`WriteError`]: only after [`WriteError::Changed`] and [`WriteError::Forbidden`] is it certain that
/// nothing was written.
impl RemedyClient {
    /// Writes the status and these conditions, on the request as it was seen; other conditions stay. It
    /// answers with the request as it stands then.
    pub async fn write_status(
        &self,
        request: &PowerRequest,
        wanted: &RequestStatus,
        conditions: &[Write],
    ) -> Result<PowerRequest, WriteError> {
        let about = about(request);
        let body = Patch::Merge(status::patch(request, wanted, conditions));
        let (requests, params) = (self.requests(&request.name.namespace), params());
        let call = requests.patch_status(&request.name.name, &params, &body);
        let answer = convert(&send(PATCH_STATUS, &about, call).await?);
        match status::dropped(&answer.status, wanted, conditions) {
            dropped if dropped.is_empty() => Ok(answer),
            dropped => Err(WriteError::Dropped(format!(
                "status.{} of {about}",
                dropped.join(", status.")
            ))),
        }
    }

    /// Puts our finalizer on the request; it answers with the request as it stands then.
    pub async fn add_finalizer(&self, request: &PowerRequest) -> Result<PowerRequest, WriteError> {
        if request.has_finalizer {
            return Ok(request.clone());
        }
        let object = self.as_seen(request).await?;
        let mut finalizers = object.finalizers().to_vec();
        finalizers.push(FINALIZER.to_owned());
        let answer = convert(&self.write_finalizers(request, &finalizers).await?);
        if answer.has_finalizer {
            return Ok(answer);
        }
        let about = about(request);
        Err(WriteError::Dropped(format!("the finalizer of {about}")))
    }

    /// Takes it away. `None`: nothing else kept the request, and it is gone.
    pub async fn remove_finalizer(
        &self,
        request: &PowerRequest,
    ) -> Result<Option<PowerRequest>, WriteError> {
        if !request.has_finalizer {
            return Ok(Some(request.clone()));
        }
        let object = self.as_seen(request).await?;
        let others = object.finalizers().iter().filter(|it| *it != FINALIZER);
        let others: Vec<String> = others.cloned().collect();
        let answer = self.write_finalizers(request, &others).await?;
        let is_gone = request.deleting && others.is_empty();
        Ok((!is_gone).then(|| convert(&answer)))
    }

    /// A list in a merge patch replaces the whole list: those of others are in it.
    async fn write_finalizers(
        &self,
        request: &PowerRequest,
        finalizers: &[String],
    ) -> Result<DynamicObject, WriteError> {
        let mut metadata = precondition(&request.uid, &request.resource_version);
        metadata["finalizers"] = json!(finalizers);
        let body = Patch::Merge(json!({ "metadata": metadata }));
        let (requests, params) = (self.requests(&request.name.namespace), params());
        let call = requests.patch(&request.name.name, &params, &body);
        send(PATCH, &about(request), call).await
    }

    /// The object of this very version.
    async fn as_seen(&self, request: &PowerRequest) -> Result<DynamicObject, WriteError> {
        let about = about(request);
        let requests = self.requests(&request.name.namespace);
        let object = ask(requests.get(&request.name.name)).await;
        let object = object.map_err(|error| GET.refused(&about, error))?;
        let is_it = object.uid().as_ref() == Some(&request.uid)
            && object.resource_version().as_ref() == Some(&request.resource_version);
        if is_it {
            Ok(object)
        } else {
            Err(WriteError::Changed(about))
        }
    }
}

fn about(request: &PowerRequest) -> String {
    format!("powerremediation {}", request.name)
}
