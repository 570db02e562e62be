//! `metadata.managedFields`: who owns which field, kept up to date by every write.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::compare::Comparison;
use super::paths::FieldSet;
use crate::api::schema::Type;
use crate::api::value::{items, meta_mut, text};

/// Update entries of an object beyond which the oldest are thrown together.
const MAX_UPDATE_ENTRIES: usize = 10;

/// How a manager wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// Server-side apply.
    Apply,
    /// Everything else.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who writes, and where.
#[derive(Debug, Clone)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) api_version: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) now: &'a str,
    /// What a write to this path can not change, so that it is never owned through it.
    pub(crate) reset: &'a FieldSet,
}

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) fields: FieldSet,
}

impl Entry {
    fn parse(entry: &Value) -> Self {
        Self {
            fields: FieldSet::parse(&entry["fieldsV1"]),
            ..Self::head(entry)
        }
    }

    /// All but the fields.
    fn head(entry: &Value) -> Self {
        Self {
            manager: text(entry, &["manager"]).into(),
            operation: if text(entry, &["operation"]) == "Apply" {
                Operation::Apply
            } else {
                Operation::Update
            },
            api_version: text(entry, &["apiVersion"]).into(),
            subresource: text(entry, &["subresource"]).into(),
            time: entry.get("time").and_then(Value::as_str).map(Into::into),
            fields: FieldSet::default(),
        }
    }

    fn to_value(&self) -> Value {
        let mut out = json!({
            "manager": self.manager,
            "operation": self.operation.as_str(),
            "apiVersion": self.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_fields(),
        });
        if let Some(time) = &self.time {
            out["time"] = time.as_str().into();
        }
        if !self.subresource.is_empty() {
            out["subresource"] = self.subresource.as_str().into();
        }
        out
    }

    /// Whether this is the entry that `writer` writes into.
    pub(super) fn belongs_to(&self, writer: &Writer<'_>, operation: Operation) -> bool {
        self.manager == writer.manager
            && self.operation == operation
            && self.subresource == writer.subresource
            && (operation == Operation::Apply || self.api_version == writer.api_version)
    }

    /// As conflict messages name it.
    pub(super) fn described(&self) -> String {
        let mut out = format!("\"{}\"", self.manager);
        if !self.subresource.is_empty() {
            out = format!("{out} with subresource \"{}\"", self.subresource);
        }
        match self.operation {
            Operation::Apply => out,
            Operation::Update => format!("{out} using {}", self.api_version),
        }
    }
}

/// The entries of an object. Kept as read while a write does not touch them.
pub(super) fn entries(object: &Value) -> Vec<Entry> {
    items(object, &["metadata", "managedFields"])
        .iter()
        .map(Entry::parse)
        .collect()
}

/// Writes the entries down in the order of the real server; empty ones are left out.
pub(super) fn store(object: &mut Value, entries: &[Entry], mut list: Vec<Value>) {
    list.extend(
        entries
            .iter()
            .filter(|entry| !entry.fields.is_empty())
            .map(Entry::to_value),
    );
    // "Apply" comes before "Update" by the alphabet, too.
    let key = |entry: &Value| {
        ["operation", "time", "manager", "apiVersion", "subresource"]
            .map(|field| text(entry, &[field]).to_owned())
    };
    list.sort_by_cached_key(key);
    let meta = meta_mut(object);
    if list.is_empty() {
        meta.remove("managedFields");
    } else {
        meta.insert("managedFields".into(), list.into());
    }
}

/// Fields that nobody owns.
pub(super) fn unowned() -> FieldSet {
    let meta = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let meta: Map<String, Value> = meta
        .iter()
        .map(|name| (format!("f:{name}"), json!({})))
        .chain([(".".to_owned(), json!({}))])
        .collect();
    FieldSet::parse(&json!({ "f:apiVersion": {}, "f:kind": {}, "f:metadata": meta }))
}

/// What an object that is not there yet looks like to a comparison: structs that Go always writes
/// out are there, so that nobody comes to own them as such.
pub(super) fn nothing(custom: bool) -> Value {
    if custom {
        return json!({ "metadata": {} });
    }
    let pod = json!({ "containers": null });
    let mut spec = pod.clone();
    spec["names"] = json!({});
    spec["source"] = json!({});
    spec["strategy"] = json!({});
    spec["updateStrategy"] = json!({});
    spec["template"] = json!({ "metadata": {}, "spec": pod });
    let mut object = json!({ "metadata": {}, "source": {}, "spec": spec, "status": {} });
    for time in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        object[time] = Value::Null;
    }
    for text in ["reportingComponent", "reportingInstance"] {
        object[text] = "".into();
    }
    object
}

/// Whether the writer asks for the managed fields to be thrown away.
fn asks_for_reset(object: &Value) -> bool {
    let Some(list) = object["metadata"]
        .get("managedFields")
        .and_then(Value::as_array)
    else {
        return false;
    };
    list.is_empty() || matches!(list.as_slice(), [Value::Object(only)] if only.is_empty())
}

/// Notes in `new` what its writer changed against `old` (None: created).
///
/// Most writes touch the fields of one manager: the entries of the others stay as they are, unread.
pub(crate) fn track_update<'a>(
    old: Option<&'a Value>,
    new: &mut Value,
    writer: &Writer<'_>,
    ty: Type<'a>,
    custom: bool,
) {
    let Some(noted) = noted(old, new, writer) else {
        meta_mut(new).remove("managedFields");
        return;
    };
    let (changed, removed) = {
        let base = old.map_or_else(|| Cow::Owned(nothing(custom)), Cow::Borrowed);
        let comparison = compare(&base, new, ty, writer);
        (
            comparison.modified.union(&comparison.added),
            comparison.removed,
        )
    };
    let taken = changed.difference(&unowned());
    let touched = changed.union(&removed);
    let opens = |raw: &Value| {
        touched.meets(&raw["fieldsV1"])
            || (!taken.is_empty() && Entry::head(raw).belongs_to(writer, Operation::Update))
    };
    let (opened, kept): (Vec<Value>, Vec<Value>) = noted.into_iter().partition(opens);
    let mut opened: Vec<Entry> = opened.iter().map(Entry::parse).collect();
    for entry in &mut opened {
        entry.fields = entry.fields.difference(&touched);
    }
    if !taken.is_empty() {
        add(&mut opened, taken, writer);
    }
    cap_and_store(new, opened, kept);
}

/// The entries that a write starts from. None when nobody is to be noted: an object whose fields
/// nobody managed stays that way until somebody applies.
fn noted(old: Option<&Value>, new: &Value, writer: &Writer<'_>) -> Option<Vec<Value>> {
    let own = |object: &Value| items(object, &["metadata", "managedFields"]).to_vec();
    let sent = own(new);
    let list = match old {
        _ if asks_for_reset(new) && writer.subresource.is_empty() => Vec::new(),
        Some(old) if !writer.subresource.is_empty() || sent.is_empty() => own(old),
        Some(_) | None => sent,
    };
    (old.is_none() || !list.is_empty()).then_some(list)
}

fn cap_and_store(object: &mut Value, mut opened: Vec<Entry>, kept: Vec<Value>) {
    if opened.len() + kept.len() > MAX_UPDATE_ENTRIES {
        opened.extend(kept.iter().map(Entry::parse));
        cap(&mut opened);
        store(object, &opened, Vec::new());
    } else {
        store(object, &opened, kept);
    }
}

pub(super) fn compare(old: &Value, new: &Value, ty: Type<'_>, writer: &Writer<'_>) -> Comparison {
    Comparison::of(old, new, ty).without_trees(writer.reset)
}

fn add(known: &mut Vec<Entry>, fields: FieldSet, writer: &Writer<'_>) {
    match known
        .iter_mut()
        .find(|entry| entry.belongs_to(writer, Operation::Update))
    {
        Some(entry) => {
            entry.fields = entry.fields.union(&fields);
            entry.time = Some(writer.now.into());
        }
        None => known.push(Entry {
            manager: writer.manager.into(),
            operation: Operation::Update,
            api_version: writer.api_version.into(),
            subresource: writer.subresource.into(),
            time: Some(writer.now.into()),
            fields,
        }),
    }
}

/// Throws the oldest updates together when there are too many of them.
fn cap(known: &mut Vec<Entry>) {
    known.retain(|entry| !entry.fields.is_empty());
    let updates = known
        .iter()
        .filter(|entry| entry.operation == Operation::Update)
        .count();
    if updates <= MAX_UPDATE_ENTRIES {
        return;
    }
    known.sort_by_key(|entry| (entry.operation, entry.time.clone(), entry.manager.clone()));
    let first = known
        .iter()
        .position(|entry| entry.operation == Operation::Update)
        .unwrap_or(0);
    let mut ancient = known[first].clone();
    for entry in known.drain(first..=first + updates - MAX_UPDATE_ENTRIES) {
        ancient.fields = ancient.fields.union(&entry.fields);
        ancient.time = entry.time;
    }
    ancient.manager = "ancient-changes".into();
    ancient.subresource = String::new();
    known.push(ancient);
}
