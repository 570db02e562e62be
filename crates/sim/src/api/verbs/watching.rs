//! watch.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::body::presenter;
use super::read::{impolite, revision, scope};
use crate::api::handle::Reply;
use crate::api::request::Request;
use crate::api::route::Target;
use crate::api::status::{ApiError, FieldError, Result};
use crate::api::store::{Store, Stored};
use crate::api::watch::{Event, Scope, Subscription, Watch, failed};

/// Follows many objects.
pub(crate) fn watch(store: &mut Store, request: &Request, target: &Target) -> Result<Watch> {
    let scope = scope(request, target)?;
    begin(store, request, target, scope)
}

/// A history that is too short is said inside the stream, as the real server does.
pub(crate) fn in_stream(error: ApiError) -> Result<Reply> {
    if error.reason != "Expired" {
        return Err(error);
    }
    let (sender, frames) = mpsc::unbounded_channel();
    let _ = sender.send(Ok(failed(&error.to_status())));
    Ok(Reply::Watch(Watch {
        frames,
        timeout: Duration::MAX,
        bookmarks: false,
        collection: usize::MAX,
        id: 0,
    }))
}

fn begin(store: &mut Store, request: &Request, target: &Target, scope: Scope) -> Result<Watch> {
    let presenter = presenter(store, request, &target.resource)?;
    let from = revision(request).map_err(impolite)?;
    let initial = request.query.flag("sendInitialEvents");
    let bookmarks = request.query.flag("allowWatchBookmarks");
    check_initial(request, bookmarks)?;
    let starts_now = from.is_none() || initial;
    let past = match from {
        Some(from) if !initial => Some(history(store, target, from)?),
        Some(_) | None => None,
    };
    let present: Vec<Arc<Stored>> = if starts_now {
        selected(store, target, &scope, request)
    } else {
        Vec::new()
    };
    let timeout = timeout(store, request);
    let id = store.new_watch_id();
    let since = if starts_now {
        store.revision
    } else {
        from.unwrap_or(0)
    };
    let revision = store.revision;
    let collection = target.resource.collection;
    let watchers = &mut store.collections[collection].watchers;
    let ask = Subscription {
        user: request.user.clone(),
        scope,
        presenter,
        since,
    };
    let (_sender, frames) = watchers.add(id, ask);
    for stored in &present {
        watchers.introduce(id, stored);
    }
    for event in past.iter().flatten() {
        watchers.replay(id, event);
    }
    if initial {
        watchers.bookmark(id, revision, true);
    }
    Ok(Watch {
        frames,
        timeout,
        bookmarks,
        collection,
        id,
    })
}

/// `sendInitialEvents` comes with conditions.
fn check_initial(request: &Request, bookmarks: bool) -> Result<()> {
    if !request.query.has("sendInitialEvents") {
        return Ok(());
    }
    let field = if request.query.get("resourceVersionMatch") != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        FieldError::forbidden("resourceVersionMatch", why)
    } else if request.query.flag("sendInitialEvents") && !bookmarks {
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

fn history(store: &Store, target: &Target, from: u64) -> Result<Vec<Arc<Event>>> {
    let collection = store.collection(&target.resource);
    let events = collection.since(from).ok_or_else(|| {
        ApiError::expired(format!(
            "too old resource version: {from} ({})",
            store.revision
        ))
    })?;
    Ok(events.map(Arc::clone).collect())
}

/// What is there already. With `sendInitialEvents=false` nothing is shown of it.
fn selected(store: &Store, target: &Target, scope: &Scope, request: &Request) -> Vec<Arc<Stored>> {
    if request.query.get("sendInitialEvents") == "false" {
        return Vec::new();
    }
    let collection = store.collection(&target.resource);
    let wanted = |stored: &&Arc<Stored>| scope.selects(&stored.value);
    if let Some(node) = scope
        .fields
        .exact("spec.nodeName")
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
        .exact("metadata.name")
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

fn timeout(store: &mut Store, request: &Request) -> Duration {
    match request.query.get("timeoutSeconds").parse::<u64>() {
        Ok(seconds) if seconds > 0 => Duration::from_secs(seconds),
        Ok(_) | Err(_) => store.new_watch_timeout(),
    }
}
