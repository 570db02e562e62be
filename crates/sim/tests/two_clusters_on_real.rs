//! Remediation with Machines and hosts on one real API server and their Nodes on another, with the
//! rights that are shipped. Source: specification §10.5.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(
    clippy::disallowed_methods,
    reason = "a real API server has the real time"
)]

#[allow(dead_code, unused_imports, reason = "each test binary uses its part")]
mod power_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod power_rights;
#[allow(dead_code, unused_imports, reason = "each test binary uses its part")]
mod remedy_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;
mod two_cluster_cases;

use two_cluster_cases::world::TwoClusters;

macro_rules! alone {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let _alone = support::real::ALONE.lock().await;
            let clusters = TwoClusters::start().await;
            two_cluster_cases::$name(&clusters).await;
            clusters.end().await;
        }
    )* };
}

alone! {
    a_machine_here_and_its_node_there_are_remediated_whole
    where_dogwatch_is_installed_its_lease_counts_the_node
    the_lease_is_in_the_namespace_that_the_kubeconfig_names
    a_kubeconfig_that_is_missing_unsafe_or_of_another_cluster_is_said_and_nothing_is_touched
    a_new_credential_is_used_at_once_after_the_old_one_was_refused
    a_cluster_that_is_away_at_any_step_releases_nothing_and_leaves_nobody_off
}
