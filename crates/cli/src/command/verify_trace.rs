//! Implements `dogwatch verify-trace`: recounts the promises from decision logs.

use std::path::PathBuf;

use dogwatch_core::verify::trace::{read_trace_line, write_of_trace_line};

use super::recount::recount_files;
use crate::exit::CommandFailure;

#[derive(Debug, clap::Args)]
pub struct VerifyTraceArgs {
    /// Decision logs of all coordinators of one cluster, as --decision-log writes them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub fn run(args: &VerifyTraceArgs) -> Result<(), CommandFailure> {
    recount_files(&args.files, |file, line, text| {
        let trace = read_trace_line(line, text).map_err(|error| error.to_string())?;
        Ok(trace.and_then(|trace| write_of_trace_line(file, line, &trace)))
    })
}
