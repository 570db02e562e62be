//! The lock's cases on a real API server.

mod lock_cases;

use lock_cases::World;

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            lock_cases::$name(&World::on(client().await).await).await;
        }
    )* };
}

async fn client() -> kube::Client {
    let control_plane = dogwatch_testbed::shared().await;
    let kubeconfig = kube::config::Kubeconfig::read_from(control_plane.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}

on_real! {
    a_free_slot_is_made_once_and_by_whoever_comes_first
    a_slot_that_lost_its_label_is_found_again
    the_winner_is_written_with_its_record_and_nothing_is_lost_of_it
    a_second_bidder_is_refused_by_the_server_itself
    of_many_bidders_at_once_exactly_one_wins
    a_late_duplicate_of_a_bid_takes_nothing
    a_late_duplicate_of_a_release_frees_nobody_elses_lock
    a_bid_for_a_lease_that_was_deleted_does_not_make_it_anew
    a_bid_for_another_incarnation_of_the_lease_is_refused
    what_a_half_release_left_behind_is_swept_by_the_next_bidder
    a_broken_lock_can_be_taken_by_anybody
    breaking_on_old_evidence_breaks_nothing
    a_new_run_takes_over_and_the_older_one_fails_its_next_write
    giving_up_takes_only_ones_own_run_and_the_last_one_out_frees
    the_same_write_again_changes_nothing
    the_leaver_calls_the_next_and_the_call_hinders_no_bid
    giving_back_over_budget_is_counted_until_somebody_is_done
    a_name_too_long_for_a_manager_locks_all_the_same
    waiting_is_by_watch_and_sees_who_left
    waiters_are_found_by_their_label_in_the_order_of_the_hint
    a_count_sees_every_member_and_every_held_lease
    two_fresh_reads_tell_a_missing_node_and_another_one
}
