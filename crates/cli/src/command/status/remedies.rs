//! The remediations of a status.

use dogwatch_core::explain::{RemedyRow, RemedyView, remedy_rows};
use dogwatch_k8s::fleet::RemediesFound;

use super::{Scope, What};
use crate::cluster::{Connected, now};
use crate::command::remedies::look;
use crate::exit::Failure;

/// The rows of the remediations in scope. Beside nodes and locks they are left out where they cannot be had.
pub async fn read(connected: &Connected, scope: &Scope) -> Result<Vec<RemedyRow>, Failure> {
    if scope.what == Some(What::Remediations) {
        let rows = rows(&look(connected).await?, scope);
        if rows.is_empty() {
            eprintln!("dogwatch: {}", nothing(scope.namespace.as_deref()));
        }
        return Ok(rows);
    }
    if !scope.wants(What::Remediations) {
        return Ok(Vec::new());
    }
    match connected.fleet.remedies().await {
        Ok(RemediesFound::There(view)) => Ok(rows(&view, scope)),
        Ok(RemediesFound::NoKind) => Ok(Vec::new()),
        Err(error) => {
            eprintln!("dogwatch: shown without remediations: {}", error.in_words());
            Ok(Vec::new())
        }
    }
}

fn nothing(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("no remediation is under way in namespace {namespace}"),
        None => "no remediation is under way in this cluster".into(),
    }
}

/// Those of the namespace in scope. Beside nodes and locks only what is under way is shown.
pub fn rows(view: &RemedyView, scope: &Scope) -> Vec<RemedyRow> {
    let is_alone = scope.what == Some(What::Remediations);
    let is_in_scope = |row: &RemedyRow| {
        let wanted = scope.namespace.as_ref();
        let is_there = wanted.is_none_or(|wanted| row.namespace.as_ref() == Some(wanted));
        is_there && (is_alone || row.under_way)
    };
    let rows = remedy_rows(view, now()).into_iter();
    rows.filter(is_in_scope).collect()
}
