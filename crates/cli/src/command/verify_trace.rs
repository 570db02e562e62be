//! Implements `dogwatch verify-trace`: recounts the promises from decision logs.

use std::path::PathBuf;

use dogwatch_core::verify::recount_power;
use dogwatch_core::verify::trace::{REBOOT_DOMAIN, read_trace_line, write_of_trace_line};

use super::recount::{UnreadableLines, finish_recount, read_lines_of_files};
use crate::exit::CommandFailure;

#[derive(Debug, clap::Args)]
pub struct VerifyTraceArgs {
    /// Decision logs of all coordinators and controllers of one cluster, as --decision-log writes them;
    /// FILE.1 before FILE
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub fn run(args: &VerifyTraceArgs) -> Result<(), CommandFailure> {
    let (mut writes, mut lines) = (Vec::new(), Vec::new());
    read_lines_of_files(&args.files, |file, line, bytes| {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| format!("line {line} is not UTF-8"))?;
        let trace = read_trace_line(line, text).map_err(|error| error.to_string())?;
        let Some(trace) = trace else {
            return Ok(());
        };
        writes.extend(write_of_trace_line(file, line, &trace));
        if trace.domain != REBOOT_DOMAIN {
            lines.push((file, line, trace));
        }
        Ok(())
    })?;
    let power = lines
        .iter()
        .map(|(file, line, trace)| (*file, *line, trace));
    let power = recount_power(power);
    finish_recount(&args.files, writes, power, &UnreadableLines::default())
}
