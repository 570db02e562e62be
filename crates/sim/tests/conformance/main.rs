//! The conformance suite: the embedded API server and a real kube-apiserver are asked the same, and
//! must answer what is expected and, but for uids, times and versions, the same to the last field.
//!
//! `cases` are told one by one, each with what it expects; `generated` are short random sequences,
//! compared only. Both servers are asked in raw HTTP under a kube client. `differences` lists what
//! is left, with reasons. What Dogwatch's own parts rely on together (bids, drains, watches that
//! fail) is run on both servers by `lock_on_*` and `drain_on_*`, and is not repeated here; what only
//! the embedded server can show (faults, compaction on demand, paused time) is in `api_server` and
//! `api_client`.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod cases;
mod compare;
mod differences;
mod generated;
mod normal;
mod servers;
mod step;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../support/mod.rs"]
mod support;

macro_rules! on_both {
    ($($module:ident: $($name:ident)*;)*) => { $(
        mod $module { $(
            #[tokio::test]
            async fn $name() {
                crate::compare::hold(crate::cases::$module::$name()).await;
            }
        )* }
    )* };
}

cases::every_case!(on_both);
