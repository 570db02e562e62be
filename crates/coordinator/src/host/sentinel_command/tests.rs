//! Real processes.

use super::*;

fn shell(script: &str) -> SentinelCommand {
    SentinelCommand {
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        interval: Duration::from_millis(10),
        timeout: Duration::from_mins(2),
        host_root: PathBuf::from("/"),
    }
}

async fn run(script: &str) -> TriggerState {
    shell(script).run_once().await.state
}

fn why(state: TriggerState) -> String {
    match state {
        TriggerState::Unknown { why } => why,
        TriggerState::Absent | TriggerState::Present { .. } => panic!("not unknown: {state:?}"),
    }
}

#[tokio::test]
async fn exit_0_is_needed_with_the_output_as_reason() {
    let state = run("echo; echo kernel; echo noise >&2").await;
    // FNV-1a of "\nkernel\n": fingerprints that older coordinators wrote on the cluster must still
    // match.
    let fingerprint = TriggerFingerprint(format!("output {:016x}", 0x754e_46d8_13ab_7d1e_u64));
    let reason = "kernel".to_owned();
    assert_eq!(
        state,
        TriggerState::Present {
            fingerprint,
            reason
        }
    );
}

#[tokio::test]
async fn other_output_is_another_fingerprint_even_past_the_first_kibibyte() {
    let long = "head -c 2000 /dev/zero | tr '\\0' x";
    let one = run(&format!("{long}; echo 1")).await;
    assert_eq!(one, run(&format!("{long}; echo 1")).await);
    assert_ne!(one, run(&format!("{long}; echo 2")).await);
}

#[tokio::test]
async fn exit_1_is_not_needed() {
    assert_eq!(run("echo x; exit 1").await, TriggerState::Absent);
}

#[tokio::test]
async fn any_other_end_is_unknown_and_quotes_what_it_said() {
    let text = why(run("echo no database >&2; exit 2").await);
    assert!(
        text.contains("exit status: 2") && text.contains("no database"),
        "{text}"
    );
    let text = why(run("kill -9 $$").await);
    assert!(text.contains("signal: 9"), "{text}");
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_unknown_and_names_the_flag() {
    let mut command = shell("");
    command.argv = vec!["/does/not/exist".to_owned()];
    let text = why(command.run_once().await.state);
    assert!(
        text.contains("/does/not/exist") && text.contains("--sentinel-command"),
        "{text}"
    );
}

#[tokio::test]
async fn after_the_timeout_the_whole_group_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("held");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    // The grandchild holds the FIFO open for writing; end of file proves that it is gone.
    let script = format!("sleep 1000 3>{} & wait", fifo.display());
    let reader = tokio::task::spawn_blocking(move || std::fs::read(fifo));
    let mut command = shell(&script);
    // The grandchild must have started by then.
    command.timeout = Duration::from_secs(5);
    let text = why(command.run_once().await.state);
    assert!(
        text.contains("5s") && text.contains("--sentinel-timeout"),
        "{text}"
    );
    let ended = tokio::time::timeout(Duration::from_mins(2), reader).await;
    assert_eq!(
        ended.expect("the grandchild lives on").unwrap().unwrap(),
        b""
    );
}

#[tokio::test]
async fn it_is_run_again_and_again_and_tells_only_changes() {
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("flag");
    let mut receiver = shell(&format!("test -e {}", flag.display())).watch_trigger();
    assert_eq!(*receiver.borrow(), None);
    for wanted in [false, true, false] {
        if wanted {
            std::fs::write(&flag, "").unwrap();
        } else {
            let _ = std::fs::remove_file(&flag);
        }
        receiver.changed().await.unwrap();
        let seen = receiver.borrow_and_update().clone().unwrap();
        assert_eq!(seen.source, "command");
        assert_eq!(matches!(seen.state, TriggerState::Present { .. }), wanted);
    }
}
