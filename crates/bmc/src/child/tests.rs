use std::fs;
use std::time::Instant;

use rustix::process::test_kill_process;

use super::*;

/// Longer than any step here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

fn sh<'a>(script: &'a [&'a str]) -> ChildCommand<'a> {
    ChildCommand {
        program: Path::new("/bin/sh"),
        arguments: script,
        environment: &[],
        input: "",
    }
}

/// Waits until the process whose number is in the file exists, or is gone.
async fn process(file: &Path, alive: bool) {
    let deadline = Instant::now() + PATIENCE;
    let is_alive = || {
        let number: i32 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
        // A killed process whose parent is gone too may stay a zombie for a moment, or forever if
        // no process reaps it. A zombie does not run.
        let state = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let is_zombie = state.contains(") Z ");
        Some(!is_zombie && test_kill_process(Pid::from_raw(number)?).is_ok())
    };
    while is_alive() != Some(alive) {
        assert!(Instant::now() < deadline, "never: alive {alive}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_it_says_and_how_it_ends_is_told_and_its_input_is_read() {
    let call = ChildCommand {
        input: "sekret16\n",
        ..sh(&["-c", "read word; echo got $word; echo no >&2; exit 3"])
    };
    let ended = run_child(&call, PATIENCE).await.unwrap();
    assert_eq!(ended.code, Some(3));
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("got sekret16\n", "no\n")
    );
}

#[tokio::test]
async fn a_process_that_reads_nothing_is_no_failure() {
    let long = "x".repeat(1 << 20);
    let call = ChildCommand {
        input: &long,
        ..sh(&["-c", "exit 2"])
    };
    let ended = run_child(&call, PATIENCE).await.unwrap();
    assert_eq!(ended.code, Some(2));
}

#[tokio::test]
async fn past_its_deadline_the_whole_group_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grandchild");
    let script = format!("sleep 600 & echo $! > {}; sleep 600", file.display());
    // By then the shell must have started its child.
    let failure = run_child(&sh(&["-c", &script]), Duration::from_secs(5))
        .await
        .unwrap_err();
    assert!(matches!(failure, ChildError::TimedOut(_)), "{failure}");
    process(&file, false).await;
}

#[tokio::test]
async fn with_no_time_left_nothing_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("started");
    let script = format!("touch {}", file.display());
    let failure = run_child(&sh(&["-c", &script]), Duration::ZERO)
        .await
        .unwrap_err();
    assert!(matches!(failure, ChildError::TooLate(_)), "{failure}");
    assert!(!BmcFault::from(failure).may_have_run);
    assert!(!file.exists());
}

#[tokio::test]
async fn who_stops_waiting_kills_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grandchild");
    let script = format!("sleep 600 & echo $! > {}; sleep 600", file.display());
    let waiting = tokio::spawn(async move {
        let _ = run_child(&sh(&["-c", &script]), Duration::from_mins(10)).await;
    });
    process(&file, true).await;
    waiting.abort();
    process(&file, false).await;
}

#[tokio::test]
async fn what_a_process_leaves_running_ends_with_it_and_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grandchild");
    let script = format!("sleep 600 & echo $! > {}; echo done", file.display());
    let ended = run_child(&sh(&["-c", &script]), PATIENCE).await.unwrap();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"));
    process(&file, false).await;
}

#[tokio::test]
async fn who_prints_without_end_is_killed() {
    let failure = run_child(&sh(&["-c", "exec yes"]), PATIENCE)
        .await
        .unwrap_err();
    assert!(matches!(failure, ChildError::TooMuch(_)), "{failure}");
}

#[tokio::test]
async fn of_our_environment_only_the_search_path_is_handed_on() {
    let call = ChildCommand {
        program: Path::new("env"),
        arguments: &[],
        environment: &[],
        input: "",
    };
    let ended = run_child(&call, PATIENCE).await.unwrap();
    let mut names: Vec<_> = ended
        .stdout
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["LANG", "PATH"]);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let call = ChildCommand {
        program: Path::new("/nowhere/fence_none"),
        arguments: &[],
        environment: &[],
        input: "",
    };
    let fault = BmcFault::from(run_child(&call, PATIENCE).await.unwrap_err());
    assert_eq!(fault.class, FaultClass::Unsupported);
    assert!(!fault.may_have_run);
    assert_eq!(
        fault.message,
        "fence_none is not installed where the controller runs"
    );
}

#[test]
fn its_last_words_are_short_and_without_the_secret() {
    let long = "x".repeat(500);
    for (text, said_is) in [
        ("one\ntwo  \n\n", "two"),
        (
            "login of admin with sekret16 failed",
            "login of admin with *** failed",
        ),
        ("bell\u{7}", "bell"),
        ("sekret\u{7}16 is wrong", "*** is wrong"),
        (
            "bad password: sek\nret16 is wrong",
            "bad password: *** is wrong",
        ),
        ("", "nothing"),
        (long.as_str(), &long[..MESSAGE_LENGTH_LIMIT]),
    ] {
        assert_eq!(redacted_last_line(text.lines(), "sekret16"), said_is);
    }
}
