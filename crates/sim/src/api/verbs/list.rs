//! list: selected, paged, of now or of a moment ago.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use super::body::presenter;
use super::read::{not_from_the_future, revision, scope};
use crate::api::kinds::Resource;
use crate::api::request::{Request, Response};
use crate::api::route::{Target, key};
use crate::api::status::{ApiError, FieldError, Result};
use crate::api::store::{Store, Stored};
use crate::api::watch::Scope;

/// Reads many objects.
pub(crate) fn list(store: &Store, request: &Request, target: &Target) -> Result<Response> {
    let scope = scope(request, target)?;
    let presenter = presenter(store, request, &target.resource)?;
    check_match(request)?;
    not_from_the_future(store, request)?;
    let start = Start::of(store, request)?;
    let past = snapshot(store, &target.resource, &start)?;
    let candidates = candidates(store, target, &scope, past.as_ref());
    let found =
        candidates.filter(|(key, stored)| start.is_before(key) && scope.selects(&stored.value));
    let page = Page::take(found, limit(request));
    let custom = target.resource.custom.is_some();
    let meta = page.meta(&start, &scope, custom && presenter.shows_objects());
    Ok(Response::ok(presenter.many(&page.shown, &meta)))
}

/// How many objects a page holds; 0 for all of them.
fn limit(request: &Request) -> usize {
    // "Any version" is answered from the cache as a whole.
    if request.query.get("resourceVersion") == "0" {
        return 0;
    }
    request.query.get("limit").parse().unwrap_or(0)
}

/// Of which revision a list is, and behind which key it starts.
struct Start {
    revision: u64,
    after: Option<String>,
}

impl Start {
    fn of(store: &Store, request: &Request) -> Result<Self> {
        let wanted = revision(request)?;
        let token = request.query.get("continue");
        if !token.is_empty() {
            if wanted.is_some() {
                let why = "specifying resource version is not allowed when using continue";
                return Err(ApiError::bad_request(why));
            }
            return Self::parse(token);
        }
        let exact = request.query.get("resourceVersionMatch") == "Exact";
        let revision = wanted.filter(|_| exact).unwrap_or(store.revision);
        Ok(Self {
            revision,
            after: None,
        })
    }

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

    /// Where the next page starts. Opaque to clients, as the real one.
    fn token(&self, last: &str) -> String {
        let text = format!("{} {last}", self.revision);
        text.bytes().fold(String::new(), |mut token, byte| {
            write!(token, "{byte:02x}").expect("a string takes all that is written to it");
            token
        })
    }
}

/// What is shown, and how much is left behind it.
struct Page<'a> {
    shown: Vec<&'a Stored>,
    last: &'a str,
    left: usize,
}

impl<'a> Page<'a> {
    fn take(mut found: impl Iterator<Item = (&'a String, &'a Stored)>, limit: usize) -> Self {
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

    fn meta(&self, start: &Start, scope: &Scope, custom: bool) -> Value {
        let mut meta = json!({ "resourceVersion": start.revision.to_string() });
        if self.left > 0 {
            meta["continue"] = start.token(self.last).into();
            if !scope.is_selective() {
                meta["remainingItemCount"] = self.left.into();
            }
        } else if custom {
            // Lists of custom resources write it out even when there is nothing to go on with.
            meta["continue"] = "".into();
        }
        meta
    }
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

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
fn snapshot(store: &Store, resource: &Resource, start: &Start) -> Result<Option<Snapshot>> {
    let at = start.revision;
    if at == store.revision {
        return Ok(None);
    }
    let past = store.collection(resource).at(at);
    past.map(Some).ok_or_else(|| match start.after {
        Some(_) => ApiError::expired(CONTINUE_EXPIRED),
        None => ApiError::expired(format!(
            "The resourceVersion for the provided list is too old. (requested {at})"
        )),
    })
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
