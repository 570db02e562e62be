//! get, and the parameters that all reads share.

use serde_json::json;

use super::body::object_response;
use crate::api::request::{ApiRequest, ApiResponse};
use crate::api::route::ApiRequestTarget;
use crate::api::selector::{ApiLabelSelector, FieldSelector};
use crate::api::status::{ApiError, ApiResult};
use crate::api::store::ObjectStore;
use crate::api::watch::SelectionScope;

pub(crate) fn get_object(
    store: &ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<ApiResponse> {
    requested_revision(request).map_err(as_internal_error)?;
    check_not_future_revision(store, request)?;
    let stored = store.find_object(&target.resource, &target.collection_key());
    let stored = stored.ok_or_else(|| ApiError::not_found(&target.resource, &target.name))?;
    object_response(store, request, &target.resource, stored, 200)
}

/// The selectors and namespace of a request.
pub(crate) fn parse_scope(
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<SelectionScope> {
    let labels = ApiLabelSelector::parse(request.query.get("labelSelector"))
        .map_err(ApiError::bad_request)?;
    let fields = FieldSelector::parse(request.query.get("fieldSelector"), &target.resource)?;
    Ok(SelectionScope {
        namespace: target.namespace.clone(),
        labels,
        fields,
    })
}

/// The revision that a request names. None when it names none, or "0", which means any.
pub(crate) fn requested_revision(request: &ApiRequest) -> ApiResult<Option<u64>> {
    let source = request.query.get("resourceVersion");
    match source {
        "" | "0" => Ok(None),
        number => number.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!("invalid resource version: resourceVersion: Invalid value: \"{number}\": strconv.ParseUint: parsing \"{number}\": invalid syntax"))
        }),
    }
}

/// A resourceVersion that is no number is a 500 for a get and a watch, unlike for a list.
#[allow(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
pub(crate) fn as_internal_error(why: ApiError) -> ApiError {
    let why = why.message.trim_start_matches("invalid resource version: ");
    ApiError::without_reason(500, why)
}

/// Refuses a revision that is newer than the store's.
pub(crate) fn check_not_future_revision(
    store: &ObjectStore,
    request: &ApiRequest,
) -> ApiResult<()> {
    match requested_revision(request)? {
        Some(wanted) if wanted > store.revision => {
            Err(revision_too_large_error(wanted, store.revision))
        }
        Some(_) | None => Ok(()),
    }
}

fn revision_too_large_error(wanted: u64, current: u64) -> ApiError {
    let cause =
        json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
    ApiError {
        code: 504,
        reason: "Timeout",
        message: format!("Timeout: Too large resource version: {wanted}, current: {current}"),
        details: json!({ "causes": [cause], "retryAfterSeconds": 1 }),
    }
}
