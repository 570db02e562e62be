//! What `dogwatch audit` and `dogwatch verify-trace` share: reading lines, and saying what was found.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::PathBuf;

use dogwatch_core::verify::audit::MAX_LINE_BYTES;
use dogwatch_core::verify::{
    BrokenRule, ClusterWrite, PowerRecount, RecountResult, recount_writes,
};

use crate::exit::{CliExitCode, CommandFailure};
use crate::output;
use dogwatch_core::printable::printable_text;

/// Reads the writes that every line of every file tells of, judges them, and prints the recount.
pub(super) fn recount_files(
    files: &[PathBuf],
    read_line: impl Fn(usize, usize, &str) -> Result<Option<ClusterWrite>, String>,
) -> Result<(), CommandFailure> {
    let mut writes = Vec::new();
    read_lines_of_files(files, |file, line, text| {
        writes.extend(read_line(file, line, text)?);
        Ok(())
    })?;
    finish_recount(files, writes, PowerRecount::default())
}

/// Reads every line of every file. A last line without its end is left out: it may still be
/// written.
pub(super) fn read_lines_of_files(
    files: &[PathBuf],
    mut take: impl FnMut(usize, usize, &str) -> Result<(), String>,
) -> Result<(), CommandFailure> {
    for (number, path) in files.iter().enumerate() {
        let failure = |why: String| {
            let what = format!("cannot read {}: {}", path.display(), printable_text(&why));
            CommandFailure::new(CliExitCode::Failed, what)
        };
        let file = File::open(path).map_err(|error| failure(error.to_string()))?;
        let mut reader = BufReader::new(file);
        for line in 1.. {
            let mut bytes = Vec::new();
            let most = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX) + 2;
            let read = reader.by_ref().take(most).read_until(b'\n', &mut bytes);
            read.map_err(|error| failure(error.to_string()))?;
            let ended = bytes.last() == Some(&b'\n');
            if !ended && bytes.len() <= MAX_LINE_BYTES {
                break;
            }
            let text = std::str::from_utf8(&bytes);
            let text = text.map_err(|_| failure(format!("line {line} is not UTF-8")))?;
            take(number, line, text).map_err(failure)?;
        }
    }
    Ok(())
}

/// Judges the writes, and prints the recount. A broken promise is a failure of the command.
pub(super) fn finish_recount(
    files: &[PathBuf],
    writes: Vec<ClusterWrite>,
    power: PowerRecount,
) -> Result<(), CommandFailure> {
    if writes.is_empty() && power.lines == 0 {
        let what = "the files tell of no write of a Node or of a Lease of Dogwatch";
        return Err(CommandFailure::new(CliExitCode::Failed, what)
            .with_next_step("check that these are the right files, and that they are not empty"));
    }
    let mut recount = recount_writes(writes);
    recount.broken.extend(power.broken);
    let mut out = output::buffered_stdout();
    if power.lines > 0 {
        let (lines, commands, releases) = (power.lines, power.commands, power.releases);
        writeln!(
            out,
            "{lines} lines of controllers judged: {commands} power commands were sent, {releases} Nodes were released."
        )?;
    }
    print_recount(&mut out, &recount)?;
    for broken in &recount.broken {
        print_broken_rule(&mut out, files, broken)?;
    }
    out.flush()?;
    match recount.broken.first() {
        None => Ok(()),
        Some(first) => {
            let what = format!(
                "{} promises were broken; the first: {first}",
                recount.broken.len()
            );
            Err(CommandFailure::new(
                CliExitCode::Failed,
                printable_text(&what),
            ))
        }
    }
}

fn print_recount(out: &mut impl Write, recount: &RecountResult) -> io::Result<()> {
    writeln!(
        out,
        "{} writes judged: {} times a node went out of service, {} reboots ended.",
        recount.writes, recount.begun, recount.rebooted
    )?;
    for (group, most) in &recount.most_out {
        let group = printable_text(group);
        writeln!(out, "Group {group}: at most {most} out at one time.")?;
    }
    if recount.broken.is_empty() {
        writeln!(out, "No promise was broken.")?;
    }
    Ok(())
}

fn print_broken_rule(
    out: &mut impl Write,
    files: &[PathBuf],
    broken: &BrokenRule,
) -> io::Result<()> {
    writeln!(out, "BROKEN {}", printable_text(&broken.to_string()))?;
    for source in &broken.lines {
        let file = files
            .get(source.file)
            .map(|file| file.display().to_string());
        let file = printable_text(&file.unwrap_or_default());
        writeln!(out, "  {file}: {}", printable_text(&source.to_string()))?;
    }
    Ok(())
}
