//! Real processes, real signals, a real dbus-daemon.

mod logind;

use std::error::Error as _;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

/// As long as a permit lasts.
const PERMIT: Duration = Duration::from_secs(10);

fn by(method: Method) -> Reboot {
    Reboot {
        method,
        host_root: PathBuf::from("/"),
        init: PID_1,
    }
}

fn shell(script: &str) -> Reboot {
    by(Method::Command(
        ["sh", "-c", script].map(str::to_owned).to_vec(),
    ))
}

async fn end(reboot: &Reboot) -> Ended {
    reboot.start(PERMIT).await.unwrap().ended().await
}

fn fifo(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    path
}

#[tokio::test]
async fn a_command_that_succeeds_is_said_to_and_its_end_stays_known() {
    let mut running = shell("echo going down").start(PERMIT).await.unwrap();
    assert_eq!(running.ended().await, Ended::Ran(CommandEnd::Success));
    assert_eq!(running.ended().await, Ended::Ran(CommandEnd::Success));
    assert_eq!(running.output(), "going down");
}

#[tokio::test]
async fn a_command_that_fails_is_quoted() {
    let Ended::Ran(CommandEnd::Failure(why)) = end(&shell("echo no >&2; echo way; exit 3")).await
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
        let error = by(Method::Command(vec![program.to_owned()]))
            .start(PERMIT)
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
    let Ended::Ran(CommandEnd::Failure(why)) = ended else {
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
    let mut running = shell(&script).start(PERMIT).await.unwrap();
    let id = running.id().unwrap();
    let soon = tokio::time::timeout(Duration::ZERO, running.ended()).await;
    assert!(soon.is_err(), "it returned");
    let group = rustix::process::getpgid(Pid::from_raw(i32::try_from(id).unwrap())).unwrap();
    assert_ne!(group, rustix::process::getpgrp(), "it dies with our group");
    // Its output's reader goes away, as when the coordinator is killed.
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
    // SIGRTMIN+5 of glibc, which systemd counts by.
    let script = "trap 'exit 42' 39; echo ready; while :; do read line; done";
    let mut child = child::command(&["sh", "-c", script].map(str::to_owned))
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
    let reboot = Reboot {
        init,
        ..by(Method::Signal)
    };
    assert_eq!(end(&reboot).await, Ended::Ran(CommandEnd::Success));
    drop(child.stdin.take());
    let status = tokio::time::timeout(Duration::from_mins(2), child.wait()).await;
    assert_eq!(status.unwrap().unwrap().code(), Some(42));
    // Nobody is there any more.
    let error = reboot.start(PERMIT).await.unwrap_err();
    assert!(matches!(error, StartError::Signal { .. }), "{error}");
    assert!(error.to_string().contains("hostPID"), "{error}");
}

#[test]
fn nsenter_that_could_not_execute_the_command_never_began_it() {
    let status = std::os::unix::process::ExitStatusExt::from_raw(127 << 8);
    let said = "nsenter: failed to execute nothing: No such file or directory";
    assert!(matches!(judge(status, said, true), Ended::NeverBegun(why) if why.starts_with(said)));
    assert!(matches!(
        judge(status, said, false),
        Ended::Ran(CommandEnd::Failure(_))
    ));
}

/// As root with the right to enter PID 1's namespaces, this is the real way; elsewhere `nsenter`
/// itself says that it may not, which is "never begun" too. Both are worth knowing.
#[tokio::test]
async fn below_another_host_root_the_command_runs_in_pid_1s_namespaces_or_never_began() {
    let inside = |argv: [&str; 3]| Reboot {
        host_root: PathBuf::from("/host"),
        ..by(Method::Command(argv.map(str::to_owned).to_vec()))
    };
    let script = "test \"$(readlink /proc/self/ns/mnt)\" = \"$(readlink /proc/1/ns/mnt)\"";
    let ran = end(&inside(["sh", "-c", script])).await;
    let allowed = ran == Ended::Ran(CommandEnd::Success);
    assert!(
        allowed || matches!(&ran, Ended::NeverBegun(why) if why.starts_with("nsenter: ")),
        "{ran:?}"
    );
    let missing = end(&inside(["/does/not/exist", "-r", "now"])).await;
    assert!(
        matches!(&missing, Ended::NeverBegun(why) if why.starts_with("nsenter: ")),
        "{missing:?}"
    );
}
