//! get and list.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::body::{presenter, shown};
use crate::api::kinds::Resource;
use crate::api::request::{Request, Response};
use crate::api::route::{Target, key};
use crate::api::selector::{FieldSelector, LabelSelector};
use crate::api::status::{ApiError, FieldError, Result};
use crate::api::store::{Store, Stored};
use crate::api::watch::Scope;

/// Reads one object.
pub(crate) fn get(store: &Store, request: &Request, target: &Target) -> Result<Response> {
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

fn not_from_the_future(store: &Store, request: &Request) -> Result<()> {
    match revision(request)? {
        Some(wanted) if wanted > store.revision => Err(too_large(wanted, store.revision)),
        Some(_) | None => Ok(()),
    }
}

fn too_large(wanted: u64, current: u64) -> Box<ApiError> {
    let cause =
        json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
    Box::new(ApiError {
        code: 504,
        reason: "Timeout",
        message: format!("Timeout: Too large resource version: {wanted}, current: {current}"),
        details: json!({ "causes": [cause], "retryAfterSeconds": 1 }),
    })
}

/// Where a list goes on: the revision of its first page, and the last key shown.
struct Continue {
    revision: u64,
    after: String,
}

impl Continue {
    fn parse(token: &str) -> Result<Self> {
        let text = token.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        });
        let text: Option<Vec<u8>> = text.collect();
        let text = text.and_then(|text| String::from_utf8(text).ok());
        let parts = text.as_deref().and_then(|text| text.split_once(' '));
        let parsed = parts.and_then(|(revision, after)| {
            Some(Self {
                revision: revision.parse().ok()?,
                after: after.into(),
            })
        });
        parsed.ok_or_else(|| {
            ApiError::bad_request(
                "invalid continue token: continue key is not valid: illegal base64 data",
            )
        })
    }

    fn token(&self) -> String {
        let text = format!("{} {}", self.revision, self.after);
        text.bytes().map(|byte| format!("{byte:02x}")).collect()
    }
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Reads many objects.
pub(crate) fn list(store: &Store, request: &Request, target: &Target) -> Result<Response> {
    let scope = scope(request, target)?;
    let presenter = presenter(store, request, &target.resource)?;
    check_match(request)?;
    not_from_the_future(store, request)?;
    let go_on = match request.query.get("continue") {
        "" => None,
        token => Some(Continue::parse(token)?),
    };
    if go_on.is_some() && revision(request)?.is_some() {
        return Err(ApiError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let exact = request.query.get("resourceVersionMatch") == "Exact";
    let at = match (&go_on, revision(request)?) {
        (Some(go_on), _) => go_on.revision,
        (None, Some(wanted)) if exact => wanted,
        (None, Some(_) | None) => store.revision,
    };
    let past = snapshot(store, &target.resource, at).map_err(|why| {
        if go_on.is_some() {
            ApiError::expired(CONTINUE_EXPIRED)
        } else {
            why
        }
    })?;
    let candidates = candidates(store, target, &scope, past.as_ref());
    let after = go_on.map(|go_on| go_on.after);
    let mut found = candidates.filter(|(key, stored)| {
        after.as_ref().is_none_or(|after| *key > after) && scope.selects(&stored.value)
    });
    // "Any version" is answered from the cache as a whole.
    let whole = request.query.get("resourceVersion") == "0";
    let limit: usize = request
        .query
        .get("limit")
        .parse()
        .ok()
        .filter(|_| !whole)
        .unwrap_or(0);
    let mut shown: Vec<&Stored> = Vec::new();
    let mut last = "";
    for (key, stored) in found.by_ref() {
        shown.push(stored);
        last = key;
        if shown.len() == limit {
            break;
        }
    }
    let mut meta = json!({ "resourceVersion": at.to_string() });
    let rest = found.count();
    if rest > 0 {
        meta["continue"] = Continue {
            revision: at,
            after: last.to_owned(),
        }
        .token()
        .into();
        if !scope.is_selective() {
            meta["remainingItemCount"] = rest.into();
        }
    }
    Ok(Response::ok(presenter.many(&shown, &meta)))
}

fn check_match(request: &Request) -> Result<()> {
    let wanted = request.query.get("resourceVersionMatch");
    let version = request.query.get("resourceVersion");
    let refuse = |reason: &'static str, message: String| {
        let field = FieldError {
            reason,
            field: "resourceVersionMatch".into(),
            message,
        };
        Err(ApiError::invalid(
            "meta.k8s.io",
            "ListOptions",
            "",
            &[field],
        ))
    };
    let forbid = |why: &str| refuse("FieldValueForbidden", format!("Forbidden: {why}"));
    match wanted {
        "" => Ok(()),
        _ if version.is_empty() => {
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        "Exact" if version == "0" => {
            forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        "Exact" | "NotOlderThan" => Ok(()),
        other => {
            let message = format!(
                "Unsupported value: \"{other}\": supported values: \"Exact\", \"NotOlderThan\", \"\""
            );
            refuse("FieldValueNotSupported", message)
        }
    }
}

type Snapshot = BTreeMap<String, Arc<Stored>>;

/// The objects as they were. None when nothing has changed since.
fn snapshot(store: &Store, resource: &Resource, at: u64) -> Result<Option<Snapshot>> {
    if at == store.revision {
        return Ok(None);
    }
    let expired = || {
        ApiError::expired(format!(
            "The resourceVersion for the provided list is too old. (requested {at})"
        ))
    };
    store
        .collection(resource)
        .at(at)
        .map(Some)
        .ok_or_else(expired)
}

type Candidates<'a> = Box<dyn Iterator<Item = (&'a String, &'a Stored)> + 'a>;

/// The objects among which the selectors choose: as few as an index can make them.
fn candidates<'a>(
    store: &'a Store,
    target: &'a Target,
    scope: &'a Scope,
    past: Option<&'a Snapshot>,
) -> Candidates<'a> {
    if let Some(past) = past {
        return Box::new(past.iter().map(|(key, stored)| (key, &**stored)));
    }
    let collection = store.collection(&target.resource);
    if let Some(name) = scope
        .fields
        .exact("metadata.name")
        .filter(|_| !target.namespace.is_empty() || !target.resource.namespaced)
    {
        let found = collection
            .objects
            .get_key_value(&key(&target.namespace, name));
        return Box::new(found.into_iter().map(|(key, stored)| (key, &**stored)));
    }
    if let Some(node) = scope
        .fields
        .exact("spec.nodeName")
        .filter(|node| !node.is_empty())
    {
        return Box::new(
            collection
                .on_node(node)
                .map(|(key, stored)| (key, &**stored)),
        );
    }
    Box::new(
        collection
            .in_namespace(&target.namespace)
            .map(|(key, stored)| (key, &**stored)),
    )
}
