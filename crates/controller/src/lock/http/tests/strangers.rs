//! Unauthenticated callers: what is read of them, and for how many at once. Source: specification
//! §6.

use std::sync::Arc;

use dogwatch_k8s::Error;
use dogwatch_k8s::access::ApiCaller;
use futures::future::{BoxFuture, pending};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::rig::{Alice, Rig, answer, config, post};
use crate::lock::http::{LockAccess, LockAuthMode};

const FORM: &str = "hostname=n1";

/// A header that promises a body, and no body.
fn head(token: &str) -> String {
    let whole = post("/api/v1/lock", &[&bearer(token)], FORM);
    whole
        .strip_suffix(FORM)
        .expect("the form is last")
        .replace("connection: close\r\n", "")
}

fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}")
}

async fn rig(strangers: usize, access: impl LockAccess) -> Rig {
    let mut config = config(LockAuthMode::Kubernetes);
    config.limits.strangers = strangers;
    Rig::with_access(config, Arc::new(access)).await
}

async fn sent(rig: &Rig, text: &str) -> TcpStream {
    let mut stream = rig.connect().await;
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_stranger_is_refused_before_a_body_and_its_connection_is_closed() {
    let rig = rig(64, Alice).await;
    let mut stranger = sent(&rig, &head("of-mallory")).await;
    // The server closes the stream, although the client asked to keep the connection.
    let refused = answer(&mut stranger).await;
    assert_eq!(refused.status, 401, "{refused:?}");
    assert_eq!(refused.header("connection"), Some("close"));
}

#[tokio::test]
async fn who_is_known_and_sends_no_body_takes_no_turn_of_the_strangers() {
    let rig = rig(1, Alice).await;
    let _slow = [
        sent(&rig, &head("of-alice")).await,
        sent(&rig, &head("of-alice")).await,
    ];
    let lock = post("/api/v1/lock", &[&bearer("of-alice")], FORM);
    assert_eq!(rig.raw(lock).await.status, 200);
}

/// Knows nobody until the test lets the API server answer; notifies at each call.
struct Slow {
    asked: Arc<Notify>,
    answers: Arc<Notify>,
}

impl LockAccess for Slow {
    fn find_token_owner(
        &self,
        token: String,
    ) -> BoxFuture<'static, Result<Option<ApiCaller>, Error>> {
        let (asked, answers) = (Arc::clone(&self.asked), Arc::clone(&self.answers));
        Box::pin(async move {
            asked.notify_one();
            answers.notified().await;
            Alice.find_token_owner(token).await
        })
    }

    fn may_lock(&self, _: ApiCaller, _: String) -> BoxFuture<'static, Result<bool, Error>> {
        Box::pin(pending())
    }
}

#[tokio::test]
async fn one_stranger_too_many_waits_for_its_turn_and_is_answered() {
    let (asked, answers) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = Slow {
        asked: Arc::clone(&asked),
        answers: Arc::clone(&answers),
    };
    let rig = rig(1, slow).await;
    let mut first = sent(&rig, &head("of-mallory")).await;
    asked.notified().await;
    let mut second = sent(&rig, &head("of-eve")).await;
    answers.notify_one();
    assert_eq!(answer(&mut first).await.status, 401);
    asked.notified().await;
    answers.notify_one();
    assert_eq!(answer(&mut second).await.status, 401);
}

#[tokio::test]
async fn a_stranger_who_waits_too_long_for_its_turn_is_told_so() {
    let (asked, answers) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut config = config(LockAuthMode::Kubernetes);
    config.limits.strangers = 1;
    config.limits.header = std::time::Duration::from_millis(200);
    let access = Slow {
        asked: Arc::clone(&asked),
        answers,
    };
    let rig = Rig::with_access(config, Arc::new(access)).await;
    let _first = sent(&rig, &head("of-mallory")).await;
    asked.notified().await;
    let mut second = sent(&rig, &head("of-eve")).await;
    let refused = answer(&mut second).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.is_one_line() && refused.body.contains("try again"));
}
