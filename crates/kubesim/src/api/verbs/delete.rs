//! delete, of one object or of many: at once, after a grace period, or once the finalizers are
//! gone.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::body::object_response;
use super::read::parse_scope;
use crate::api::kinds::ServedResource;
use crate::api::request::{ApiRequest, ApiResponse};
use crate::api::route::{ApiRequestTarget, object_key};
use crate::api::status::{ApiError, ApiResult, status_details};
use crate::api::store::{ObjectStore, StoredObject};
use crate::api::value::{
    format_rfc3339, is_terminating, list_at, meta_mut, meta_text, number_at, text_at, value_at,
};

/// The options of `DeleteOptions` that we obey. `propagationPolicy` is accepted without effect:
/// nothing here collects garbage.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// Parses the body of a DELETE, or its parameters when there is no body.
    pub(crate) fn from_request(request: &ApiRequest) -> ApiResult<Self> {
        if request.body.is_empty() {
            let grace = request.query.get("gracePeriodSeconds").parse().ok();
            return Ok(Self {
                grace,
                dry_run: request.is_dry_run(),
                ..Self::default()
            });
        }
        let body: Value = serde_json::from_slice(&request.body).map_err(|why| {
            ApiError::bad_request(format!(
                "couldn't get version/kind; json parse error: {why}"
            ))
        })?;
        let mut options = Self::parse(&body);
        options.dry_run |= request.is_dry_run();
        Ok(options)
    }

    pub(crate) fn parse(body: &Value) -> Self {
        let precondition = |name: &str| {
            value_at(body, &["preconditions", name])
                .and_then(Value::as_str)
                .map(Into::into)
        };
        Self {
            grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            dry_run: !list_at(body, &["dryRun"]).is_empty(),
        }
    }

    /// Checks the preconditions; `kind` is the name in the error.
    pub(crate) fn check_preconditions(
        &self,
        live: &Value,
        group: &str,
        kind: &str,
    ) -> ApiResult<()> {
        let name = meta_text(live, "name");
        let uid = meta_text(live, "uid");
        if let Some(wanted) = self.uid.as_deref().filter(|wanted| *wanted != uid) {
            let why = format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            );
            return Err(ApiError::conflict(group, kind, name, &why));
        }
        let version = meta_text(live, "resourceVersion");
        if let Some(wanted) = self
            .resource_version
            .as_deref()
            .filter(|wanted| *wanted != version)
        {
            let why = format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
            );
            return Err(ApiError::conflict(group, kind, name, &why));
        }
        Ok(())
    }
}

pub(crate) fn delete_target(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<ApiResponse> {
    if target.subresource.is_some() {
        return Err(ApiError::method_not_allowed());
    }
    let options = DeleteOptions::from_request(request)?;
    let resource = &target.resource;
    let outcome = delete_object(
        store,
        resource,
        &target.collection_key(),
        &target.name,
        &options,
    )?;
    match outcome {
        DeleteOutcome::Stays(stored) => object_response(store, request, resource, &stored, 200),
        DeleteOutcome::Gone(stored) if resource.returns_deleted => {
            object_response(store, request, resource, &stored, 200)
        }
        DeleteOutcome::Gone(stored) => {
            let mut details = status_details(&resource.group, &resource.plural, &target.name);
            details["uid"] = stored.value["metadata"]["uid"].clone();
            let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details });
            Ok(ApiResponse::ok(status.to_string()))
        }
    }
}

pub(crate) enum DeleteOutcome {
    Stays(Arc<StoredObject>),
    Gone(Arc<StoredObject>),
}

/// Deletes the object of this key by the rules of its kind.
pub(crate) fn delete_object(
    store: &mut ObjectStore,
    resource: &Arc<ServedResource>,
    key: &str,
    name: &str,
    options: &DeleteOptions,
) -> ApiResult<DeleteOutcome> {
    let live = store
        .find_object(resource, key)
        .map(Arc::clone)
        .ok_or_else(|| ApiError::not_found(resource, name))?;
    protect_namespaces(resource, name)?;
    options.check_preconditions(&live.value, &resource.group, &resource.kind)?;
    let now = store.now();
    let step = if resource.is_built_in_kind("", "pods") {
        plan_pod_delete(&live.value, options, now)
    } else {
        plan_delete(resource, &live.value, now)
    };
    if options.dry_run {
        return Ok(match step {
            DeleteStep::Nothing => DeleteOutcome::Stays(live),
            DeleteStep::Mark(marked) => DeleteOutcome::Stays(Arc::new(StoredObject::new(marked))),
            DeleteStep::MarkAndRemove(marked) => {
                DeleteOutcome::Gone(Arc::new(StoredObject::new(marked)))
            }
            DeleteStep::Remove => DeleteOutcome::Gone(live),
        });
    }
    match step {
        DeleteStep::Nothing => Ok(DeleteOutcome::Stays(live)),
        DeleteStep::Mark(marked) => Ok(DeleteOutcome::Stays(
            store.put_object(resource, key, marked),
        )),
        DeleteStep::MarkAndRemove(marked) => {
            let last = store.put_object(resource, key, marked);
            store.remove_object(resource, key);
            Ok(DeleteOutcome::Gone(last))
        }
        DeleteStep::Remove => {
            store.remove_object(resource, key);
            Ok(DeleteOutcome::Gone(live))
        }
    }
}

fn protect_namespaces(resource: &ServedResource, name: &str) -> ApiResult<()> {
    if resource.is_built_in_kind("", "namespaces")
        && matches!(name, "default" | "kube-system" | "kube-public")
    {
        return Err(ApiError::forbidden(
            "",
            "namespaces",
            name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

enum DeleteStep {
    Nothing,
    Mark(Value),
    MarkAndRemove(Value),
    Remove,
}

/// Kinds without a grace period: deleted at once, unless a finalizer holds them.
fn plan_delete(resource: &ServedResource, live: &Value, now: Timestamp) -> DeleteStep {
    let held = !list_at(live, &["metadata", "finalizers"]).is_empty();
    let namespace = resource.is_built_in_kind("", "namespaces")
        && !list_at(live, &["spec", "finalizers"]).is_empty();
    if !held && !namespace {
        return DeleteStep::Remove;
    }
    if is_terminating(live) {
        return DeleteStep::Nothing;
    }
    let mut marked = with_deletion_timestamp(live, now, if namespace { None } else { Some(0) });
    if namespace {
        marked["status"]["phase"] = "Terminating".into();
    }
    DeleteStep::Mark(marked)
}

fn with_deletion_timestamp(live: &Value, when: Timestamp, grace: Option<i64>) -> Value {
    let mut marked = live.clone();
    let generation = number_at(live, &["metadata", "generation"]);
    let meta = meta_mut(&mut marked);
    meta.insert("deletionTimestamp".into(), format_rfc3339(when).into());
    if let Some(grace) = grace {
        meta.insert("deletionGracePeriodSeconds".into(), grace.into());
    }
    if generation > 0 {
        meta.insert("generation".into(), (generation + 1).into());
    }
    marked
}

fn plan_pod_delete(live: &Value, options: &DeleteOptions, now: Timestamp) -> DeleteStep {
    let held = !list_at(live, &["metadata", "finalizers"]).is_empty();
    let asked = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    let (marked, grace) = if is_terminating(live) {
        match shorten_grace(live, asked, now) {
            ShortenedGrace::To(marked, grace) => (marked, grace),
            ShortenedGrace::Not => return DeleteStep::Nothing,
            ShortenedGrace::Over if held => return DeleteStep::Nothing,
            ShortenedGrace::Over => return DeleteStep::Remove,
        }
    } else {
        let grace = initial_pod_grace(live, asked);
        (
            with_deletion_timestamp(live, now + SignedDuration::from_secs(grace), Some(grace)),
            grace,
        )
    };
    if grace > 0 || held {
        DeleteStep::Mark(marked)
    } else {
        DeleteStep::MarkAndRemove(marked)
    }
}

/// The grace period of a first deletion, in seconds.
fn initial_pod_grace(live: &Value, asked: Option<i64>) -> i64 {
    let unscheduled = text_at(live, &["spec", "nodeName"]).is_empty();
    let finished = matches!(text_at(live, &["status", "phase"]), "Succeeded" | "Failed");
    if unscheduled || finished {
        return 0;
    }
    asked
        .unwrap_or_else(|| number_at(live, &["spec", "terminationGracePeriodSeconds"]))
        .max(0)
}

enum ShortenedGrace {
    To(Value, i64),
    Not,
    Over,
}

/// A later deletion can only shorten the grace period.
fn shorten_grace(live: &Value, asked: Option<i64>, now: Timestamp) -> ShortenedGrace {
    let current = number_at(live, &["metadata", "deletionGracePeriodSeconds"]);
    if current == 0 {
        return ShortenedGrace::Over;
    }
    let Some(asked) = asked.filter(|asked| *asked < current) else {
        return ShortenedGrace::Not;
    };
    let until: Timestamp = meta_text(live, "deletionTimestamp").parse().unwrap_or(now);
    let until = until - SignedDuration::from_secs(current) + SignedDuration::from_secs(asked);
    let (until, grace) = if until < now {
        (now, asked.min(1))
    } else {
        (until, asked)
    };
    let mut marked = live.clone();
    let meta = meta_mut(&mut marked);
    meta.insert("deletionTimestamp".into(), format_rfc3339(until).into());
    meta.insert("deletionGracePeriodSeconds".into(), grace.into());
    ShortenedGrace::To(marked, grace)
}

pub(crate) fn delete_collection(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<ApiResponse> {
    let resource = &target.resource;
    if resource.is_built_in_kind("", "namespaces") || resource.is_built_in_kind("", "services") {
        return Err(ApiError::method_not_allowed());
    }
    let scope = parse_scope(request, target)?;
    let options = DeleteOptions::from_request(request)?;
    let found = store
        .collection_of_resource(resource)
        .in_namespace(&target.namespace);
    let found = found.filter(|(_, stored)| scope.selects_object(&stored.value));
    let found: Vec<Arc<StoredObject>> = found.map(|(_, stored)| Arc::clone(stored)).collect();
    for stored in &found {
        let name = meta_text(&stored.value, "name");
        let key = object_key(meta_text(&stored.value, "namespace"), name);
        delete_object(store, resource, &key, name, &options)?;
    }
    let presenter = super::body::build_presenter(store, request, resource)?;
    // The answer shows the objects as they were before the deletion.
    let shown: Vec<&StoredObject> = found.iter().map(|stored| &**stored).collect();
    let meta = json!({ "resourceVersion": store.revision.to_string() });
    Ok(ApiResponse::ok(presenter.render_list(&shown, &meta)))
}
