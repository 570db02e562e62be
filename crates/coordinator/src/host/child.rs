//! Starts child processes in a process group of their own.

use std::process::Stdio;

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

/// A command in its own process group, so that a signal to our group (Ctrl-C in a terminal, a
/// `kill` of the job) does not reach it. Its standard input is empty.
///
/// `argv` is not empty: the flags refuse that.
pub(crate) fn build_command(argv: &[String]) -> Command {
    let (program, arguments) = argv.split_first().expect("a command has a first word");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::null());
    command
}

/// Kills a child's whole process group when dropped, unless [`Self::leave_running`] was called.
pub(crate) struct ProcessGroupKiller(Option<Pid>);

impl ProcessGroupKiller {
    pub(crate) fn of_child(child: &Child) -> Self {
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Self(leader)
    }

    /// The leader ended by itself: the processes that it left running were meant to stay.
    pub(crate) fn leave_running(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroupKiller {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Fails only if the whole group has ended, which is the goal.
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
    }
}
