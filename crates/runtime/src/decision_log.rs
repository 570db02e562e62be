//! A process's decision log: lines for `dogwatch verify-trace`.

use std::fmt;
use std::io;
use std::path::Path;

use dogwatch_core::verify::trace::{TRACE_VERSION, TraceEvent, TraceLine};

use crate::clock::ProcessClock;
use crate::line_file::LineFile;

/// The file's size; one older file of this size is kept beside it.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// Where lines go.
pub trait LineSink: Send + Sync {
    /// Never waits.
    fn push_line(&self, line: String);

    /// How many lines were lost since the last call.
    fn take_lost_lines(&self) -> u64;
}

impl LineSink for LineFile {
    fn push_line(&self, line: String) {
        LineFile::push_line(self, line);
    }

    fn take_lost_lines(&self) -> u64 {
        LineFile::take_lost_lines(self)
    }
}

/// Writes each event as one line. A slow disk loses lines, which the log says, and never delays the
/// caller.
pub struct DecisionLogWriter {
    sink: Box<dyn LineSink>,
    clock: ProcessClock,
    run: String,
}

impl DecisionLogWriter {
    /// `run` names the process.
    pub fn new(sink: impl LineSink + 'static, clock: ProcessClock, run: String) -> Self {
        let sink = Box::new(sink);
        Self { sink, clock, run }
    }

    /// The same with a file.
    pub fn open(path: &Path, clock: ProcessClock, run: String) -> io::Result<Self> {
        Ok(Self::new(LineFile::open(path, MAX_FILE_BYTES)?, clock, run))
    }

    /// Logs what happened in this domain (`reboot`, `power`, `remediation`) to this object.
    pub fn push_event(&self, domain: &str, key: &str, event: TraceEvent) {
        let lines = self.sink.take_lost_lines();
        if lines > 0 {
            self.push_line(domain, key, TraceEvent::Dropped { lines });
        }
        self.push_line(domain, key, event);
    }

    fn push_line(&self, domain: &str, key: &str, event: TraceEvent) {
        let now = self.clock.now();
        let line = TraceLine {
            version: TRACE_VERSION,
            at: now.wall,
            mono: now.mono.as_secs_f64(),
            run: self.run.clone(),
            domain: domain.to_owned(),
            key: key.to_owned(),
            event,
        };
        self.sink.push_line(line.to_json());
    }
}

impl fmt::Debug for DecisionLogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionLogWriter")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}
