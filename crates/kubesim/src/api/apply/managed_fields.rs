//! `metadata.managedFields`: the owner of each field, updated by every write.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::compare::FieldComparison;
use super::field_set::FieldSet;
use crate::api::schema::SchemaType;
use crate::api::value::{list_at, meta_mut, text_at};

/// The most Update entries an object keeps; beyond this the oldest are merged into one.
const MAX_UPDATE_ENTRIES: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ManagerOperation {
    /// Server-side apply.
    Apply,
    Update,
}

impl ManagerOperation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct FieldWriter<'a> {
    pub(crate) manager: &'a str,
    pub(crate) api_version: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) now: &'a str,
    /// Fields that a write to this path cannot change; the writer never owns them.
    pub(crate) reset: &'a FieldSet,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ManagedFieldsEntry {
    pub(super) manager: String,
    pub(super) operation: ManagerOperation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) fields: FieldSet,
}

impl ManagedFieldsEntry {
    fn parse(entry: &Value) -> Self {
        Self {
            fields: FieldSet::parse(&entry["fieldsV1"]),
            ..Self::parse_without_fields(entry)
        }
    }

    /// Parses everything but the fields.
    fn parse_without_fields(entry: &Value) -> Self {
        Self {
            manager: text_at(entry, &["manager"]).into(),
            operation: if text_at(entry, &["operation"]) == "Apply" {
                ManagerOperation::Apply
            } else {
                ManagerOperation::Update
            },
            api_version: text_at(entry, &["apiVersion"]).into(),
            subresource: text_at(entry, &["subresource"]).into(),
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

    /// Whether `writer` writes into this entry.
    pub(super) fn belongs_to(&self, writer: &FieldWriter<'_>, operation: ManagerOperation) -> bool {
        self.manager == writer.manager
            && self.operation == operation
            && self.subresource == writer.subresource
            && (operation == ManagerOperation::Apply || self.api_version == writer.api_version)
    }

    /// The manager as conflict messages name it.
    pub(super) fn describe_manager(&self) -> String {
        let mut out = format!("\"{}\"", self.manager);
        if !self.subresource.is_empty() {
            out = format!("{out} with subresource \"{}\"", self.subresource);
        }
        match self.operation {
            ManagerOperation::Apply => out,
            ManagerOperation::Update => format!("{out} using {}", self.api_version),
        }
    }
}

/// The entries of an object. Their fields stay unparsed until a write touches them.
pub(super) fn parse_entries(object: &Value) -> Vec<ManagedFieldsEntry> {
    list_at(object, &["metadata", "managedFields"])
        .iter()
        .map(ManagedFieldsEntry::parse)
        .collect()
}

/// Writes the entries in the real server's order and leaves out empty ones.
pub(super) fn write_entries(
    object: &mut Value,
    entries: &[ManagedFieldsEntry],
    mut list: Vec<Value>,
) {
    list.extend(
        entries
            .iter()
            .filter(|entry| !entry.fields.is_empty())
            .map(ManagedFieldsEntry::to_value),
    );
    // "Apply" also comes before "Update" alphabetically.
    let key = |entry: &Value| {
        ["operation", "time", "manager", "apiVersion", "subresource"]
            .map(|field| text_at(entry, &[field]).to_owned())
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
pub(super) fn unowned_fields() -> FieldSet {
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

/// The empty object that a create is compared with. It has the structs that Go always writes out,
/// so that nobody owns these as such.
pub(super) fn empty_object(custom: bool) -> Value {
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

/// Whether the writer asks to clear the managed fields.
fn asks_for_reset(object: &Value) -> bool {
    let Some(list) = object["metadata"]
        .get("managedFields")
        .and_then(Value::as_array)
    else {
        return false;
    };
    list.is_empty() || matches!(list.as_slice(), [Value::Object(only)] if only.is_empty())
}

/// Records in `new` which fields the writer changed against `old` (None: created).
///
/// Most writes touch the fields of one manager: the entries of the others stay unparsed.
pub(crate) fn track_update<'a>(
    old: Option<&'a Value>,
    new: &mut Value,
    writer: &FieldWriter<'_>,
    ty: SchemaType<'a>,
    custom: bool,
) {
    let Some(noted) = entries_to_update(old, new, writer) else {
        meta_mut(new).remove("managedFields");
        return;
    };
    let (changed, removed) = {
        let base = old.map_or_else(|| Cow::Owned(empty_object(custom)), Cow::Borrowed);
        let comparison = compare_for_writer(&base, new, ty, writer);
        (
            comparison.modified.union(&comparison.added),
            comparison.removed,
        )
    };
    let taken = changed.difference(&unowned_fields());
    let touched = changed.union(&removed);
    let opens = |raw: &Value| {
        touched.overlaps_fields(&raw["fieldsV1"])
            || (!taken.is_empty()
                && ManagedFieldsEntry::parse_without_fields(raw)
                    .belongs_to(writer, ManagerOperation::Update))
    };
    let (opened, kept): (Vec<Value>, Vec<Value>) = noted.into_iter().partition(opens);
    let mut opened: Vec<ManagedFieldsEntry> =
        opened.iter().map(ManagedFieldsEntry::parse).collect();
    for entry in &mut opened {
        entry.fields = entry.fields.difference(&touched);
    }
    if !taken.is_empty() {
        add_update_entry(&mut opened, taken, writer);
    }
    cap_and_store(new, opened, kept);
}

/// The entries that a write starts from. None when ownership is not tracked: an object without
/// managed fields stays that way until somebody applies.
fn entries_to_update(
    old: Option<&Value>,
    new: &Value,
    writer: &FieldWriter<'_>,
) -> Option<Vec<Value>> {
    let own = |object: &Value| list_at(object, &["metadata", "managedFields"]).to_vec();
    let sent = own(new);
    let list = match old {
        _ if asks_for_reset(new) && writer.subresource.is_empty() => Vec::new(),
        Some(old) if !writer.subresource.is_empty() || sent.is_empty() => own(old),
        Some(_) | None => sent,
    };
    (old.is_none() || !list.is_empty()).then_some(list)
}

fn cap_and_store(object: &mut Value, mut opened: Vec<ManagedFieldsEntry>, kept: Vec<Value>) {
    if opened.len() + kept.len() > MAX_UPDATE_ENTRIES {
        opened.extend(kept.iter().map(ManagedFieldsEntry::parse));
        cap_update_entries(&mut opened);
        write_entries(object, &opened, Vec::new());
    } else {
        write_entries(object, &opened, kept);
    }
}

pub(super) fn compare_for_writer(
    old: &Value,
    new: &Value,
    ty: SchemaType<'_>,
    writer: &FieldWriter<'_>,
) -> FieldComparison {
    FieldComparison::compare_objects(old, new, ty).without_trees(writer.reset)
}

fn add_update_entry(
    known: &mut Vec<ManagedFieldsEntry>,
    fields: FieldSet,
    writer: &FieldWriter<'_>,
) {
    match known
        .iter_mut()
        .find(|entry| entry.belongs_to(writer, ManagerOperation::Update))
    {
        Some(entry) => {
            entry.fields = entry.fields.union(&fields);
            entry.time = Some(writer.now.into());
        }
        None => known.push(ManagedFieldsEntry {
            manager: writer.manager.into(),
            operation: ManagerOperation::Update,
            api_version: writer.api_version.into(),
            subresource: writer.subresource.into(),
            time: Some(writer.now.into()),
            fields,
        }),
    }
}

/// Merges the oldest Update entries when there are too many.
fn cap_update_entries(known: &mut Vec<ManagedFieldsEntry>) {
    known.retain(|entry| !entry.fields.is_empty());
    let updates = known
        .iter()
        .filter(|entry| entry.operation == ManagerOperation::Update)
        .count();
    if updates <= MAX_UPDATE_ENTRIES {
        return;
    }
    known.sort_by_key(|entry| (entry.operation, entry.time.clone(), entry.manager.clone()));
    let first = known
        .iter()
        .position(|entry| entry.operation == ManagerOperation::Update)
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
