//! get, and what all reads have in common.

use serde_json::json;

use super::body::shown;
use crate::api::request::{Request, Response};
use crate::api::route::Target;
use crate::api::selector::{FieldSelector, LabelSelector};
use crate::api::status::{ApiError, Result};
use crate::api::store::Store;
use crate::api::watch::Scope;

/// Reads one object.
pub(crate) fn get(store: &Store, request: &Request, target: &Target) -> Result<Response> {
    revision(request).map_err(impolite)?;
    not_from_the_future(store, request)?;
    let stored = store.find(&target.resource, &target.key());
    let stored = stored.ok_or_else(|| ApiError::not_found(&target.resource, &target.name))?;
    shown(store, request, &target.resource, stored, 200)
}

/// What a request selects.
pub(crate) fn scope(request: &Request, target: &Target) -> Result<Scope> {
    let labels =
        LabelSelector::parse(request.query.get("labelSelector")).map_err(ApiError::bad_request)?;
    let fields = FieldSelector::parse(request.query.get("fieldSelector"), &target.resource)?;
    Ok(Scope {
        namespace: target.namespace.clone(),
        labels,
        fields,
    })
}

/// The revision that a request names. None for none and for "0", which is "any".
pub(crate) fn revision(request: &Request) -> Result<Option<u64>> {
    let source = request.query.get("resourceVersion");
    match source {
        "" | "0" => Ok(None),
        number => number.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!("invalid resource version: resourceVersion: Invalid value: \"{number}\": strconv.ParseUint: parsing \"{number}\": invalid syntax"))
        }),
    }
}

/// A version that is no number, as a get and a watch refuse it: less politely than a list.
#[allow(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
pub(crate) fn impolite(why: ApiError) -> ApiError {
    let why = why.message.trim_start_matches("invalid resource version: ");
    ApiError::plain(500, why)
}

/// A revision that is yet to come is refused.
pub(crate) fn not_from_the_future(store: &Store, request: &Request) -> Result<()> {
    match revision(request)? {
        Some(wanted) if wanted > store.revision => Err(too_large(wanted, store.revision)),
        Some(_) | None => Ok(()),
    }
}

fn too_large(wanted: u64, current: u64) -> ApiError {
    let cause =
        json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
    ApiError {
        code: 504,
        reason: "Timeout",
        message: format!("Timeout: Too large resource version: {wanted}, current: {current}"),
        details: json!({ "causes": [cause], "retryAfterSeconds": 1 }),
    }
}
