//! list: selected, paged, at the newest or at an earlier revision.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use super::body::build_presenter;
use super::read::{check_not_future_revision, parse_scope, requested_revision};
use crate::api::kinds::ServedResource;
use crate::api::request::{ApiRequest, ApiResponse};
use crate::api::route::{ApiRequestTarget, object_key};
use crate::api::status::{ApiError, ApiResult, FieldError};
use crate::api::store::{ObjectStore, StoredObject};
use crate::api::watch::SelectionScope;

pub(crate) fn list_objects(
    store: &ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<ApiResponse> {
    let scope = parse_scope(request, target)?;
    let presenter = build_presenter(store, request, &target.resource)?;
    check_version_match(request)?;
    check_not_future_revision(store, request)?;
    let start = ListStart::from_request(store, request)?;
    let past = snapshot_at_start(store, &target.resource, &start)?;
    let candidates = list_candidates(store, target, &scope, past.as_ref());
    let found = candidates
        .filter(|(key, stored)| start.is_before(key) && scope.selects_object(&stored.value));
    let page = ListPage::take_page(found, page_limit(request));
    let custom = target.resource.custom.is_some();
    let meta = page.list_metadata(&start, &scope, custom && presenter.shows_objects());
    Ok(ApiResponse::ok(presenter.render_list(&page.shown, &meta)))
}

/// Page size; 0 for no paging.
fn page_limit(request: &ApiRequest) -> usize {
    // "Any version" is answered from the cache, without paging.
    if request.query.get("resourceVersion") == "0" {
        return 0;
    }
    request.query.get("limit").parse().unwrap_or(0)
}

/// The revision of a list, and the key after which it starts.
struct ListStart {
    revision: u64,
    after: Option<String>,
}

impl ListStart {
    fn from_request(store: &ObjectStore, request: &ApiRequest) -> ApiResult<Self> {
        let wanted = requested_revision(request)?;
        let token = request.query.get("continue");
        if !token.is_empty() {
            if wanted.is_some() {
                let why = "specifying resource version is not allowed when using continue";
                return Err(ApiError::bad_request(why));
            }
            return Self::parse_continue_token(token);
        }
        let exact = request.query.get("resourceVersionMatch") == "Exact";
        let revision = wanted.filter(|_| exact).unwrap_or(store.revision);
        Ok(Self {
            revision,
            after: None,
        })
    }

    fn parse_continue_token(token: &str) -> ApiResult<Self> {
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
                after: Some(after.into()),
            })
        });
        parsed.ok_or_else(|| {
            ApiError::bad_request(
                "invalid continue token: continue key is not valid: illegal base64 data",
            )
        })
    }

    fn is_before(&self, key: &str) -> bool {
        self.after.as_deref().is_none_or(|after| key > after)
    }

    /// The token of the next page. Opaque to clients, like the real one.
    fn continue_token(&self, last: &str) -> String {
        let text = format!("{} {last}", self.revision);
        text.bytes().fold(String::new(), |mut token, byte| {
            write!(token, "{byte:02x}").expect("a string takes all that is written to it");
            token
        })
    }
}

/// The objects of a page, and how many remain after it.
struct ListPage<'a> {
    shown: Vec<&'a StoredObject>,
    last: &'a str,
    left: usize,
}

impl<'a> ListPage<'a> {
    fn take_page(
        mut found: impl Iterator<Item = (&'a String, &'a StoredObject)>,
        limit: usize,
    ) -> Self {
        let mut page = Self {
            shown: Vec::new(),
            last: "",
            left: 0,
        };
        for (key, stored) in found.by_ref() {
            page.shown.push(stored);
            page.last = key;
            if page.shown.len() == limit {
                break;
            }
        }
        page.left = found.count();
        page
    }

    fn list_metadata(&self, start: &ListStart, scope: &SelectionScope, custom: bool) -> Value {
        let mut meta = json!({ "resourceVersion": start.revision.to_string() });
        if self.left > 0 {
            meta["continue"] = start.continue_token(self.last).into();
            if !scope.is_selective() {
                meta["remainingItemCount"] = self.left.into();
            }
        } else if custom {
            // Lists of custom resources write it out even on the last page.
            meta["continue"] = "".into();
        }
        meta
    }
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

fn check_version_match(request: &ApiRequest) -> ApiResult<()> {
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

type ObjectsSnapshot = BTreeMap<String, Arc<StoredObject>>;

/// The objects at the start revision. None when nothing has changed since.
fn snapshot_at_start(
    store: &ObjectStore,
    resource: &ServedResource,
    start: &ListStart,
) -> ApiResult<Option<ObjectsSnapshot>> {
    let at = start.revision;
    if at == store.revision {
        return Ok(None);
    }
    let past = store
        .collection_of_resource(resource)
        .objects_at_revision(at);
    past.map(Some).ok_or_else(|| match start.after {
        Some(_) => ApiError::expired(CONTINUE_EXPIRED),
        None => ApiError::expired(format!(
            "The resourceVersion for the provided list is too old. (requested {at})"
        )),
    })
}

type ListCandidates<'a> = Box<dyn Iterator<Item = (&'a String, &'a StoredObject)> + 'a>;

/// The objects that the selectors are applied to: as few as an index allows.
fn list_candidates<'a>(
    store: &'a ObjectStore,
    target: &'a ApiRequestTarget,
    scope: &'a SelectionScope,
    past: Option<&'a ObjectsSnapshot>,
) -> ListCandidates<'a> {
    if let Some(past) = past {
        return Box::new(past.iter().map(|(key, stored)| (key, &**stored)));
    }
    let collection = store.collection_of_resource(&target.resource);
    if let Some(name) = scope
        .fields
        .exact_value("metadata.name")
        .filter(|_| !target.namespace.is_empty() || !target.resource.namespaced)
    {
        let found = collection
            .objects
            .get_key_value(&object_key(&target.namespace, name));
        return Box::new(found.into_iter().map(|(key, stored)| (key, &**stored)));
    }
    if let Some(node) = scope
        .fields
        .exact_value("spec.nodeName")
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
