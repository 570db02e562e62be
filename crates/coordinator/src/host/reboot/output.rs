//! Where the reboot command writes.
//!
//! An anonymous file, not a pipe: whoever writes into a pipe whose reader has died is killed by
//! SIGPIPE, and the reader, the coordinator, is among the first to be stopped by the reboot. The
//! price: its text is logged when it ends, not while it runs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::process::Stdio;

use rustix::fs::MemfdFlags;

use crate::host::text::{self, REASON_BYTES};

/// How much of the output is logged: its end, where the error is.
const LOGGED_BYTES: usize = 16 * REASON_BYTES;

#[derive(Debug)]
pub(super) struct Output(File);

impl Output {
    pub(super) fn new() -> io::Result<Self> {
        let file = rustix::fs::memfd_create("reboot-command", MemfdFlags::CLOEXEC)?;
        Ok(Self(File::from(file)))
    }

    /// An end for the child. All share one position, so that none overwrites another's text.
    pub(super) fn end(&self) -> io::Result<Stdio> {
        Ok(Stdio::from(self.0.try_clone()?))
    }

    pub(super) fn log(&self) {
        for line in self.last(LOGGED_BYTES).split(|&byte| byte == b'\n') {
            let line = text::reason(line);
            if !line.is_empty() {
                tracing::info!(line, "reboot command said");
            }
        }
    }

    /// The last KiB as one line.
    pub(super) fn tail(&self) -> String {
        text::reason(&self.last(REASON_BYTES))
    }

    /// What cannot be read is nothing: the text is for people only.
    fn last(&self, limit: usize) -> Vec<u8> {
        let length = self.0.metadata().map_or(0, |metadata| metadata.len());
        let start = length.saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX));
        let mut bytes = vec![0; limit];
        let read = self.0.read_at(&mut bytes, start).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}
