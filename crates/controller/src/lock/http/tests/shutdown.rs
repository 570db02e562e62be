//! The server's shutdown.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::rig::{Rig, answer, config, post, within};
use crate::lock::http::LockAuthMode;

#[tokio::test]
async fn those_who_wait_at_the_end_get_503_and_a_line_and_hold_nothing() {
    let mut config = config(LockAuthMode::None);
    config.limits.shutdown_grace = Duration::from_millis(100);
    let mut rig = Rig::start(config).await;
    rig.lock("hostname=holder").await;
    let mut waiter = rig.connect().await;
    let request = post("/api/v1/lock", &[], "hostname=waiter");
    waiter.write_all(request.as_bytes()).await.unwrap();
    rig.lock
        .until("waits", |state| state.queue.len() == 1)
        .await;
    let silent = rig.connect().await;
    rig.stop();
    let answer = answer(&mut waiter).await;
    assert_eq!(answer.status, 503);
    assert!(
        answer.is_one_line() && answer.body.contains("this replica is stopping"),
        "{answer:?}"
    );
    assert!(answer.header("retry-after").is_some());
    within("the end", &mut rig.ended).await.unwrap();
    drop(silent);
    assert!(
        TcpStream::connect(rig.address).await.is_err(),
        "nobody listens"
    );
    let now = rig.lock.now();
    assert_eq!((now.queue.len(), now.holders.len()), (0, 1));
}

#[tokio::test]
async fn what_the_lock_itself_says_at_the_end_goes_before() {
    let mut rig = Rig::open().await;
    rig.lock("hostname=holder").await;
    let mut waiter = rig.connect().await;
    let request = post("/api/v1/lock", &[], "hostname=waiter");
    waiter.write_all(request.as_bytes()).await.unwrap();
    rig.lock
        .until("waits", |state| state.queue.len() == 1)
        .await;
    let kept = rig.connect().await;
    rig.stop();
    // The lock answers within its own time; here it grants the lock to the waiter.
    let holder = rig.lock.now().holders.into_iter().next().unwrap();
    crate::lock::service::LockService::unlock_host(&rig.lock, holder).await;
    assert_eq!(answer(&mut waiter).await.status, 200);
    within("the end", &mut rig.ended).await.unwrap();
    drop(kept);
}
