//! Where a command of the user's runs: here, or in PID 1's namespaces.
//!
//! In the DaemonSet the coordinator's own file system is a small image; `systemctl` and whatever
//! else people name is the host's. `nsenter` goes there through `/proc/1/ns`, which takes a
//! privileged container with `hostPID: true`. All of mount, UTS, IPC, network and PID, so that the
//! command sees what it would see in a shell on the host. The child stays in the container's
//! cgroup: what must outlive the container is to be started by the host's own service manager, as
//! `systemctl reboot` does.

use std::path::Path;

/// What stands before a command that is to run in PID 1's namespaces.
const ENTER: [&str; 9] = ["nsenter", "-t", "1", "-m", "-u", "-i", "-n", "-p", "--"];

/// Exit codes with which `nsenter` says that it could not execute the command (`EX_EXEC_FAILED`,
/// `EX_EXEC_ENOENT` of util-linux).
const NOT_EXECUTED: [i32; 2] = [126, 127];

/// Why PID 1 cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the coordinator is PID 1 of its own container and cannot reach the host's: set hostPID: true in the pod"
)]
pub struct AloneError;

/// Whether commands run elsewhere than here.
pub(crate) fn elsewhere(root: &Path) -> bool {
    root != Path::new("/")
}

/// The command as it is to be spawned.
pub(crate) fn on_host(root: &Path, argv: &[String]) -> Result<Vec<String>, AloneError> {
    if !elsewhere(root) {
        return Ok(argv.to_vec());
    }
    refuse_being_first()?;
    let enter = ENTER.iter().map(|&word| word.to_owned());
    Ok(enter.chain(argv.iter().cloned()).collect())
}

/// PID 1 must be somebody else: entering one's own namespaces is no way out, and a signal to
/// oneself reboots nothing.
pub(crate) fn refuse_being_first() -> Result<(), AloneError> {
    if std::process::id() == 1 {
        return Err(AloneError);
    }
    Ok(())
}

/// Whether an ended `nsenter` says in its own name that the command was never begun.
pub(crate) fn never_begun(code: Option<i32>, output: &str) -> bool {
    let own_words = output.starts_with("nsenter: ");
    let executed = !output.starts_with("nsenter: failed to execute");
    match code {
        Some(code) if NOT_EXECUTED.contains(&code) => own_words && !executed,
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
        assert_eq!(on_host(Path::new("/"), &argv).unwrap(), argv);
        let entered = on_host(Path::new("/host"), &argv).unwrap();
        assert_eq!(
            entered.join(" "),
            "nsenter -t 1 -m -u -i -n -p -- systemctl reboot"
        );
    }

    #[test]
    fn only_nsenters_own_words_say_that_a_command_was_never_begun() {
        let missing = "nsenter: failed to execute nothing: No such file or directory";
        assert!(never_begun(Some(127), missing));
        assert!(never_begun(
            Some(1),
            "nsenter: cannot open /proc/1/ns/ipc: Permission denied"
        ));
        // A shell that ran says 127 too; one that printed our words but succeeded did run.
        assert!(!never_begun(Some(127), "sh: 1: nothing: not found"));
        assert!(!never_begun(Some(1), ""));
        assert!(!never_begun(Some(0), missing));
        assert!(!never_begun(None, missing));
    }
}
