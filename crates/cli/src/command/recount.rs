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

/// Lines of audit logs that are no Events: an API server that was killed leaves half a line.
#[derive(Debug, Default)]
pub(super) struct UnreadableLines {
    count: usize,
    /// Its file, its number, and why it cannot be read.
    first: Option<String>,
}

impl UnreadableLines {
    pub(super) fn add_line(&mut self, file: Option<&PathBuf>, why: &str) {
        self.count += 1;
        let file = file.map(|file| file.display().to_string());
        let file = file.unwrap_or_default();
        self.first.get_or_insert_with(|| format!("{file}: {why}"));
    }
}

/// Reads every line of every file. A last line without its end is left out: it may still be
/// written.
pub(super) fn read_lines_of_files(
    files: &[PathBuf],
    mut take: impl FnMut(usize, usize, &[u8]) -> Result<(), String>,
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
            take(number, line, &bytes).map_err(failure)?;
        }
    }
    Ok(())
}

/// Judges the writes, and prints the recount. A broken promise is a failure of the command.
pub(super) fn finish_recount(
    files: &[PathBuf],
    writes: Vec<ClusterWrite>,
    power: PowerRecount,
    unreadable: &UnreadableLines,
) -> Result<(), CommandFailure> {
    if let Some(first) = unreadable.first.as_ref().filter(|_| writes.is_empty()) {
        let what = format!("cannot read {}", printable_text(first));
        return Err(CommandFailure::new(CliExitCode::Failed, what));
    }
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
    print_unjudged(&mut out, &recount, unreadable)?;
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

/// Says what the recount leaves out.
fn print_unjudged(
    out: &mut impl Write,
    recount: &RecountResult,
    unreadable: &UnreadableLines,
) -> io::Result<()> {
    if let Some(first) = &unreadable.first {
        writeln!(
            out,
            "Lines that could not be read and are not judged: {}; the first: {}",
            unreadable.count,
            printable_text(first)
        )?;
    }
    if recount.unseen > 0 {
        writeln!(
            out,
            "Writes that are missing from the logs or were not answered: {}; what they may have changed is not judged.",
            recount.unseen
        )?;
    }
    Ok(())
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
