//! Who may break a lock, and who may write the other Leases.

use serde_json::json;

use super::{Before, LEASES, Row, SLOT, TIME, bid, create, delete, free, lease};
use crate::admission::Who::{Breaker, Controller, First, Person};
use crate::admission::{Call, Stage};
use crate::support::api::MERGE;

#[tokio::test]
async fn a_lock_is_broken_by_the_controller_or_by_a_person_who_may_break_this_very_lease() {
    let other = "dogwatch-default-1";
    let stage = Stage::set().await;
    // A person deletes Leases that are held.
    stage.cluster.break_by_hand("S1");
    let rows: Vec<Row> = vec![
        (
            "breaking",
            Before::Held,
            Controller,
            free(&json!({})),
            Ok(()),
        ),
        ("breaking", Before::Held, Breaker, free(&json!({})), Ok(())),
        ("deleting", Before::Held, Breaker, delete(SLOT), Ok(())),
        // The healer removes a run whose process is gone.
        (
            "the holder's record",
            Before::Held,
            Controller,
            bid("node/first"),
            Ok(()),
        ),
        (
            "a lock of the lock API",
            Before::Free,
            Controller,
            bid("api/host.example"),
            Ok(()),
        ),
    ];
    for (what, before, who, call, expected) in rows {
        before.stand(&stage).await;
        stage.attempt(what, who, &call, expected).await;
    }
    stage
        .cluster
        .api
        .create(LEASES, &lease(other, "node/first"))
        .await;
    stage
        .attempt(
            "deleting another",
            Breaker,
            &delete(other),
            Err("is never deleted"),
        )
        .await;
}

#[tokio::test]
async fn a_coordinator_writes_the_leases_of_slots_alone_and_the_controllers_are_its_own() {
    let stage = Stage::set().await;
    let api = &stage.cluster.api;
    api.delete(LEASES).await;
    let (leader, presence, remedy) = (
        "controller.dogwatch.dev",
        "api.dogwatch.dev-p1",
        "dogwatch-remedy-first-0",
    );
    for name in [leader, presence, remedy, "somebody-elses"] {
        api.create(LEASES, &lease(name, "p1")).await;
    }
    let renewal = json!({ "spec": { "renewTime": TIME } });
    let renew = |name: &str| Call::new("PATCH", format!("{LEASES}/{name}"), MERGE, renewal.clone());
    let slots = "a coordinator writes only the Leases of slots";
    let controllers = "is the controller's";
    // Two policies refuse this, and the API server returns the text of either.
    let either = "denied request";
    let table = [
        (leader, First, Err(slots)),
        (presence, First, Err(slots)),
        (remedy, First, Err(either)),
        ("somebody-elses", First, Err(slots)),
        (leader, Person, Err(controllers)),
        (presence, Person, Err(controllers)),
        (remedy, Person, Err(either)),
        ("somebody-elses", Person, Ok(())),
        (leader, Controller, Ok(())),
        (presence, Controller, Ok(())),
        (remedy, Controller, Ok(())),
    ];
    for (name, who, expected) in table {
        stage.attempt(name, who, &renew(name), expected).await;
    }
    for (name, who) in [(leader, First), ("dogwatch-remedy-a-0", First)] {
        stage
            .attempt(name, who, &create(name, Some("a")), Err(slots))
            .await;
    }
    stage
        .attempt(
            "the end of a replica",
            Person,
            &delete(presence),
            Err(controllers),
        )
        .await;
}
