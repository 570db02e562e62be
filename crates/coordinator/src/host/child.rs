//! Child processes in a group of their own.

use std::process::Stdio;

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

/// A command for `argv`, in a process group of its own: a signal to our group (a terminal's
/// Ctrl-C, a `kill` of the job) does not reach it. No input.
///
/// `argv` is not empty: the flags refuse it.
pub(crate) fn command(argv: &[String]) -> Command {
    let (program, arguments) = argv.split_first().expect("a command has a first word");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::null());
    command
}

/// Kills a child's whole group when dropped, unless told to leave it.
pub(crate) struct Group(Option<Pid>);

impl Group {
    pub(crate) fn of(child: &Child) -> Self {
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Self(leader)
    }

    /// The leader ended by itself: what it left running was meant to stay.
    pub(crate) fn leave(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It fails where the whole group is gone, which is what we want.
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
    }
}
