//! The conformance suite: the embedded API server and a real kube-apiserver get the same requests.
//! They must give the expected answers and, except for uids, times and versions, equal ones.
//!
//! `cases` are written one by one with expected answers; `generated` are short random sequences,
//! which are only compared. Requests to both servers are raw HTTP under a kube client.
//! `differences` lists the known differences with their reasons. What Dogwatch combines (bids,
//! drains, failing watches) is tested on both servers by `lock_on_*` and `drain_on_*`, and not
//! repeated here. What only the embedded server can do (faults, compaction on demand, paused time)
//! is in `api_server` and `api_client`.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod cases;
mod compare;
mod differences;
mod differences_1_32;
mod generated;
mod normal;
mod servers;
mod step;
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
