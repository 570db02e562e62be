//! Collects the reboot command's output.
//!
//! In an anonymous file, not a pipe: a process that writes to a pipe without a reader is killed by
//! SIGPIPE, and the reader, the coordinator, is among the first processes that the reboot stops.
//! The price: the output is logged when the command ends, not while it runs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::process::Stdio;

use rustix::fs::MemfdFlags;

use crate::host::text::{self, REASON_BYTES};

/// How much of the output is logged: its end, where the error is.
const LOGGED_BYTES: usize = 16 * REASON_BYTES;

#[derive(Debug)]
pub(super) struct RebootOutput(File);

impl RebootOutput {
    pub(super) fn new() -> io::Result<Self> {
        let file = rustix::fs::memfd_create("reboot-command", MemfdFlags::CLOEXEC)?;
        Ok(Self(File::from(file)))
    }

    /// An output handle for the child. All handles share one position, so that none overwrites
    /// another's text.
    pub(super) fn child_stdio(&self) -> io::Result<Stdio> {
        Ok(Stdio::from(self.0.try_clone()?))
    }

    pub(super) fn log_lines(&self) {
        for line in self
            .read_last_bytes(LOGGED_BYTES)
            .split(|&byte| byte == b'\n')
        {
            let line = text::one_line_reason(line);
            if !line.is_empty() {
                tracing::info!(line, "output of the reboot command");
            }
        }
    }

    /// The last KiB as one line.
    pub(super) fn tail_line(&self) -> String {
        text::one_line_reason(&self.read_last_bytes(REASON_BYTES))
    }

    /// Empty if it cannot be read: the text is for people only.
    fn read_last_bytes(&self, limit: usize) -> Vec<u8> {
        let length = self.0.metadata().map_or(0, |metadata| metadata.len());
        let start = length.saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX));
        let mut bytes = vec![0; limit];
        let read = self.0.read_at(&mut bytes, start).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}
