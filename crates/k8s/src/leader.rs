//! The leader's Lease: read, watched and written.
//!
//! **For:** the election that `dogwatch_core::leader` decides.
//! **May touch:** the one Lease [`LEASE`] in Dogwatch's namespace: list and watch by name, get,
//! create, patch.
//! **Promises:** every write but the plain create carries the UID and resourceVersion that it was
//! made for, as a merge patch: one that arrives late changes nothing, and unlike a PUT or an apply
//! it never makes a deleted Lease anew (facts/control-plane.md). No deletion.

use dogwatch_api::lease::LEADER as LEASE;
use dogwatch_core::leader::{CALL_WITHIN, LEASE as LENGTH, LeaderLease, Sight, Write};
use futures::stream::{BoxStream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ObjectMeta, Patch, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::error::{Error, Kind};
use crate::manager::patched_by;
use crate::watch::{Event, Full, Selection, watch};

/// How the controller names itself as a field manager.
const MANAGER: &str = "dogwatch-controller";

/// One process' hand on the leader's Lease.
#[derive(Clone)]
pub struct LeaderClient {
    leases: Api<Lease>,
    me: String,
}

impl LeaderClient {
    /// A hand that takes it as `me`.
    pub fn new(client: Client, namespace: &str, me: impl Into<String>) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            me: me.into(),
        }
    }

    /// Reads it afresh.
    pub async fn read(&self) -> Result<Sight, Error> {
        match soon(self.leases.get(LEASE)).await {
            Ok(lease) => Ok(sight(&lease)),
            Err(error) if error.kind() == Kind::NotFound => Ok(Sight::Missing),
            Err(error) => Err(error),
        }
    }

    /// Writes, and shows what stands there then; a refusal because it had changed is answered with
    /// what it has changed to.
    pub async fn write(&self, write: &Write) -> Result<Sight, Error> {
        let written = match write {
            Write::Create => soon(self.leases.create(&PostParams::default(), &free())).await,
            Write::Take { lease, renewed } => self.patch(taken(lease, &self.me, *renewed)).await,
            Write::Renew { lease, renewed } => self.patch(renewal(lease, *renewed)).await,
            Write::Release { lease } => self.patch(released(lease)).await,
        };
        match written {
            Ok(lease) => Ok(sight(&lease)),
            Err(error) => match error.kind() {
                Kind::Conflict | Kind::AlreadyExists | Kind::NotFound => {
                    self.found_instead(write, error).await
                }
                Kind::Gone
                | Kind::Forbidden
                | Kind::Throttled { .. }
                | Kind::Refused
                | Kind::Transient => Err(error),
            },
        }
    }

    /// What is seen of it from now on; trouble passes by itself.
    pub fn watch(
        &self,
        jitter: impl FnMut() -> f64 + Send + 'static,
    ) -> BoxStream<'static, Result<Sight, Error>> {
        let this_one = Selection::fields(format!("metadata.name={LEASE}"));
        let events = watch(Full(self.leases.clone()), this_one, jitter);
        let sights = events.map(|event| match event {
            Event::Restarted(leases) => Ok(leases.first().map_or(Sight::Missing, sight)),
            Event::Applied(lease) => Ok(sight(&lease)),
            Event::Deleted(_) => Ok(Sight::Missing),
            Event::Trouble(error) => Err(error),
        });
        sights.boxed()
    }

    async fn patch(&self, body: Value) -> Result<Lease, Error> {
        let params = patched_by(MANAGER);
        soon(self.leases.patch(LEASE, &params, &Patch::Merge(body))).await
    }

    /// A 404 to a create is a namespace that is not there: said, and not taken for a Lease that has
    /// gone, which would be made again at once and for ever.
    async fn found_instead(&self, write: &Write, error: Error) -> Result<Sight, Error> {
        match (write, error.kind()) {
            (Write::Create, Kind::NotFound) => Err(error),
            _ => self.read().await,
        }
    }
}

/// A call within the time that its answer is of use.
async fn soon<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    match tokio::time::timeout(CALL_WITHIN, call).await {
        Ok(answer) => answer.map_err(Error::from),
        Err(_) => Err(Error::Timeout(CALL_WITHIN)),
    }
}

fn sight(lease: &Lease) -> Sight {
    let spec = lease.spec.clone().unwrap_or_default();
    let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
    Sight::There(LeaderLease {
        uid: lease.uid().unwrap_or_default(),
        resource_version: lease.resource_version().unwrap_or_default(),
        released: holder.is_none() && spec.lease_duration_seconds == Some(1),
        holder,
        renewed: spec.renew_time.map(|time| time.0),
        transitions: spec
            .lease_transitions
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(0),
    })
}

fn free() -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(LEASE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: None,
    }
}

fn on(lease: &LeaderLease, spec: &Value) -> Value {
    json!({
        "metadata": { "uid": lease.uid, "resourceVersion": lease.resource_version },
        "spec": spec,
    })
}

fn taken(lease: &LeaderLease, me: &str, renewed: Timestamp) -> Value {
    on(
        lease,
        &json!({
            "holderIdentity": me,
            "leaseDurationSeconds": LENGTH.as_secs(),
            "acquireTime": micro_time(renewed),
            "renewTime": micro_time(renewed),
            "leaseTransitions": lease.transitions.saturating_add(1),
        }),
    )
}

fn renewal(lease: &LeaderLease, renewed: Timestamp) -> Value {
    on(lease, &json!({ "renewTime": micro_time(renewed) }))
}

fn released(lease: &LeaderLease) -> Value {
    on(
        lease,
        &json!({ "holderIdentity": null, "leaseDurationSeconds": 1 }),
    )
}

/// As the API server prints a `MicroTime`.
fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(spec: &Value) -> LeaderLease {
        let lease = json!({
            "metadata": { "name": LEASE, "uid": "u", "resourceVersion": "7" },
            "spec": spec,
        });
        match sight(&serde_json::from_value(lease).unwrap()) {
            Sight::There(lease) => lease,
            other @ (Sight::Missing | Sight::NotYet) => panic!("{other:?}"),
        }
    }

    #[test]
    fn given_back_is_no_holder_and_a_second_and_merely_cleared_is_not() {
        let table = [
            (json!({ "leaseDurationSeconds": 1 }), true),
            (
                json!({ "holderIdentity": "", "leaseDurationSeconds": 1 }),
                true,
            ),
            (json!({ "leaseDurationSeconds": 15 }), false),
            (json!({}), false),
            (
                json!({ "holderIdentity": "x", "leaseDurationSeconds": 1 }),
                false,
            ),
        ];
        for (spec, released) in table {
            assert_eq!(seen(&spec).released, released, "{spec}");
        }
    }

    #[test]
    fn every_write_names_the_incarnation_and_the_version_it_was_made_for() {
        let lease = seen(&json!({ "holderIdentity": "x", "leaseTransitions": 4 }));
        let now = Timestamp::UNIX_EPOCH;
        for body in [
            taken(&lease, "me", now),
            renewal(&lease, now),
            released(&lease),
        ] {
            assert_eq!(
                body["metadata"],
                json!({ "uid": "u", "resourceVersion": "7" })
            );
        }
        let taken = taken(&lease, "me", now);
        assert_eq!(taken["spec"]["leaseTransitions"], 5);
        assert_eq!(taken["spec"]["renewTime"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(released(&lease)["spec"]["holderIdentity"], Value::Null);
    }
}
