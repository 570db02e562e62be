//! As many clients as the limits allow, and more.

use futures::future::join_all;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::rig::{Rig, answer, post};

async fn waiter(rig: &Rig, number: usize) -> TcpStream {
    let mut stream = rig.connect().await;
    let form = format!("hostname=h{number}");
    stream
        .write_all(post("/api/v1/lock", &[], &form).as_bytes())
        .await
        .unwrap();
    stream
}

#[tokio::test]
async fn the_2001st_waiter_is_told_to_come_back_and_the_others_keep_their_turn() {
    let rig = Rig::open().await;
    assert_eq!(rig.lock("hostname=holder").await.status, 200);
    let mut waiting = Vec::new();
    for hundred in 0..20 {
        let numbers = hundred * 100..(hundred + 1) * 100;
        waiting.extend(join_all(numbers.map(|number| waiter(&rig, number))).await);
    }
    rig.lock
        .until("2,000 wait", |state| state.queue.len() == 2_000)
        .await;
    let order: Vec<_> = rig
        .lock
        .now()
        .queue
        .into_iter()
        .map(|(_, client)| client)
        .collect();
    for _ in 0..3 {
        let one_more = rig.lock("hostname=one-more").await;
        assert_eq!(one_more.status, 429, "{one_more:?}");
        assert!(
            one_more.is_one_line() && one_more.body.contains("2000"),
            "{one_more:?}"
        );
        assert!(one_more.header("retry-after").is_some());
    }
    // Unlocking has a limit of its own.
    rig.unlock("hostname=holder").await;
    for client in &order[..20] {
        let host = client.to_string();
        let host = host.strip_prefix("api/").unwrap();
        rig.lock
            .until("its turn", |state| state.holders.contains(client))
            .await;
        let number: usize = host[1..].parse().unwrap();
        assert_eq!(answer(&mut waiting[number]).await.status, 200);
        rig.unlock(&format!("hostname={host}")).await;
    }
    assert_eq!(rig.lock.now().most, 1);
    drop(waiting);
    rig.lock
        .until("all others gave up", |state| state.queue.is_empty())
        .await;
}

#[tokio::test]
async fn ten_thousand_clients_are_all_answered() {
    let rig = Rig::open().await;
    rig.lock("hostname=holder").await;
    let mut waiting = Vec::new();
    let mut refused = 0;
    for number in 0..10_000 {
        let mut stream = waiter(&rig, number).await;
        if number < 2_000 {
            waiting.push(stream);
            continue;
        }
        if number == 2_000 {
            rig.lock
                .until("2,000 wait", |state| state.queue.len() >= 1_999)
                .await;
        }
        refused += usize::from(answer(&mut stream).await.status == 429);
    }
    assert!(refused >= 7_999, "{refused}");
    drop(waiting);
    rig.lock
        .until("all gave up", |state| state.queue.is_empty())
        .await;
}
