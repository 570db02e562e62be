//! Server-side apply: merge, prune, find conflicts, update the owners.

use serde_json::{Value, json};

use super::compare::FieldComparison;
use super::field_set::{FieldSet, fields_of_value, format_path, remove_fields};
use super::managed_fields::{
    FieldWriter, ManagedFieldsEntry, ManagerOperation, compare_for_writer, empty_object,
    parse_entries, unowned_fields, write_entries,
};
use super::merge::merge_values;
use crate::api::schema::SchemaType;
use crate::api::status::{ApiError, ApiResult};

/// Merges `config` into `live` and returns the new object with its managed fields. `live` is None
/// when the apply creates the object.
pub(crate) fn apply_configuration<'a>(
    live: Option<&'a Value>,
    config: &'a Value,
    writer: &FieldWriter<'_>,
    force: bool,
    ty: SchemaType<'a>,
) -> ApiResult<Value> {
    let empty = json!({ "metadata": {} });
    let (merged, mut known) = {
        let base = live.unwrap_or(&empty);
        let merged = merge_values(base, config, ty).map_err(|why| {
            ApiError::without_reason(500, format!("failed to create typed patch object: {why}"))
        })?;
        let known = match live.map(parse_entries) {
            Some(known) if known.is_empty() => before_first_apply(base, writer, ty),
            Some(known) => known,
            None => Vec::new(),
        };
        (merged, known)
    };
    let wanted = fields_of_value(config, ty).without_trees(writer.reset);
    let place = known
        .iter()
        .position(|entry| entry.belongs_to(writer, ManagerOperation::Apply));
    let last = place.map(|place| known.remove(place));
    let pruned = match &last {
        Some(last) if !last.fields.is_empty() => {
            prune_unapplied_fields(&merged, &last.fields, &wanted, &known, ty)
        }
        Some(_) | None => merged.clone(),
    };
    let comparison = match live {
        Some(live) => compare_for_writer(live, &pruned, ty, writer),
        None => FieldComparison::default(),
    };
    let changed = comparison.modified.union(&comparison.added);
    let conflicts = find_conflicts(&known, &changed);
    if !force && !conflicts.is_empty() {
        return Err(conflict_error(&conflicts));
    }
    for entry in &mut known {
        entry.fields = entry
            .fields
            .difference(&changed)
            .difference(&comparison.removed);
    }
    let same = live.is_some() && changed.is_empty() && comparison.removed.is_empty();
    let time = if same {
        last.and_then(|last| last.time)
    } else {
        Some(writer.now.into())
    };
    known.push(ManagedFieldsEntry {
        manager: writer.manager.into(),
        operation: ManagerOperation::Apply,
        api_version: writer.api_version.into(),
        subresource: writer.subresource.into(),
        time,
        fields: wanted.difference(&unowned_fields()),
    });
    let mut out = pruned;
    write_entries(&mut out, &known, Vec::new());
    Ok(out)
}

/// Returns an entry for all existing fields if the object has no managed fields yet.
fn before_first_apply(
    live: &Value,
    writer: &FieldWriter<'_>,
    ty: SchemaType<'_>,
) -> Vec<ManagedFieldsEntry> {
    let base = empty_object(matches!(
        ty,
        SchemaType::Custom { .. } | SchemaType::Unknown
    ));
    let comparison = compare_for_writer(&base, live, ty, writer);
    let fields = comparison
        .modified
        .union(&comparison.added)
        .difference(&unowned_fields());
    let first = ManagedFieldsEntry {
        manager: "before-first-apply".into(),
        operation: ManagerOperation::Update,
        api_version: writer.api_version.into(),
        subresource: writer.subresource.into(),
        time: Some(writer.now.into()),
        fields,
    };
    [first]
        .into_iter()
        .filter(|entry| !entry.fields.is_empty())
        .collect()
}

/// Removes what the manager applied last time and not this time, unless another manager owns it or
/// something below it.
fn prune_unapplied_fields<'a>(
    merged: &'a Value,
    last: &FieldSet,
    wanted: &FieldSet,
    others: &[ManagedFieldsEntry],
    ty: SchemaType<'a>,
) -> Value {
    let all = fields_of_value(merged, ty);
    let all_named = all.with_declared(ty);
    let last_named = last.with_declared(ty);
    let without = remove_fields(merged, &last_named, ty);
    let owned = others
        .iter()
        .fold(wanted.clone(), |all, entry| all.union(&entry.fields));
    let kept = fields_of_value(&without, ty)
        .with_declared(ty)
        .union(&owned.with_declared(ty));
    let with_owned = remove_fields(merged, &all_named.difference(&kept), ty);
    let left = fields_of_value(&with_owned, ty).with_declared(ty);
    // Fields that nobody ever applied stay: only what this manager had applied may be removed.
    remove_fields(
        merged,
        &all_named.difference(&left).intersection(&last_named),
        ty,
    )
}

fn find_conflicts(known: &[ManagedFieldsEntry], changed: &FieldSet) -> Vec<(String, String)> {
    let mut sorted: Vec<&ManagedFieldsEntry> = known.iter().collect();
    sorted.sort_by_key(|entry| {
        (
            entry.manager.clone(),
            entry.operation,
            entry.subresource.clone(),
        )
    });
    let mut out = Vec::new();
    for entry in sorted {
        let clash = entry.fields.intersection(changed);
        out.extend(
            clash
                .list_paths()
                .iter()
                .map(|path| (entry.describe_manager(), format_path(path))),
        );
    }
    out
}

fn conflict_error(conflicts: &[(String, String)]) -> ApiError {
    let cause = |(manager, field): &(String, String)| json!({ "reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": field });
    let causes: Vec<Value> = conflicts.iter().map(cause).collect();
    if let [(manager, field)] = conflicts {
        return ApiError::apply_conflict(
            format!("Apply failed with 1 conflict: conflict with {manager}: {field}"),
            &causes,
        );
    }
    let mut lines: Vec<String> = Vec::new();
    let mut last = "";
    for (manager, field) in conflicts {
        if manager != last {
            lines.push(format!("conflicts with {manager}:"));
            last = manager;
        }
        lines.push(format!("- {field}"));
    }
    ApiError::apply_conflict(
        format!(
            "Apply failed with {} conflicts: {}",
            conflicts.len(),
            lines.join("\n")
        ),
        &causes,
    )
}
