//! Prints YAML for `kubectl apply`, with everything else as comments above it.

use std::io::Write;

use dogwatch_api::reboot_policy::RebootPolicy;
use dogwatch_core::kured::{KuredTranslation, TranslatedSetting};
use serde_json::{Value, json};

use super::daemonset::KuredDaemonSet;
use crate::exit::CommandFailure;
use crate::output;
use dogwatch_core::printable::printable_text;

/// Renders everything as one document for programs.
pub fn render_document(policy: &RebootPolicy, plan: &KuredTranslation) -> Value {
    let row = |row: &TranslatedSetting| json!({ "setting": row.setting, "fate": row.outcome.as_str(), "becomes": row.becomes });
    json!({
        "policy": render_policy(policy),
        "coordinatorFlags": plan.flags,
        "settings": plan.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Writes the YAML for people and for `kubectl apply -f -`.
pub fn write_commented_yaml(
    out: &mut impl Write,
    daemon: &KuredDaemonSet,
    policy: &RebootPolicy,
    plan: &KuredTranslation,
) -> Result<(), CommandFailure> {
    writeln!(
        out,
        "# From kured {}, by `dogwatch migrate kured`.",
        printable_text(&daemon.namespaced_name())
    )?;
    writeln!(
        out,
        "#\n# Flags of the coordinator (args of its DaemonSet):"
    )?;
    for flag in &plan.flags {
        writeln!(out, "#   - {}", json!(flag))?;
    }
    writeln!(out, "#\n# How each setting was translated:")?;
    for row in &plan.rows {
        let setting = printable_text(&row.setting);
        writeln!(
            out,
            "#   {setting}\n#     {}: {}",
            row.outcome.as_str(),
            printable_text(&row.becomes)
        )?;
    }
    writeln!(
        out,
        "#\n# This policy is PAUSED, so that kured and Dogwatch never both act. Remove `paused` when kured is\n\
         # gone: docs/migrate-from-kured.md has the steps."
    )?;
    if plan.paused.is_some() {
        writeln!(
            out,
            "# The reason of the pause also names the settings that have no equivalent: correct them first."
        )?;
    }
    output::write_yaml(out, &render_policy(policy))
}

/// Leaves out the empty fields of the metadata.
fn render_policy(policy: &RebootPolicy) -> Value {
    json!({
        "apiVersion": policy.api_version,
        "kind": policy.kind,
        "metadata": { "name": policy.metadata.name },
        "spec": policy.spec,
    })
}
