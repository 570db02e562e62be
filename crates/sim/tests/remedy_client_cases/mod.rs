//! Cases of the remediator's watches and writes for every API server.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod hosts;
mod looks;
mod machines;
mod nodes;
mod release;
mod requests;
mod stale;
mod watching;
pub mod world;

pub use hosts::*;
pub use looks::*;
pub use machines::*;
pub use nodes::*;
pub use release::*;
pub use requests::*;
pub use stale::*;
pub use watching::*;

/// Passes every case to a macro that makes a test of it.
macro_rules! every_case {
    ($run:ident) => {
        $run! {
            kinds_that_come_are_found_and_one_that_is_taken_out_leaves_nothing
            machines_of_both_apis_are_seen_from_their_creation_to_their_end
            the_older_version_is_used_where_that_is_all_there_is_and_the_newer_one_once_it_is_not
            what_is_between_a_machine_and_its_host_is_seen_and_so_are_requests
            a_cluster_that_is_paused_is_seen_until_it_is_not
            a_key_and_its_record_are_put_on_a_host_in_one_write_and_what_others_wrote_stays
            a_word_that_was_said_before_a_key_goes_when_the_key_is_added
            a_key_goes_with_the_word_that_was_given_for_it_and_no_other_key_goes
            a_key_of_somebody_else_is_neither_written_over_nor_removed
            what_is_kept_for_a_node_is_kept_in_dogwatchs_namespace_until_it_is_dropped
            what_is_kept_and_cannot_be_read_is_written_over
            what_an_older_version_kept_on_a_host_goes_and_nothing_else
            keys_are_put_on_metal3s_own_hosts_and_taken_off
            a_need_that_is_served_goes_and_one_that_is_marked_again_stays
            a_condition_is_written_in_the_form_of_its_version_and_others_stay
            a_machine_is_handed_back_in_the_lists_of_both_versions
            a_node_is_marked_once_and_unmarked
            what_was_on_the_old_node_comes_back_and_what_is_on_the_new_one_wins
            our_taint_is_lifted_and_no_other
            the_need_of_a_node_goes
            a_status_of_a_request_is_written_and_read_back
            our_finalizer_comes_and_goes_and_those_of_others_stay
            no_write_is_done_on_what_has_changed_since_or_was_made_anew
            a_node_that_is_cleared_is_deleted_and_no_other_of_its_name
            nothing_is_sent_once_the_clearance_is_over
            a_node_that_gave_a_sign_of_life_since_it_was_cleared_is_not_released
            a_deletion_that_comes_late_does_nothing_to_a_node_that_has_lived_since
            a_node_that_its_controllers_write_to_meanwhile_is_deleted_all_the_same
            a_node_that_others_keep_is_said_to_be_kept
            a_node_that_is_cleared_is_tainted_once_and_taints_of_others_stay
            signs_of_life_are_those_of_the_node_and_of_its_lease
            everything_that_a_release_rests_on_is_read_afresh
            what_the_taint_has_still_to_remove_is_named
            the_same_news_of_one_episode_is_told_once_where_its_object_is
        }
    };
}
pub(crate) use every_case;
