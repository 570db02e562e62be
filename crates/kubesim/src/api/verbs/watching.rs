//! watch.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::body::build_presenter;
use super::read::{as_internal_error, parse_scope, requested_revision};
use crate::api::handle::ApiReply;
use crate::api::request::ApiRequest;
use crate::api::route::ApiRequestTarget;
use crate::api::status::{ApiError, ApiResult, FieldError};
use crate::api::store::{ObjectStore, StoredObject};
use crate::api::watch::{
    OpenWatch, SelectionScope, StoreEvent, WatchSubscription, render_error_line,
};

pub(crate) fn start_watch(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
) -> ApiResult<OpenWatch> {
    let scope = parse_scope(request, target)?;
    subscribe_watch(store, request, target, scope)
}

/// A history that is too short is reported inside the stream, as by the real server.
pub(crate) fn expired_as_stream(error: ApiError) -> ApiResult<ApiReply> {
    if error.reason != "Expired" {
        return Err(error);
    }
    let (sender, frames) = mpsc::unbounded_channel();
    let _ = sender.send(Ok(render_error_line(&error.to_status())));
    Ok(ApiReply::Watch(OpenWatch {
        frames,
        timeout: Duration::MAX,
        bookmarks: false,
        collection: usize::MAX,
        id: 0,
    }))
}

fn subscribe_watch(
    store: &mut ObjectStore,
    request: &ApiRequest,
    target: &ApiRequestTarget,
    scope: SelectionScope,
) -> ApiResult<OpenWatch> {
    let presenter = build_presenter(store, request, &target.resource)?;
    let from = requested_revision(request).map_err(as_internal_error)?;
    let initial = request.query.is_true("sendInitialEvents");
    let bookmarks = request.query.is_true("allowWatchBookmarks");
    check_initial_events(request, bookmarks)?;
    let starts_now = from.is_none() || initial;
    let past = match from {
        Some(from) if !initial => Some(events_from(store, target, from)?),
        Some(_) | None => None,
    };
    let present: Vec<Arc<StoredObject>> = if starts_now {
        initial_objects(store, target, &scope, request)
    } else {
        Vec::new()
    };
    let timeout = watch_timeout(store, request);
    let id = store.new_watch_id();
    let since = if starts_now {
        store.revision
    } else {
        from.unwrap_or(0)
    };
    let revision = store.revision;
    let collection = target.resource.collection;
    let watchers = &mut store.collections[collection].watchers;
    let ask = WatchSubscription {
        user: request.user.clone(),
        scope,
        presenter,
        since,
    };
    let (_sender, frames) = watchers.add_watcher(id, ask);
    for stored in &present {
        watchers.send_existing_object(id, stored);
    }
    for event in past.iter().flatten() {
        watchers.replay_event(id, event);
    }
    if initial {
        watchers.send_bookmark(id, revision, true);
    }
    Ok(OpenWatch {
        frames,
        timeout,
        bookmarks,
        collection,
        id,
    })
}

/// Checks the parameters that `sendInitialEvents` requires.
fn check_initial_events(request: &ApiRequest, bookmarks: bool) -> ApiResult<()> {
    if !request.query.has_parameter("sendInitialEvents") {
        return Ok(());
    }
    let field = if request.query.get("resourceVersionMatch") != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        FieldError::forbidden("resourceVersionMatch", why)
    } else if request.query.is_true("sendInitialEvents") && !bookmarks {
        let why = "sendInitialEvents requires setting allowWatchBookmarks to true";
        FieldError::forbidden("sendInitialEvents", why)
    } else {
        return Ok(());
    };
    Err(ApiError::invalid(
        "meta.k8s.io",
        "ListOptions",
        "",
        &[field],
    ))
}

fn events_from(
    store: &ObjectStore,
    target: &ApiRequestTarget,
    from: u64,
) -> ApiResult<Vec<Arc<StoreEvent>>> {
    let collection = store.collection_of_resource(&target.resource);
    let events = collection.events_since(from).ok_or_else(|| {
        ApiError::expired(format!(
            "too old resource version: {from} ({})",
            store.revision
        ))
    })?;
    Ok(events.map(Arc::clone).collect())
}

/// The existing objects. None of them are sent with `sendInitialEvents=false`.
fn initial_objects(
    store: &ObjectStore,
    target: &ApiRequestTarget,
    scope: &SelectionScope,
    request: &ApiRequest,
) -> Vec<Arc<StoredObject>> {
    if request.query.get("sendInitialEvents") == "false" {
        return Vec::new();
    }
    let collection = store.collection_of_resource(&target.resource);
    let wanted = |stored: &&Arc<StoredObject>| scope.selects_object(&stored.value);
    if let Some(node) = scope
        .fields
        .exact_value("spec.nodeName")
        .filter(|node| !node.is_empty())
    {
        return collection
            .on_node(node)
            .map(|(_, stored)| stored)
            .filter(wanted)
            .map(Arc::clone)
            .collect();
    }
    if let Some(name) = scope
        .fields
        .exact_value("metadata.name")
        .filter(|_| !target.resource.namespaced)
    {
        return collection
            .objects
            .get(name)
            .into_iter()
            .filter(wanted)
            .map(Arc::clone)
            .collect();
    }
    collection
        .in_namespace(&scope.namespace)
        .map(|(_, stored)| stored)
        .filter(wanted)
        .map(Arc::clone)
        .collect()
}

fn watch_timeout(store: &mut ObjectStore, request: &ApiRequest) -> Duration {
    match request.query.get("timeoutSeconds").parse::<u64>() {
        Ok(seconds) if seconds > 0 => Duration::from_secs(seconds),
        Ok(_) | Err(_) => store.new_watch_timeout(),
    }
}
