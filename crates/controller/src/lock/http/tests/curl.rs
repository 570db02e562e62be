//! The lock API called with curl.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use super::rig::{Rig, config, within};
use crate::lock::http::LockAuthMode;

pub struct Curl {
    pub status: u16,
    pub body: String,
}

pub fn curl(arguments: &[&str]) -> Command {
    let mut command = Command::new("curl");
    command
        .args([
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--write-out",
            "%{http_code}",
        ])
        .args(arguments)
        .kill_on_drop(true)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub async fn finish(child: Child) -> Result<Curl, String> {
    let output = within("curl", child.wait_with_output()).await.unwrap();
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr).unwrap());
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.split_at(text.len() - 3);
    Ok(Curl {
        status: status.parse().unwrap(),
        body: body.to_owned(),
    })
}

pub async fn run(arguments: &[&str]) -> Result<Curl, String> {
    finish(curl(arguments).spawn().unwrap()).await
}

fn url(rig: &Rig, call: &str) -> String {
    format!("http://{}/api/v1/{call}", rig.address)
}

#[tokio::test]
async fn curl_gets_the_lock_and_gives_it_up_in_both_encodings() {
    let rig = Rig::open().await;
    let (lock, unlock) = (url(&rig, "lock"), url(&rig, "unlock"));
    for option in ["--data", "--form", "--data-urlencode"] {
        let held = run(&[option, "hostname=n1", &lock]).await.unwrap();
        assert_eq!(
            (held.status, held.body.as_str()),
            (200, "held\n"),
            "{option}"
        );
        let busy = run(&[option, "hostname=n2", option, "wait=false", &lock])
            .await
            .unwrap();
        assert_eq!((busy.status, busy.body.as_str()), (409, "others hold it\n"));
        let free = run(&[option, "hostname=N1", &unlock]).await.unwrap();
        assert_eq!((free.status, free.body.as_str()), (200, "held no more\n"));
    }
}

#[tokio::test]
async fn curl_waits_until_the_lock_is_free() {
    let rig = Rig::open().await;
    let (lock, unlock) = (url(&rig, "lock"), url(&rig, "unlock"));
    run(&["--form", "hostname=n1", &lock]).await.unwrap();
    let waits = curl(&["--form", "hostname=n2", "--form", "wait=true", &lock])
        .spawn()
        .unwrap();
    rig.lock
        .until("waits", |state| state.queue.len() == 1)
        .await;
    run(&["--form", "hostname=n1", &unlock]).await.unwrap();
    assert_eq!(finish(waits).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_curl_that_is_killed_while_it_waits_leaves_nothing() {
    let rig = Rig::open().await;
    let lock = url(&rig, "lock");
    run(&["--data", "hostname=n1", &lock]).await.unwrap();
    let mut killed = curl(&["--data", "hostname=n2", &lock]).spawn().unwrap();
    let impatient = curl(&["--max-time", "1", "--data", "hostname=n3", &lock])
        .spawn()
        .unwrap();
    rig.lock
        .until("both wait", |state| state.queue.len() == 2)
        .await;
    killed.kill().await.unwrap();
    assert!(finish(impatient).await.is_err());
    rig.lock
        .until("both gave up", |state| state.queue.is_empty())
        .await;
}

#[tokio::test]
async fn curl_hears_why_it_is_refused() {
    let mut config = config(LockAuthMode::None);
    config.limits.waiters = 1;
    let rig = Rig::start(config).await;
    let lock = url(&rig, "lock");
    let big = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(big.path(), vec![b'x'; 10_000_000]).unwrap();
    let big = format!("hostname=@{}", big.path().display());
    let upload = ["--form", &big, &lock];
    let chunked = [
        "--header",
        "transfer-encoding: chunked",
        "--form",
        &big,
        &lock,
    ];
    for (arguments, status) in [
        (&["--data", "hostname=n_1", &lock][..], 400),
        (&["--json", "{}", &lock], 415),
        (&["--request", "PUT", "--data", "hostname=n1", &lock], 405),
        (&[&lock[..]], 405),
        (
            &["--data", "hostname=n1", "--header", "Content-Type:", &lock],
            415,
        ),
        (&upload, 413),
        (&chunked, 413),
        (&["--data", "hostname=too-many", &lock], 429),
    ] {
        let refused = run(arguments).await.unwrap();
        assert_eq!(refused.status, status, "{arguments:?} {}", refused.body);
        assert_eq!(refused.body.matches('\n').count(), 1, "{}", refused.body);
        assert!(refused.body.ends_with('\n'));
    }
}

#[tokio::test]
async fn many_curls_at_once_hold_the_lock_one_by_one() {
    let rig = Rig::open().await;
    let (lock, unlock) = (url(&rig, "lock"), url(&rig, "unlock"));
    let all = (0..20).map(|number| {
        let form = format!("hostname=h{number}");
        let (lock, unlock) = (lock.clone(), unlock.clone());
        async move {
            assert_eq!(run(&["--form", &form, &lock]).await.unwrap().status, 200);
            assert_eq!(run(&["--data", &form, &unlock]).await.unwrap().status, 200);
        }
    });
    tokio::time::timeout(Duration::from_mins(1), futures::future::join_all(all))
        .await
        .unwrap();
    let state = rig.lock.now();
    assert_eq!((state.most, state.holders.len()), (1, 0));
}
