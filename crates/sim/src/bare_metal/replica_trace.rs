//! The decision logs of a lab's controllers, kept in memory, and their recount.

use std::sync::{Arc, Mutex};

use dogwatch_controller::decision_log::ControllerDecisionLog;
use dogwatch_core::verify::recount_power;
use dogwatch_core::verify::trace::{TraceLine, read_trace_line};
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::decision_log::{DecisionLogWriter, LineSink};
use dogwatch_runtime::mutex::lock_ignoring_poison;

use crate::observer::PromiseViolation;

/// The lines of all controllers. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ReplicaTrace(Arc<Mutex<Vec<String>>>);

impl LineSink for ReplicaTrace {
    fn push_line(&self, line: String) {
        lock_ignoring_poison(&self.0).push(line);
    }

    fn take_lost_lines(&self) -> u64 {
        0
    }
}

impl ReplicaTrace {
    pub(super) fn open_log(&self, clock: &ProcessClock, process: &str) -> ControllerDecisionLog {
        let (sink, clock) = (self.clone(), clock.clone());
        ControllerDecisionLog::new(DecisionLogWriter::new(sink, clock, process.to_owned()))
    }

    /// Recounts the lines as `dogwatch verify-trace` does.
    pub fn judge_lines(&self) -> Vec<PromiseViolation> {
        let lines = lock_ignoring_poison(&self.0);
        let mut read: Vec<(usize, TraceLine)> = Vec::new();
        for (at, text) in lines.iter().enumerate() {
            match read_trace_line(at + 1, text) {
                Ok(line) => read.extend(line.map(|line| (at + 1, line))),
                Err(error) => return vec![PromiseViolation(format!("decision log: {error}"))],
            }
        }
        let recount = recount_power(read.iter().map(|(at, line)| (0, *at, line)));
        let broken = recount.broken.into_iter();
        let sentence = |broken| format!("by the controllers' decision logs, {broken}");
        broken
            .map(|broken| PromiseViolation(sentence(broken)))
            .collect()
    }
}
