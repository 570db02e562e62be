//! Real processes, real signals, a real dbus-daemon.

mod logind;

use std::error::Error as _;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

/// Validity of a permit to reboot.
const PERMIT: Duration = Duration::from_secs(10);

fn by(method: HostRebootMethod) -> HostRebooter {
    HostRebooter {
        method,
        host_root: PathBuf::from("/"),
        init: PID_1,
    }
}

fn shell(script: &str) -> HostRebooter {
    by(HostRebootMethod::Command(
        ["sh", "-c", script].map(str::to_owned).to_vec(),
    ))
}

async fn end(reboot: &HostRebooter) -> StartedRebootEnd {
    reboot
        .start_reboot(PERMIT)
        .await
        .unwrap()
        .wait_for_end()
        .await
}

fn fifo(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    path
}

#[tokio::test]
async fn a_command_that_succeeds_is_said_to_and_its_end_stays_known() {
    let mut running = shell("echo going down").start_reboot(PERMIT).await.unwrap();
    assert_eq!(
        running.wait_for_end().await,
        StartedRebootEnd::Ran(CommandEnd::Success)
    );
    assert_eq!(
        running.wait_for_end().await,
        StartedRebootEnd::Ran(CommandEnd::Success)
    );
    assert_eq!(running.output_tail(), "going down");
}

#[tokio::test]
async fn a_command_that_fails_is_quoted() {
    let StartedRebootEnd::Ran(CommandEnd::Failure(why)) =
        end(&shell("echo no >&2; echo way; exit 3")).await
    else {
        panic!("not a failure");
    };
    assert_eq!(why, "exit status: 3: no way");
}

#[tokio::test]
async fn a_missing_or_forbidden_program_was_never_started() {
    for (program, cause) in [
        ("/does/not/exist", "No such file"),
        ("/etc/passwd", "denied"),
    ] {
        let error = by(HostRebootMethod::Command(vec![program.to_owned()]))
            .start_reboot(PERMIT)
            .await;
        let error = error.unwrap_err();
        assert!(error.to_string().contains(program), "{error}");
        assert!(error.to_string().contains("--reboot-command"), "{error}");
        assert!(error.source().unwrap().to_string().contains(cause));
    }
}

#[tokio::test]
async fn a_shell_that_did_not_find_its_program_did_run() {
    let ended = end(&shell("/does/not/exist")).await;
    let StartedRebootEnd::Ran(CommandEnd::Failure(why)) = ended else {
        panic!("{ended:?}");
    };
    assert!(why.starts_with("exit status: 127"), "{why}");
}

#[tokio::test]
async fn a_command_that_never_returns_keeps_running_when_it_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let gate = fifo(&folder, "gate");
    let proof = fifo(&folder, "proof");
    let script = format!(
        "read line < {}; echo to the log; echo alive > {}",
        gate.display(),
        proof.display()
    );
    let mut running = shell(&script).start_reboot(PERMIT).await.unwrap();
    let id = running.process_id().unwrap();
    let soon = tokio::time::timeout(Duration::ZERO, running.wait_for_end()).await;
    assert!(soon.is_err(), "it returned");
    let group = rustix::process::getpgid(Pid::from_raw(i32::try_from(id).unwrap())).unwrap();
    assert_ne!(group, rustix::process::getpgrp(), "it dies with our group");
    // Dropped as if the coordinator was killed: its output has no reader any more.
    drop(running);
    let said = tokio::task::spawn_blocking(move || {
        std::fs::write(gate, "go\n").unwrap();
        let mut said = String::new();
        std::fs::File::open(proof)
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        said
    });
    assert_eq!(said.await.unwrap(), "alive\n");
}

#[tokio::test]
async fn the_signal_is_systemds_own_and_reaches_the_process() {
    // glibc's SIGRTMIN+5, which systemd uses.
    let script = "trap 'exit 42' 39; echo ready; while :; do read line; done";
    let mut child = child::build_command(&["sh", "-c", script].map(str::to_owned))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    let output = child.stdout.as_mut().unwrap();
    tokio::io::AsyncReadExt::read_exact(output, &mut ready)
        .await
        .unwrap();
    let init = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    let reboot = HostRebooter {
        init,
        ..by(HostRebootMethod::Signal)
    };
    assert_eq!(
        end(&reboot).await,
        StartedRebootEnd::Ran(CommandEnd::Success)
    );
    drop(child.stdin.take());
    let status = tokio::time::timeout(Duration::from_mins(2), child.wait()).await;
    assert_eq!(status.unwrap().unwrap().code(), Some(42));
    // The process has ended.
    let error = reboot.start_reboot(PERMIT).await.unwrap_err();
    assert!(matches!(error, RebootStartError::Signal { .. }), "{error}");
    assert!(error.to_string().contains("hostPID"), "{error}");
}

#[test]
fn nsenter_that_could_not_execute_the_command_never_began_it() {
    let status = std::os::unix::process::ExitStatusExt::from_raw(127 << 8);
    let said = "nsenter: failed to execute nothing: No such file or directory";
    assert!(
        matches!(classify_exit(status, said, true), StartedRebootEnd::NeverBegun(why) if why.starts_with(said))
    );
    assert!(matches!(
        classify_exit(status, said, false),
        StartedRebootEnd::Ran(CommandEnd::Failure(_))
    ));
}

/// As root with the right to enter PID 1's namespaces, the command runs there; otherwise `nsenter`
/// reports that it may not, which is "never begun" too. Both are tested.
#[tokio::test]
async fn below_another_host_root_the_command_runs_in_pid_1s_namespaces_or_never_began() {
    let inside = |argv: [&str; 3]| HostRebooter {
        host_root: PathBuf::from("/host"),
        ..by(HostRebootMethod::Command(argv.map(str::to_owned).to_vec()))
    };
    let script = "test \"$(readlink /proc/self/ns/mnt)\" = \"$(readlink /proc/1/ns/mnt)\"";
    let ran = end(&inside(["sh", "-c", script])).await;
    let allowed = ran == StartedRebootEnd::Ran(CommandEnd::Success);
    assert!(
        allowed
            || matches!(&ran, StartedRebootEnd::NeverBegun(why) if why.starts_with("nsenter: ")),
        "{ran:?}"
    );
    let missing = end(&inside(["/does/not/exist", "-r", "now"])).await;
    assert!(
        matches!(&missing, StartedRebootEnd::NeverBegun(why) if why.starts_with("nsenter: ")),
        "{missing:?}"
    );
}
