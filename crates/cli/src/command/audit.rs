//! Implements `dogwatch audit`: recounts the promises from an API server's audit log alone.

use std::path::PathBuf;

use dogwatch_core::verify::audit::read_audit_line;

use super::recount::recount_files;
use crate::exit::CommandFailure;

#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// Audit logs of kube-apiserver: one Event a line, nodes and leases at level RequestResponse
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub fn run(args: &AuditArgs) -> Result<(), CommandFailure> {
    recount_files(&args.files, |file, line, text| {
        read_audit_line(file, line, text).map_err(|error| error.to_string())
    })
}
