//! A group of child processes and a folder that never outlive us.
//!
//! The parent-death signal of Linux is no alternative: it fires when the *thread* that started the
//! child ends, and a test's thread ends long before the tests do. Here a small shell leads the
//! children's process group and reads a pipe whose other end only we hold. When we end, in whatever
//! way, the kernel closes our end; the shell then kills the group and removes the folder.

use std::{
    fs::File,
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::Error;

/// `setsid` starts the cleanup outside of the group, so that it survives the kill and removes the
/// folder.
const GUARD_SCRIPT: &str =
    r#"cat >/dev/null; exec setsid sh -c 'kill -s KILL -- "-$0"; rm -rf -- "$1"' "$$" "$1""#;

/// The guard shell and its process group; children join the group.
#[derive(Debug)]
pub(crate) struct GuardedProcessGroup {
    guard: Child,
    lifeline: Option<ChildStdin>,
}

impl GuardedProcessGroup {
    /// Starts the guard of `folder`, which is removed with the group.
    pub(crate) fn new(folder: &Path) -> Result<Self, Error> {
        let mut guard = Command::new("sh")
            .args(["-c", GUARD_SCRIPT, "dogwatch-testbed-guard"])
            .arg(folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::io_error("start the guard of", folder))?;
        let lifeline = guard.stdin.take();
        Ok(Self { guard, lifeline })
    }

    /// Starts `command` in the group and appends its output to `log`.
    pub(crate) fn spawn_child(&self, command: &mut Command, log: &Path) -> Result<Child, Error> {
        let group = i32::try_from(self.guard.id()).expect("a process id fits pid_t");
        let out = File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(Error::io_error("open", log))?;
        let err = out.try_clone().map_err(Error::io_error("open", log))?;
        command
            .process_group(group)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(Error::io_error("start", command.get_program()))
    }
}

impl Drop for GuardedProcessGroup {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // Only reaps the guard; its exit status does not matter.
        let _: io::Result<_> = self.guard.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, test_kill_process};

    use super::*;

    fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_mins(2);
        while !holds() {
            assert!(Instant::now() < deadline, "never: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn children_and_folder_go_when_the_lifeline_is_cut() {
        let folder = tempfile::tempdir().unwrap().keep();
        let brood = GuardedProcessGroup::new(&folder).unwrap();
        let mut child = brood
            .spawn_child(Command::new("sleep").arg("600"), &folder.join("log"))
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(test_kill_process(pid).is_ok());

        drop(brood);
        eventually("the child has ended", || {
            child.try_wait().unwrap().is_some()
        });
        eventually("the folder is gone", || !folder.exists());
    }
}
