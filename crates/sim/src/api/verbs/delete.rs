//! delete, one or many: at once, with grace, or once the finalizers are gone.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::body::shown;
use super::read::scope;
use crate::api::kinds::Resource;
use crate::api::request::{Request, Response};
use crate::api::route::{Target, key};
use crate::api::status::{ApiError, Result, details};
use crate::api::store::{Store, Stored};
use crate::api::value::{at, is_terminating, items, meta, meta_mut, number, rfc3339, text};

/// `DeleteOptions`, as far as we obey them. `propagationPolicy` is accepted: nothing here collects
/// garbage.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: bool,
}

impl DeleteOptions {
    /// Reads the body of a DELETE, or its parameters when there is none.
    pub(crate) fn of_request(request: &Request) -> Result<Self> {
        if request.body.is_empty() {
            let grace = request.query.get("gracePeriodSeconds").parse().ok();
            return Ok(Self {
                grace,
                dry_run: request.dry_run(),
                ..Self::default()
            });
        }
        let body: Value = serde_json::from_slice(&request.body).map_err(|why| {
            ApiError::bad_request(format!(
                "couldn't get version/kind; json parse error: {why}"
            ))
        })?;
        let mut options = Self::parse(&body);
        options.dry_run |= request.dry_run();
        Ok(options)
    }

    /// Reads a `DeleteOptions` object.
    pub(crate) fn parse(body: &Value) -> Self {
        let precondition = |name: &str| {
            at(body, &["preconditions", name])
                .and_then(Value::as_str)
                .map(Into::into)
        };
        Self {
            grace: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            dry_run: !items(body, &["dryRun"]).is_empty(),
        }
    }

    /// Checks the preconditions; `kind` is the name that the refusal uses.
    pub(crate) fn check(&self, live: &Value, group: &str, kind: &str) -> Result<()> {
        let name = meta(live, "name");
        let uid = meta(live, "uid");
        if let Some(wanted) = self.uid.as_deref().filter(|wanted| *wanted != uid) {
            let why = format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            );
            return Err(ApiError::conflict(group, kind, name, &why));
        }
        let version = meta(live, "resourceVersion");
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

/// Deletes one object.
pub(crate) fn delete(store: &mut Store, request: &Request, target: &Target) -> Result<Response> {
    if target.subresource.is_some() {
        return Err(ApiError::method_not_allowed());
    }
    let options = DeleteOptions::of_request(request)?;
    let resource = &target.resource;
    let outcome = delete_object(store, resource, &target.key(), &target.name, &options)?;
    match outcome {
        Outcome::Stays(stored) => shown(store, request, resource, &stored, 200),
        Outcome::Gone(stored) if resource.returns_deleted => {
            shown(store, request, resource, &stored, 200)
        }
        Outcome::Gone(stored) => {
            let mut details = details(&resource.group, &resource.plural, &target.name);
            details["uid"] = stored.value["metadata"]["uid"].clone();
            let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details });
            Ok(Response::ok(status.to_string()))
        }
    }
}

/// What became of the object.
pub(crate) enum Outcome {
    Stays(Arc<Stored>),
    Gone(Arc<Stored>),
}

/// Deletes the object under a key as its kind does it.
pub(crate) fn delete_object(
    store: &mut Store,
    resource: &Arc<Resource>,
    key: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<Outcome> {
    let live = store
        .find(resource, key)
        .map(Arc::clone)
        .ok_or_else(|| ApiError::not_found(resource, name))?;
    protect_namespaces(resource, name)?;
    options.check(&live.value, &resource.group, &resource.kind)?;
    let now = store.now();
    let step = if resource.is("", "pods") {
        pod_step(&live.value, options, now)
    } else {
        step(resource, &live.value, now)
    };
    if options.dry_run {
        return Ok(match step {
            Step::Nothing => Outcome::Stays(live),
            Step::Mark(marked) => Outcome::Stays(Arc::new(Stored::new(marked))),
            Step::MarkAndRemove(marked) => Outcome::Gone(Arc::new(Stored::new(marked))),
            Step::Remove => Outcome::Gone(live),
        });
    }
    match step {
        Step::Nothing => Ok(Outcome::Stays(live)),
        Step::Mark(marked) => Ok(Outcome::Stays(store.put(resource, key, marked))),
        Step::MarkAndRemove(marked) => {
            let last = store.put(resource, key, marked);
            store.remove(resource, key);
            Ok(Outcome::Gone(last))
        }
        Step::Remove => {
            store.remove(resource, key);
            Ok(Outcome::Gone(live))
        }
    }
}

fn protect_namespaces(resource: &Resource, name: &str) -> Result<()> {
    if resource.is("", "namespaces") && matches!(name, "default" | "kube-system" | "kube-public") {
        return Err(ApiError::forbidden(
            "",
            "namespaces",
            name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

enum Step {
    Nothing,
    Mark(Value),
    MarkAndRemove(Value),
    Remove,
}

/// Kinds without grace: at once, unless a finalizer holds them.
fn step(resource: &Resource, live: &Value, now: Timestamp) -> Step {
    let held = !items(live, &["metadata", "finalizers"]).is_empty();
    let namespace =
        resource.is("", "namespaces") && !items(live, &["spec", "finalizers"]).is_empty();
    if !held && !namespace {
        return Step::Remove;
    }
    if is_terminating(live) {
        return Step::Nothing;
    }
    let mut marked = mark(live, now, if namespace { None } else { Some(0) });
    if namespace {
        marked["status"]["phase"] = "Terminating".into();
    }
    Step::Mark(marked)
}

fn mark(live: &Value, when: Timestamp, grace: Option<i64>) -> Value {
    let mut marked = live.clone();
    let generation = number(live, &["metadata", "generation"]);
    let meta = meta_mut(&mut marked);
    meta.insert("deletionTimestamp".into(), rfc3339(when).into());
    if let Some(grace) = grace {
        meta.insert("deletionGracePeriodSeconds".into(), grace.into());
    }
    if generation > 0 {
        meta.insert("generation".into(), (generation + 1).into());
    }
    marked
}

fn pod_step(live: &Value, options: &DeleteOptions, now: Timestamp) -> Step {
    let held = !items(live, &["metadata", "finalizers"]).is_empty();
    let asked = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    let (marked, grace) = if is_terminating(live) {
        match shorten(live, asked, now) {
            Shortened::To(marked, grace) => (marked, grace),
            Shortened::Not => return Step::Nothing,
            Shortened::Over if held => return Step::Nothing,
            Shortened::Over => return Step::Remove,
        }
    } else {
        let grace = pod_grace(live, asked);
        (
            mark(live, now + SignedDuration::from_secs(grace), Some(grace)),
            grace,
        )
    };
    if grace > 0 || held {
        Step::Mark(marked)
    } else {
        Step::MarkAndRemove(marked)
    }
}

/// The grace of a first deletion.
fn pod_grace(live: &Value, asked: Option<i64>) -> i64 {
    let unscheduled = text(live, &["spec", "nodeName"]).is_empty();
    let finished = matches!(text(live, &["status", "phase"]), "Succeeded" | "Failed");
    if unscheduled || finished {
        return 0;
    }
    asked
        .unwrap_or_else(|| number(live, &["spec", "terminationGracePeriodSeconds"]))
        .max(0)
}

enum Shortened {
    To(Value, i64),
    Not,
    Over,
}

/// A deletion that is under way can only become shorter.
fn shorten(live: &Value, asked: Option<i64>, now: Timestamp) -> Shortened {
    let current = number(live, &["metadata", "deletionGracePeriodSeconds"]);
    if current == 0 {
        return Shortened::Over;
    }
    let Some(asked) = asked.filter(|asked| *asked < current) else {
        return Shortened::Not;
    };
    let until: Timestamp = meta(live, "deletionTimestamp").parse().unwrap_or(now);
    let until = until - SignedDuration::from_secs(current) + SignedDuration::from_secs(asked);
    let (until, grace) = if until < now {
        (now, asked.min(1))
    } else {
        (until, asked)
    };
    let mut marked = live.clone();
    let meta = meta_mut(&mut marked);
    meta.insert("deletionTimestamp".into(), rfc3339(until).into());
    meta.insert("deletionGracePeriodSeconds".into(), grace.into());
    Shortened::To(marked, grace)
}

/// Deletes everything that is selected.
pub(crate) fn delete_collection(
    store: &mut Store,
    request: &Request,
    target: &Target,
) -> Result<Response> {
    let resource = &target.resource;
    if resource.is("", "namespaces") || resource.is("", "services") {
        return Err(ApiError::method_not_allowed());
    }
    let scope = scope(request, target)?;
    let options = DeleteOptions::of_request(request)?;
    let found = store.collection(resource).in_namespace(&target.namespace);
    let found = found.filter(|(_, stored)| scope.selects(&stored.value));
    let found: Vec<Arc<Stored>> = found.map(|(_, stored)| Arc::clone(stored)).collect();
    for stored in &found {
        let name = meta(&stored.value, "name");
        let key = key(meta(&stored.value, "namespace"), name);
        delete_object(store, resource, &key, name, &options)?;
    }
    let presenter = super::body::presenter(store, request, resource)?;
    // As they were when they were found.
    let shown: Vec<&Stored> = found.iter().map(|stored| &**stored).collect();
    let meta = json!({ "resourceVersion": store.revision.to_string() });
    Ok(Response::ok(presenter.many(&shown, &meta)))
}
