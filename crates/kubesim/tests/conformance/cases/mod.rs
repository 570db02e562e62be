//! The cases. Each function's name is the promise, and it returns the steps that show it.

pub mod applies;
pub mod custom;
pub mod pods;
pub mod reads;
pub mod reviews;
pub mod schemas;
pub mod verbs;
pub mod writes;

use serde_json::{Value, json};

/// Passes every case to a macro that makes a test of it.
macro_rules! every_case {
    ($test:ident) => {
        $test! {
            verbs:
                what_is_created_is_read_changed_and_gone
                a_collection_is_deleted_by_selector
                a_name_that_is_taken_is_refused
                what_is_not_there_is_404_for_every_verb
                a_put_to_a_lease_that_is_not_there_makes_it
                in_a_namespace_that_is_not_there_nothing_is_made
                names_and_fields_that_break_the_rules_are_422
                bodies_that_are_something_else_are_refused
                a_dry_run_answers_and_leaves_no_trace
                finalizers_hold_an_object_until_they_are_gone
                what_a_server_sets_nobody_else_sets
                a_node_is_cordoned_and_its_status_is_kept_apart
                events_are_made_and_read_in_both_groups;
            writes:
                a_write_of_an_old_version_is_a_conflict
                a_put_without_a_version_writes_over_what_is_there
                a_write_for_another_uid_is_a_conflict
                a_delete_checks_uid_and_version_first
                a_json_patch_tests_and_changes_or_does_neither
                a_merge_patch_replaces_lists_and_removes_what_is_null
                a_strategic_patch_merges_conditions_by_type
                a_write_that_changes_nothing_moves_no_version
                generation_counts_changes_of_the_spec_alone;
            reads:
                labels_select_by_equality_and_by_set
                fields_select_what_each_kind_offers
                pages_continue_where_the_last_one_ended_and_show_one_state
                versions_that_cannot_be_are_refused
                a_watch_shows_what_comes_changes_and_goes_and_ends_in_time
                a_selective_watch_turns_changes_into_arrivals_and_departures
                a_watch_without_a_version_begins_with_what_is_there
                initial_events_end_in_a_marked_bookmark
                a_watch_shows_metadata_or_rows_where_asked
                metadata_alone_is_shown_where_asked
                tables_show_nodes_pods_and_others_as_kubectl_wants_them;
            applies:
                an_apply_makes_what_is_not_there_and_owns_it
                a_second_manager_is_told_who_is_in_the_way_and_where
                the_same_value_is_owned_by_both_until_both_let_go
                what_an_apply_leaves_out_goes_unless_another_wrote_it_too
                a_writer_that_is_no_applier_is_in_the_way_too
                an_apply_of_the_same_again_moves_no_version
                an_apply_that_saw_an_older_version_is_a_conflict
                an_apply_without_what_it_needs_is_refused
                a_status_is_applied_apart
                sets_and_maps_are_owned_item_by_item
                a_put_can_take_a_field_from_an_applier;
            pods:
                a_pod_on_a_node_stays_for_its_grace_and_one_without_goes_at_once
                a_finished_pod_goes_at_once
                a_pods_own_grace_and_its_finalizers_count
                a_pods_deletion_checks_its_preconditions
                a_pods_place_and_containers_are_fixed
                a_pod_is_bound_once
                an_eviction_without_a_budget_deletes
                a_spent_budget_refuses_before_the_uid_is_looked_at
                a_budget_is_spent_even_for_another_uid
                a_budget_with_room_is_spent_by_one
                several_budgets_over_one_pod_are_a_500
                a_budget_that_nobody_has_counted_yet_asks_for_patience
                a_pod_that_does_not_run_is_evicted_whatever_its_budget
                a_pod_that_is_not_ready_counts_for_nothing_where_the_budget_is_met
                a_pod_that_is_not_ready_stays_where_the_budget_is_not_met
                a_dry_run_of_an_eviction_spends_nothing
                an_eviction_that_names_another_pod_is_refused
                in_a_terminating_namespace_nothing_is_evicted_or_made;
            custom:
                a_kind_that_is_defined_is_served_like_any_other
                a_custom_status_is_written_apart
                a_custom_object_is_applied_and_owned
                what_custom_kinds_do_not_take_is_refused;
            schemas:
                a_value_of_another_type_is_refused
                a_value_beyond_its_limits_is_refused
                defaults_are_filled_in_and_owned_by_the_writer
                unknown_fields_are_dropped_or_refused_as_the_writer_wants
                rules_are_evaluated_and_their_messages_told
                a_transition_rule_compares_with_the_old_state
                a_status_is_checked_apart
                a_dry_run_checks_and_stores_nothing
                a_definition_whose_rule_does_not_compile_is_refused
                the_schema_is_published;
            reviews:
                an_admin_may_do_everything
                a_user_is_told_who_it_is
                all_groups_are_discovered_in_one_answer
                fields_that_a_kind_does_not_have_are_told;
        }
    };
}
pub(crate) use every_case;

pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";
pub const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/slot";
pub const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
pub const MAP: &str = "/api/v1/namespaces/{ns}/configmaps/map";
pub const PODS: &str = "/api/v1/namespaces/{ns}/pods";
pub const POD: &str = "/api/v1/namespaces/{ns}/pods/pod";
pub const NODES: &str = "/api/v1/nodes";
pub const NODE: &str = "/api/v1/nodes/{ns}-node";
pub const BUDGETS: &str = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets";

/// A Lease `slot` to apply, with this spec.
pub fn slot(spec: &Value) -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "slot" }, "spec": spec })
}

/// A ConfigMap `map` with these data.
pub fn map(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "map" }, "data": data })
}

/// A pod `pod` labelled `app=x` on the node `node`, which need not exist.
pub fn pod() -> Value {
    json!({ "metadata": { "name": "pod", "labels": { "app": "x" } },
        "spec": { "nodeName": "node", "containers": [{ "name": "c", "image": "i" }] } })
}

pub fn node() -> Value {
    json!({ "metadata": { "name": "{ns}-node", "labels": { "case": "{ns}" } } })
}
