//! The small worlds, searched whole, and each guard taken out.

use dogwatch_proof::search::SearchLimits;
use dogwatch_proof::worlds::{mutations, search_mutation, small_worlds};

fn limits() -> SearchLimits {
    SearchLimits {
        threads: 2,
        first_failure: true,
        ..SearchLimits::default()
    }
}

#[test]
fn in_every_order_of_steps_crashes_and_messages_the_promises_hold() {
    for world in small_worlds() {
        let report = world.search(limits());
        println!("{report}");
        assert!(report.is_clean(), "{report}");
        assert!(report.search.complete, "{report}");
    }
}

#[test]
fn each_guard_that_is_taken_out_is_missed_by_the_promise_that_it_keeps() {
    for mutation in mutations() {
        let found = search_mutation(mutation, limits());
        println!("{found}");
        assert!(found.is_found(), "{found}: {}", found.report);
    }
}
