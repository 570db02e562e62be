//! What the log contains.

use std::io;
use std::sync::{Arc, Mutex};

use super::rig::{Rig, config, post};
use crate::lock::http::LockAuthMode;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, some: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(some);
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn each_call_is_in_the_log_and_no_token_is_at_any_level() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let rig = Rig::start(config(LockAuthMode::Kubernetes)).await;
    for token in ["of-alice", "nobodys", "while-away", "two words"] {
        let header = format!("authorization: Bearer {token}");
        rig.raw(post("/api/v1/lock", &[&header], "hostname=n1"))
            .await;
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for seen in [
        "host=\"n1\"",
        "user \\\"alice\\\"",
        "answer=\"held\"",
        "WARN",
    ] {
        assert!(text.contains(seen), "{seen} {text}");
    }
    for secret in ["of-alice", "nobodys", "while-away", "two words"] {
        assert!(!text.contains(secret), "{text}");
    }
}
