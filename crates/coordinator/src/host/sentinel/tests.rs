//! Uses real files and real inotify. Every wait is for the channel; the time limit only ends a
//! failing test.

use std::fs;
use std::os::unix::fs::symlink;

use dogwatch_core::reboot::TriggerFingerprint;
use tempfile::TempDir;

use super::*;

type Receiver = watch::Receiver<Vec<ObservedTrigger>>;

fn host() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn start(host: &TempDir, sentinel: &str) -> Receiver {
    watch_sentinels(host.path(), &[PathBuf::from(sentinel)]).unwrap()
}

async fn until(receiver: &mut Receiver, wanted: impl Fn(&TriggerState) -> bool) -> TriggerState {
    let seen = receiver.wait_for(|all| wanted(&all[0].state));
    let state = tokio::time::timeout(Duration::from_mins(2), seen)
        .await
        .map(|seen| seen.unwrap()[0].state.clone());
    state.unwrap_or_else(|_| panic!("not seen; it stays {:?}", receiver.borrow()))
}

fn present(state: &TriggerState) -> bool {
    matches!(state, TriggerState::Present { .. })
}

fn absent(state: &TriggerState) -> bool {
    *state == TriggerState::Absent
}

fn unknown(state: &TriggerState) -> bool {
    matches!(state, TriggerState::Unknown { .. })
}

fn now(receiver: &Receiver) -> TriggerState {
    receiver.borrow()[0].state.clone()
}

fn parts(state: &TriggerState) -> (TriggerFingerprint, String) {
    match state {
        TriggerState::Present {
            fingerprint,
            reason,
        } => (fingerprint.clone(), reason.clone()),
        TriggerState::Absent | TriggerState::Unknown { .. } => panic!("not present: {state:?}"),
    }
}

fn why(state: &TriggerState) -> String {
    match state {
        TriggerState::Unknown { why } => why.clone(),
        TriggerState::Absent | TriggerState::Present { .. } => panic!("not unknown: {state:?}"),
    }
}

#[tokio::test]
async fn a_file_that_is_there_at_the_start_is_seen_at_once_with_its_reason() {
    let host = host();
    fs::write(host.path().join("needed"), "kernel 6.12.9\n").unwrap();
    let receiver = start(&host, "/needed");
    let (fingerprint, reason) = parts(&now(&receiver));
    assert_eq!(reason, "kernel 6.12.9");
    assert_eq!(receiver.borrow()[0].source, "sentinel:/needed");
    let again = read_sentinel_once(host.path(), Path::new("/needed"));
    assert_eq!(parts(&again.state).0, fingerprint, "not stable");
}

#[tokio::test]
async fn creating_and_deleting_the_file_is_noticed() {
    let host = host();
    let mut receiver = start(&host, "/needed");
    assert!(absent(&now(&receiver)));
    fs::write(host.path().join("needed"), "why").unwrap();
    until(&mut receiver, |state| {
        present(state) && parts(state).1 == "why"
    })
    .await;
    fs::remove_file(host.path().join("needed")).unwrap();
    until(&mut receiver, absent).await;
}

#[tokio::test]
async fn a_file_moved_in_or_away_is_noticed() {
    let host = host();
    fs::write(host.path().join("other"), "x").unwrap();
    let mut receiver = start(&host, "/needed");
    fs::rename(host.path().join("other"), host.path().join("needed")).unwrap();
    until(&mut receiver, present).await;
    fs::rename(host.path().join("needed"), host.path().join("other")).unwrap();
    until(&mut receiver, absent).await;
}

#[tokio::test]
async fn a_touch_changes_the_fingerprint() {
    let host = host();
    let path = host.path().join("needed");
    fs::write(&path, "").unwrap();
    let mut receiver = start(&host, "/needed");
    let (before, _) = parts(&now(&receiver));
    let touched = std::time::SystemTime::now() + Duration::from_secs(1);
    fs::File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .set_modified(touched)
        .unwrap();
    until(&mut receiver, |state| {
        present(state) && parts(state).0 != before
    })
    .await;
}

#[tokio::test]
async fn text_written_after_the_creation_becomes_the_reason() {
    let host = host();
    let mut receiver = start(&host, "/needed");
    let mut file = fs::File::create(host.path().join("needed")).unwrap();
    until(&mut receiver, present).await;
    std::io::Write::write_all(&mut file, b"libssl").unwrap();
    drop(file);
    until(&mut receiver, |state| {
        present(state) && parts(state).1 == "libssl"
    })
    .await;
}

#[tokio::test]
async fn a_folder_that_appears_later_is_watched() {
    let host = host();
    let mut receiver = start(&host, "/a/b/c/needed");
    assert!(absent(&now(&receiver)));
    fs::create_dir_all(host.path().join("a/b/c")).unwrap();
    fs::write(host.path().join("a/b/c/needed"), "").unwrap();
    until(&mut receiver, present).await;
}

#[tokio::test]
async fn a_folder_moved_away_and_replaced_is_watched_at_its_name() {
    let host = host();
    fs::create_dir_all(host.path().join("a/b")).unwrap();
    fs::write(host.path().join("a/b/needed"), "").unwrap();
    let mut receiver = start(&host, "/a/b/needed");
    // Not the parent itself but the folder above: the parent's own watch would get no event.
    fs::rename(host.path().join("a"), host.path().join("old")).unwrap();
    until(&mut receiver, absent).await;
    fs::create_dir_all(host.path().join("a/b")).unwrap();
    fs::write(host.path().join("a/b/needed"), "second").unwrap();
    until(&mut receiver, |state| {
        present(state) && parts(state).1 == "second"
    })
    .await;
    fs::remove_file(host.path().join("a/b/needed")).unwrap();
    until(&mut receiver, absent).await;
    // No sentinel depends on the old folder any more.
    fs::write(host.path().join("old/b/needed"), "").unwrap();
    assert!(absent(
        &read_sentinel_once(host.path(), Path::new("/a/b/needed")).state
    ));
}

#[tokio::test]
async fn a_folder_deleted_and_made_anew_is_watched() {
    let host = host();
    for round in 0..20 {
        let mut receiver = start(&host, "/run/needed");
        fs::create_dir(host.path().join("run")).unwrap();
        fs::write(host.path().join("run/needed"), round.to_string()).unwrap();
        until(&mut receiver, |state| {
            present(state) && parts(state).1 == round.to_string()
        })
        .await;
        fs::remove_dir_all(host.path().join("run")).unwrap();
        until(&mut receiver, absent).await;
    }
}

#[tokio::test]
async fn an_absolute_link_stays_below_the_host_root() {
    let host = host();
    fs::create_dir_all(host.path().join("run")).unwrap();
    fs::create_dir_all(host.path().join("var")).unwrap();
    symlink("/run", host.path().join("var/run")).unwrap();
    symlink("../../../..", host.path().join("up")).unwrap();
    let mut receiver = start(&host, "/up/var/run/needed");
    assert!(absent(&now(&receiver)));
    fs::write(host.path().join("run/needed"), "through a link").unwrap();
    let state = until(&mut receiver, |state| {
        present(state) && !parts(state).1.is_empty()
    })
    .await;
    assert_eq!(parts(&state).1, "through a link");
}

#[tokio::test]
async fn what_is_no_file_is_unknown_until_it_is_gone() {
    let host = host();
    let path = host.path().join("needed");
    fs::create_dir(&path).unwrap();
    let mut receiver = start(&host, "/needed");
    let text = why(&now(&receiver));
    assert!(
        text.contains("a folder") && text.contains("remove it"),
        "{text}"
    );
    fs::remove_dir(&path).unwrap();
    until(&mut receiver, absent).await;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
    until(&mut receiver, unknown).await;
    fs::remove_file(&path).unwrap();
    symlink("/nowhere", &path).unwrap();
    until(&mut receiver, |state| {
        unknown(state) && why(state).contains("a link whose target does not exist")
    })
    .await;
    fs::write(host.path().join("nowhere"), "").unwrap();
    until(&mut receiver, present).await;
}

#[tokio::test]
async fn a_loop_of_links_and_a_file_in_place_of_a_folder_are_unknown() {
    let host = host();
    symlink("loop", host.path().join("loop")).unwrap();
    assert!(why(&read_sentinel_once(host.path(), Path::new("/loop")).state).contains("links"));
    fs::write(host.path().join("file"), "").unwrap();
    let text = why(&read_sentinel_once(host.path(), Path::new("/file/needed")).state);
    assert!(text.contains("is not a folder"), "{text}");
    let missing = host.path().join("not-mounted");
    assert!(matches!(
        watch_sentinels(&missing, &[PathBuf::from("/needed")])
            .unwrap()
            .borrow()[0]
            .state,
        TriggerState::Unknown { .. }
    ));
}

#[tokio::test]
async fn several_sentinels_share_a_folder_and_keep_their_order() {
    let host = host();
    let paths = ["/one", "/two", "/deep/three"].map(PathBuf::from);
    let mut receiver = watch_sentinels(host.path(), &paths).unwrap();
    for (index, path) in paths.iter().enumerate() {
        let below = host.path().join(path.strip_prefix("/").unwrap());
        fs::create_dir_all(below.parent().unwrap()).unwrap();
        fs::write(below, "").unwrap();
        let wanted = |all: &Vec<ObservedTrigger>| {
            all.iter().filter(|one| present(&one.state)).count() == index + 1
                && present(&all[index].state)
        };
        tokio::time::timeout(Duration::from_mins(2), receiver.wait_for(wanted))
            .await
            .expect("seen")
            .unwrap();
    }
}

#[tokio::test]
async fn other_files_of_the_folder_wake_nobody() {
    let host = host();
    let mut receiver = start(&host, "/needed");
    receiver.mark_unchanged();
    for number in 0..50 {
        fs::write(host.path().join(format!("other-{number}")), "").unwrap();
    }
    fs::write(host.path().join("needed"), "").unwrap();
    receiver.changed().await.unwrap();
    assert!(present(&receiver.borrow_and_update()[0].state));
}

#[tokio::test]
async fn a_change_lost_in_a_flood_of_events_is_seen_all_the_same() {
    let host = host();
    let mut receiver = start(&host, "/needed");
    let room = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    // The task runs on this thread, which does not yield here: the queue overflows with two events
    // per round, and the sentinel's own event is lost.
    for _ in 0..room.trim().parse::<u32>().unwrap() {
        fs::write(host.path().join("other"), "").unwrap();
        fs::remove_file(host.path().join("other")).unwrap();
    }
    fs::write(host.path().join("needed"), "").unwrap();
    until(&mut receiver, present).await;
}

#[tokio::test]
async fn the_task_ends_when_nobody_listens() {
    let host = host();
    let receiver = start(&host, "/needed");
    let tasks = tokio::runtime::Handle::current().metrics();
    assert_eq!(tasks.num_alive_tasks(), 1);
    drop(receiver);
    while tasks.num_alive_tasks() > 0 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_path_that_names_no_file_is_refused() {
    for (path, says) in [
        ("needed", "absolute"),
        ("/", "no file"),
        ("/run/..", "no file"),
    ] {
        let error = watch_sentinels(Path::new("/"), &[PathBuf::from(path)]).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// Runs an ignored test of this file in its own process, started by `wrapper`.
async fn run_apart(wrapper: &[&str], test: &str) {
    let own = std::env::current_exe().unwrap();
    let output = tokio::process::Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(own)
        .args(["--ignored", "--exact", "--nocapture"])
        .arg(format!("host::sentinel::tests::{test}"))
        .output()
        .await
        .expect("util-linux is there");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Needs only a user namespace, not root on the machine.
#[tokio::test]
async fn a_file_system_mounted_over_the_folder_is_noticed() {
    let wrapper = ["unshare", "--map-root-user", "--mount"];
    run_apart(&wrapper, "inside_own_mounts").await;
}

#[tokio::test]
#[ignore = "a_file_system_mounted_over_the_folder_is_noticed runs it"]
async fn inside_own_mounts() {
    let host = host();
    let folder = host.path().join("run");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("needed"), "below").unwrap();
    let mut receiver = start(&host, "/run/needed");
    assert!(present(&now(&receiver)));
    let mount = |program: &str, arguments: &[&str]| {
        let status = std::process::Command::new(program)
            .args(arguments)
            .arg(&folder)
            .status();
        assert!(status.unwrap().success(), "{program}");
    };
    mount("mount", &["-t", "tmpfs", "tmpfs"]);
    until(&mut receiver, absent).await;
    fs::write(folder.join("needed"), "above").unwrap();
    until(&mut receiver, |state| {
        present(state) && parts(state).1 == "above"
    })
    .await;
    mount("umount", &[]);
    until(&mut receiver, |state| {
        present(state) && parts(state).1 == "below"
    })
    .await;
}

/// Root may read everything, so the test drops its rights first.
#[tokio::test]
async fn what_may_not_be_read_is_unknown_until_it_may() {
    if rustix::process::geteuid().is_root() {
        let wrapper = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
        run_apart(&wrapper, "inside_without_rights").await;
    } else {
        run_apart(&["env"], "inside_without_rights").await;
    }
}

#[tokio::test]
#[ignore = "what_may_not_be_read_is_unknown_until_it_may runs it"]
async fn inside_without_rights() {
    use std::os::unix::fs::PermissionsExt as _;
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let host = host();
    let folder = host.path().join("run");
    let file = folder.join("needed");
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "why").unwrap();
    allow(&folder, 0o000);
    let mut receiver = start(&host, "/run/needed");
    let text = why(&now(&receiver));
    assert!(text.contains("Permission denied"), "{text}");
    assert!(text.contains("the right to read"), "{text}");
    allow(&folder, 0o755);
    until(&mut receiver, present).await;
    allow(&file, 0o000);
    let state = until(&mut receiver, unknown).await;
    assert!(why(&state).contains("cannot read sentinel"), "{state:?}");
    allow(&file, 0o644);
    until(&mut receiver, present).await;
}
