//! All tests on the embedded cluster, in one program, because each one links the whole tree.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../api_lock_cases/mod.rs"]
mod api_lock_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../api_lock_rounds/mod.rs"]
mod api_lock_rounds;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../drain_cases/mod.rs"]
mod drain_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../handshake_cases/mod.rs"]
mod handshake_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../heal_cases/mod.rs"]
mod heal_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../host_cases/mod.rs"]
mod host_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../lock_cases/mod.rs"]
mod lock_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../node_reboot_cases/mod.rs"]
mod node_reboot_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../policy_cases/mod.rs"]
mod policy_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../power_cases/mod.rs"]
mod power_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../remedy_cases/mod.rs"]
mod remedy_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../remedy_client_cases/mod.rs"]
mod remedy_client_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../schedule_cases/mod.rs"]
mod schedule_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../support/mod.rs"]
mod support;

mod api_lock_conflicts;
mod api_lock_on_embedded;
mod calls_in_series;
mod chaos;
mod cluster_watch;
mod drain_on_embedded;
mod handshake_on_embedded;
mod heal_on_embedded;
mod host_on_embedded;
mod lock_on_embedded;
mod node_reboot_on_embedded;
mod policy_on_embedded;
mod power_chaos;
mod power_on_embedded;
mod remedy_client_on_embedded;
mod remedy_on_embedded;
mod rollout_estimates;
mod scenarios;
mod schedule_on_embedded;
mod workload_namespace;
