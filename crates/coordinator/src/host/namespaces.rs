//! Runs the user's commands here or in PID 1's namespaces.
//!
//! In the DaemonSet the coordinator's file system is a small image, but `systemctl` and other
//! commands of users are the host's. `nsenter` enters the host's namespaces through `/proc/1/ns`,
//! which needs a privileged container with `hostPID: true`. It enters mount, UTS, IPC, network and
//! PID, so that the command runs as in a shell on the host. The child stays in the container's
//! cgroup: what must outlive the container has to be started by the host's own service manager, as
//! `systemctl reboot` does.

use std::path::Path;

/// Prefix of a command that runs in PID 1's namespaces.
const NSENTER_COMMAND: [&str; 9] = ["nsenter", "-t", "1", "-m", "-u", "-i", "-n", "-p", "--"];

/// Exit codes with which `nsenter` reports that it could not execute the command (`EX_EXEC_FAILED`,
/// `EX_EXEC_ENOENT` of util-linux).
const NSENTER_EXEC_FAILED_CODES: [i32; 2] = [126, 127];

/// The host's PID 1 is not visible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the coordinator is PID 1 of its own container, so it cannot reach PID 1 of the host: set hostPID: true in the pod"
)]
pub struct NoHostPidError;

/// Whether commands run in PID 1's namespaces.
pub(crate) fn needs_nsenter(root: &Path) -> bool {
    root != Path::new("/")
}

pub(crate) fn host_command_argv(
    root: &Path,
    argv: &[String],
) -> Result<Vec<String>, NoHostPidError> {
    if !needs_nsenter(root) {
        return Ok(argv.to_vec());
    }
    ensure_not_pid_1()?;
    let enter = NSENTER_COMMAND.iter().map(|&word| word.to_owned());
    Ok(enter.chain(argv.iter().cloned()).collect())
}

/// An error if we are PID 1 ourselves: entering our own namespaces does not leave the container,
/// and a signal to ourselves reboots nothing.
pub(crate) fn ensure_not_pid_1() -> Result<(), NoHostPidError> {
    if std::process::id() == 1 {
        return Err(NoHostPidError);
    }
    Ok(())
}

/// Whether `nsenter` itself reports that the command never began.
pub(crate) fn is_nsenter_failure(code: Option<i32>, output: &str) -> bool {
    let own_words = output.starts_with("nsenter: ");
    let executed = !output.starts_with("nsenter: failed to execute");
    match code {
        Some(code) if NSENTER_EXEC_FAILED_CODES.contains(&code) => own_words && !executed,
        Some(1) => own_words,
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_the_host_itself_a_command_is_left_alone() {
        let argv = ["systemctl".to_owned(), "reboot".to_owned()];
        assert_eq!(host_command_argv(Path::new("/"), &argv).unwrap(), argv);
        let entered = host_command_argv(Path::new("/host"), &argv).unwrap();
        assert_eq!(
            entered.join(" "),
            "nsenter -t 1 -m -u -i -n -p -- systemctl reboot"
        );
    }

    #[test]
    fn only_nsenters_own_words_say_that_a_command_was_never_begun() {
        let missing = "nsenter: failed to execute nothing: No such file or directory";
        assert!(is_nsenter_failure(Some(127), missing));
        assert!(is_nsenter_failure(
            Some(1),
            "nsenter: cannot open /proc/1/ns/ipc: Permission denied"
        ));
        // A shell that ran also exits with 127; a command that printed nsenter's text but succeeded
        // did run.
        assert!(!is_nsenter_failure(Some(127), "sh: 1: nothing: not found"));
        assert!(!is_nsenter_failure(Some(1), ""));
        assert!(!is_nsenter_failure(Some(0), missing));
        assert!(!is_nsenter_failure(None, missing));
    }
}
