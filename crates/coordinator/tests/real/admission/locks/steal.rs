//! Attempts to take a held lock, or to forge its holder.

use serde_json::json;

use super::{
    Before, HELD, LEASES, NOT_ITS, SLOT, TOGETHER, apply, bid, delete, each, free, lease, merge,
    metadata,
};
use crate::admission::Call;
use crate::admission::Who::{First, Person, Second, Unbound};
use crate::support::api::{JSON, JSON_PATCH};

#[tokio::test]
async fn no_kind_of_patch_steals_a_lock() {
    let steal = json!({ "spec": { "holderIdentity": "node/second" } });
    let json_patch =
        json!([{ "op": "replace", "path": "/spec/holderIdentity", "value": "node/second" }]);
    let json_patch = Call::new("PATCH", format!("{LEASES}/{SLOT}"), JSON_PATCH, json_patch);
    each(vec![
        ("merge patch", Before::Held, Second, merge(steal.clone()), Err(HELD)),
        ("forced apply", Before::Held, Second, apply("node/second", "fieldManager=node/second&force=true"), Err(HELD)),
        ("forced apply as the holder's manager", Before::Held, Second, apply("node/second", "fieldManager=node/first&force=true"), Err(HELD)),
        ("a person's merge patch", Before::Held, Person, merge(steal), Err(HELD)),
        ("a JSON patch", Before::Held, Second, json_patch, Err(HELD)),
        ("deletion", Before::Held, Person, delete(SLOT), Err("is never deleted")),
        ("deletion of a free one", Before::Free, Person, delete(SLOT), Err("is never deleted")),
        ("making it held", Before::Missing, Second, Call::new("POST", LEASES, JSON, lease(SLOT, "node/second")), Err("is made free")),
        ("making it held by apply", Before::Missing, Second, bid("node/second"), Err("is made free")),
        ("making it with a record", Before::Missing, First, {
            let body = json!({ "metadata": { "name": SLOT, "labels": { "dogwatch.dev/group": "default" }, "annotations": { "dogwatch.dev/holder": "x" } } });
            Call::new("POST", LEASES, JSON, body)
        }, Err("is made free")),
    ])
    .await;
}

#[tokio::test]
async fn the_record_is_the_holders_and_goes_with_it() {
    let forged = json!({ "annotations": { "dogwatch.dev/holder": "forged" } });
    let late = json!({ "spec": { "acquireTime": "2027-01-01T00:00:00.000000Z" } });
    each(vec![
        ("a forged record", Before::Held, Second, metadata(&forged), Err(NOT_ITS)),
        ("a forged record", Before::Held, Unbound, metadata(&forged), Err(NOT_ITS)),
        ("a person's record", Before::Held, Person, metadata(&forged), Err(NOT_ITS)),
        ("no record", Before::Held, Second, metadata(&json!({ "annotations": { "dogwatch.dev/holder": null } })), Err(NOT_ITS)),
        ("another time", Before::Held, Second, merge(late), Err(NOT_ITS)),
        ("a record on a free one", Before::Free, First, metadata(&forged), Err("only a holder itself")),
        ("the holder without its record", Before::Held, First, merge(json!({ "spec": { "holderIdentity": null, "acquireTime": null } })), Err(TOGETHER)),
        ("the holder without its time", Before::Held, First, merge(json!({ "metadata": { "annotations": { "dogwatch.dev/holder": null } }, "spec": { "holderIdentity": null } })), Err(TOGETHER)),
        ("another's leftovers cleared", Before::Leftover, Second, free(&json!({ "dogwatch.dev/next": null })), Ok(())),
        ("leftovers half cleared", Before::Leftover, Second, merge(json!({ "spec": { "acquireTime": null } })), Err("only a holder itself")),
        ("leftovers changed", Before::Leftover, Second, metadata(&forged), Err("only a holder itself")),
    ])
    .await;
}
