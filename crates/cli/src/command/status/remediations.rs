//! Reads the remediations of a status.

use dogwatch_core::explain::{RemediationReportInput, RemediationRow, remediation_rows};
use dogwatch_k8s::fleet::RemediationsFound;

use super::{StatusPart, StatusScope};
use crate::cluster::{ConnectedCluster, current_time};
use crate::command::remediations::read_remediations;
use crate::exit::CommandFailure;

/// The rows of the remediations in scope. In a status of all parts, remediations that cannot be
/// read are left out.
pub async fn read_remediation_rows(
    connected: &ConnectedCluster,
    scope: &StatusScope,
    unreadable: &mut Vec<String>,
) -> Result<Vec<RemediationRow>, CommandFailure> {
    if scope.part == Some(StatusPart::Remediations) {
        let rows = build_remediation_rows(&read_remediations(connected).await?, scope);
        if rows.is_empty() {
            eprintln!(
                "dogwatch: {}",
                no_remediations_text(scope.namespace.as_deref())
            );
        }
        return Ok(rows);
    }
    if !scope.includes_part(StatusPart::Remediations) {
        return Ok(Vec::new());
    }
    match connected.fleet.read_remediations().await {
        Ok(RemediationsFound::There(view)) => Ok(build_remediation_rows(&view, scope)),
        Ok(RemediationsFound::NoKind) => Ok(Vec::new()),
        Err(error) => {
            let missing = format!("the remediations cannot be shown: {}", error.error_chain());
            unreadable.push(missing);
            Ok(Vec::new())
        }
    }
}

fn no_remediations_text(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("no remediation is under way in namespace {namespace}"),
        None => "no remediation is under way in this cluster".into(),
    }
}

/// The remediations of the namespace in scope. A status of all parts shows only those under way.
pub fn build_remediation_rows(
    view: &RemediationReportInput,
    scope: &StatusScope,
) -> Vec<RemediationRow> {
    let is_alone = scope.part == Some(StatusPart::Remediations);
    let is_in_scope = |row: &RemediationRow| {
        let wanted = scope.namespace.as_ref();
        let is_there = wanted.is_none_or(|wanted| row.namespace.as_ref() == Some(wanted));
        is_there && (is_alone || row.under_way)
    };
    let rows = remediation_rows(view, current_time()).into_iter();
    rows.filter(is_in_scope).collect()
}
