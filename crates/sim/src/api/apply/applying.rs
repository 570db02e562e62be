//! Apply itself: merge, prune, find conflicts, settle the owners.

use serde_json::{Value, json};

use super::compare::Comparison;
use super::managed::{Entry, Operation, Writer, compare, entries, nothing, store, unowned};
use super::merge::merge;
use super::paths::{FieldSet, display, of_value, remove};
use crate::api::schema::Type;
use crate::api::status::{ApiError, Result};

/// Lays `config` over `live`: the new object with its managed fields. `live` is None when the
/// apply makes the object.
pub(crate) fn apply<'a>(
    live: Option<&'a Value>,
    config: &'a Value,
    writer: &Writer<'_>,
    force: bool,
    ty: Type<'a>,
) -> Result<Value> {
    let empty = json!({ "metadata": {} });
    let (merged, mut known) = {
        let base = live.unwrap_or(&empty);
        let merged = merge(base, config, ty).map_err(|why| {
            ApiError::plain(500, format!("failed to create typed patch object: {why}"))
        })?;
        let known = match live.map(entries) {
            Some(known) if known.is_empty() => before_first_apply(base, writer, ty),
            Some(known) => known,
            None => Vec::new(),
        };
        (merged, known)
    };
    let wanted = of_value(config, ty).without_trees(writer.reset);
    let place = known
        .iter()
        .position(|entry| entry.belongs_to(writer, Operation::Apply));
    let last = place.map(|place| known.remove(place));
    let pruned = match &last {
        Some(last) if !last.fields.is_empty() => prune(&merged, &last.fields, &wanted, &known, ty),
        Some(_) | None => merged.clone(),
    };
    let comparison = match live {
        Some(live) => compare(live, &pruned, ty, writer),
        None => Comparison::default(),
    };
    let changed = comparison.modified.union(&comparison.added);
    let conflicts = conflicts(&known, &changed);
    if !force && !conflicts.is_empty() {
        return Err(refuse(&conflicts));
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
    known.push(Entry {
        manager: writer.manager.into(),
        operation: Operation::Apply,
        api_version: writer.api_version.into(),
        subresource: writer.subresource.into(),
        time,
        fields: wanted.difference(&unowned()),
    });
    let mut out = pruned;
    store(&mut out, &known, Vec::new());
    Ok(out)
}

/// Everything that is there when nobody was ever noted as its owner.
fn before_first_apply(live: &Value, writer: &Writer<'_>, ty: Type<'_>) -> Vec<Entry> {
    let base = nothing(matches!(ty, Type::Custom { .. } | Type::Unknown));
    let comparison = compare(&base, live, ty, writer);
    let fields = comparison
        .modified
        .union(&comparison.added)
        .difference(&unowned());
    let first = Entry {
        manager: "before-first-apply".into(),
        operation: Operation::Update,
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

/// Takes away what the manager applied last time and not this time, unless somebody else owns it
/// or something below it.
fn prune<'a>(
    merged: &'a Value,
    last: &FieldSet,
    wanted: &FieldSet,
    others: &[Entry],
    ty: Type<'a>,
) -> Value {
    let all = of_value(merged, ty);
    let all_named = all.with_declared(ty);
    let last_named = last.with_declared(ty);
    let without = remove(merged, &last_named, ty);
    let owned = others
        .iter()
        .fold(wanted.clone(), |all, entry| all.union(&entry.fields));
    let kept = of_value(&without, ty)
        .with_declared(ty)
        .union(&owned.with_declared(ty));
    let with_owned = remove(merged, &all_named.difference(&kept), ty);
    let left = of_value(&with_owned, ty).with_declared(ty);
    // What nobody ever applied does not dangle: only what this manager had applied may go.
    remove(
        merged,
        &all_named.difference(&left).intersection(&last_named),
        ty,
    )
}

fn conflicts(known: &[Entry], changed: &FieldSet) -> Vec<(String, String)> {
    let mut sorted: Vec<&Entry> = known.iter().collect();
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
                .paths()
                .iter()
                .map(|path| (entry.described(), display(path))),
        );
    }
    out
}

fn refuse(conflicts: &[(String, String)]) -> ApiError {
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
