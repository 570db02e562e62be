//! What is printed: YAML that `kubectl apply` takes, with everything else as comments above it.

use std::io::Write;

use dogwatch_api::reboot_policy::RebootPolicy;
use dogwatch_core::kured::{Plan, Row};
use serde_json::{Value, json};

use super::daemonset::Daemon;
use crate::exit::Failure;
use crate::output;
use crate::table::printable;

/// Everything, for programs.
pub fn document(policy: &RebootPolicy, plan: &Plan) -> Value {
    let row = |row: &Row| json!({ "setting": row.setting, "fate": row.fate.words(), "becomes": row.becomes });
    json!({
        "policy": object(policy),
        "coordinatorFlags": plan.flags,
        "settings": plan.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// For people, and for `kubectl apply -f -`.
pub fn commented(
    out: &mut impl Write,
    daemon: &Daemon,
    policy: &RebootPolicy,
    plan: &Plan,
) -> Result<(), Failure> {
    writeln!(
        out,
        "# From kured {}, by `dogwatch migrate kured`.",
        printable(&daemon.called())
    )?;
    writeln!(
        out,
        "#\n# Flags of the coordinator (args of its DaemonSet):"
    )?;
    for flag in &plan.flags {
        writeln!(out, "#   - {}", json!(flag))?;
    }
    writeln!(out, "#\n# What became of each setting:")?;
    for row in &plan.rows {
        let setting = printable(&row.setting);
        writeln!(
            out,
            "#   {setting}\n#     {}: {}",
            row.fate.words(),
            printable(&row.becomes)
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
            "# Its reason also names what was not taken over from kured: correct that first."
        )?;
    }
    output::yaml(out, &object(policy))
}

/// Without the metadata's empty fields.
fn object(policy: &RebootPolicy) -> Value {
    json!({
        "apiVersion": policy.api_version,
        "kind": policy.kind,
        "metadata": { "name": policy.metadata.name },
        "spec": policy.spec,
    })
}
