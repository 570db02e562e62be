//! Reads, watches and writes the leader's Lease.
//!
//! **For:** the election that `dogwatch_core::leader` decides.
//! **May touch:** the Lease [`LEASE`] in Dogwatch's namespace: list and watch by name, get, create,
//! patch.
//! **Promises:** every write except the create is a merge patch with the UID and resourceVersion
//! that it was decided on: a late one changes nothing, and unlike a PUT or an apply it never
//! creates a deleted Lease again (facts/control-plane.md). No deletion.

use dogwatch_api::lease::CONTROLLER_LEADER as LEASE;
use dogwatch_core::leader::{
    CALL_TIMEOUT, LEASE_DURATION as LENGTH, LeaderLease, LeaderLeaseWrite, ObservedLeaderLease,
};
use futures::stream::{BoxStream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ObjectMeta, Patch, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::error::{ApiErrorKind, Error};
use crate::field_manager::patch_params_for;
use crate::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};

/// The controller's field manager.
const FIELD_MANAGER: &str = "dogwatch-controller";

/// Leader election client of one process.
#[derive(Clone)]
pub struct LeaderClient {
    leases: Api<Lease>,
    me: String,
}

impl LeaderClient {
    /// `me`: the holder identity of this process.
    pub fn new(client: Client, namespace: &str, me: impl Into<String>) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            me: me.into(),
        }
    }

    pub async fn read_lease(&self) -> Result<ObservedLeaderLease, Error> {
        match with_call_timeout(self.leases.get(LEASE)).await {
            Ok(lease) => Ok(observed_lease(&lease)),
            Err(error) if error.kind() == ApiErrorKind::NotFound => {
                Ok(ObservedLeaderLease::Missing)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the Lease and returns it as written. If it had changed, returns the current Lease
    /// instead. A write that was refused although nothing has changed is an error: an admission
    /// webhook may refuse with 409, too.
    pub async fn write_lease(
        &self,
        write: &LeaderLeaseWrite,
    ) -> Result<ObservedLeaderLease, Error> {
        let written = match write {
            LeaderLeaseWrite::Create => {
                with_call_timeout(self.leases.create(&PostParams::default(), &free_lease())).await
            }
            LeaderLeaseWrite::Take { lease, renewed } => {
                self.patch_lease(takeover_patch(lease, &self.me, *renewed))
                    .await
            }
            LeaderLeaseWrite::Renew { lease, renewed } => {
                self.patch_lease(renewal_patch(lease, *renewed)).await
            }
            LeaderLeaseWrite::Release { lease } => self.patch_lease(release_patch(lease)).await,
        };
        match written {
            Ok(lease) => Ok(observed_lease(&lease)),
            Err(error) => match error.kind() {
                ApiErrorKind::Conflict | ApiErrorKind::AlreadyExists | ApiErrorKind::NotFound => {
                    self.read_after_conflict(write, error).await
                }
                ApiErrorKind::Gone
                | ApiErrorKind::Forbidden
                | ApiErrorKind::Throttled { .. }
                | ApiErrorKind::Refused
                | ApiErrorKind::Transient => Err(error),
            },
        }
    }

    /// Watches the Lease. Failures of the watch are retried.
    pub fn watch_lease(
        &self,
        jitter: impl FnMut() -> f64 + Send + 'static,
    ) -> BoxStream<'static, Result<ObservedLeaderLease, Error>> {
        let this_one = ObjectSelection::by_fields(format!("metadata.name={LEASE}"));
        let events = list_and_watch(FullObjects(self.leases.clone()), this_one, jitter);
        let sights = events.map(|event| match event {
            ObjectEvent::Restarted(leases) => Ok(leases
                .first()
                .map_or(ObservedLeaderLease::Missing, observed_lease)),
            ObjectEvent::Applied(lease) => Ok(observed_lease(&lease)),
            ObjectEvent::Deleted(_) => Ok(ObservedLeaderLease::Missing),
            ObjectEvent::Failed(error) => Err(error),
        });
        sights.boxed()
    }

    async fn patch_lease(&self, body: Value) -> Result<Lease, Error> {
        let params = patch_params_for(FIELD_MANAGER);
        with_call_timeout(self.leases.patch(LEASE, &params, &Patch::Merge(body))).await
    }

    /// What would lead to the same write again is an error, so that it is not repeated at once and
    /// for ever. A create answered with 404 means that the namespace is missing.
    async fn read_after_conflict(
        &self,
        write: &LeaderLeaseWrite,
        error: Error,
    ) -> Result<ObservedLeaderLease, Error> {
        if matches!(write, LeaderLeaseWrite::Create) && error.kind() == ApiErrorKind::NotFound {
            return Err(error);
        }
        let current = self.read_lease().await?;
        if is_unchanged(write.decided_on(), &current) {
            return Err(error);
        }
        Ok(current)
    }
}

/// Limits a call to the time in which its answer is useful.
async fn with_call_timeout<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    match tokio::time::timeout(CALL_TIMEOUT, call).await {
        Ok(answer) => answer.map_err(Error::from),
        Err(_) => Err(Error::Timeout(CALL_TIMEOUT)),
    }
}

fn is_unchanged(known: Option<&LeaderLease>, current: &ObservedLeaderLease) -> bool {
    match (known, current) {
        (None, ObservedLeaderLease::Missing) => true,
        (Some(known), ObservedLeaderLease::There(current)) => {
            (&known.uid, &known.resource_version) == (&current.uid, &current.resource_version)
        }
        (_, ObservedLeaderLease::NotYet)
        | (None, ObservedLeaderLease::There(_))
        | (Some(_), ObservedLeaderLease::Missing) => false,
    }
}

fn observed_lease(lease: &Lease) -> ObservedLeaderLease {
    let spec = lease.spec.clone().unwrap_or_default();
    let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
    ObservedLeaderLease::There(LeaderLease {
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

fn free_lease() -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(LEASE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: None,
    }
}

fn conditional_patch(lease: &LeaderLease, spec: &Value) -> Value {
    json!({
        "metadata": { "uid": lease.uid, "resourceVersion": lease.resource_version },
        "spec": spec,
    })
}

fn takeover_patch(lease: &LeaderLease, me: &str, renewed: Timestamp) -> Value {
    conditional_patch(
        lease,
        &json!({
            "holderIdentity": me,
            "leaseDurationSeconds": LENGTH.as_secs(),
            "acquireTime": format_micro_time(renewed),
            "renewTime": format_micro_time(renewed),
            "leaseTransitions": lease.transitions.saturating_add(1),
        }),
    )
}

fn renewal_patch(lease: &LeaderLease, renewed: Timestamp) -> Value {
    conditional_patch(lease, &json!({ "renewTime": format_micro_time(renewed) }))
}

fn release_patch(lease: &LeaderLease) -> Value {
    conditional_patch(
        lease,
        &json!({ "holderIdentity": null, "leaseDurationSeconds": 1 }),
    )
}

/// In the API server's `MicroTime` format.
fn format_micro_time(time: Timestamp) -> String {
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
        match observed_lease(&serde_json::from_value(lease).unwrap()) {
            ObservedLeaderLease::There(lease) => lease,
            other @ (ObservedLeaderLease::Missing | ObservedLeaderLease::NotYet) => {
                panic!("{other:?}")
            }
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
            takeover_patch(&lease, "me", now),
            renewal_patch(&lease, now),
            release_patch(&lease),
        ] {
            assert_eq!(
                body["metadata"],
                json!({ "uid": "u", "resourceVersion": "7" })
            );
        }
        let taken = takeover_patch(&lease, "me", now);
        assert_eq!(taken["spec"]["leaseTransitions"], 5);
        assert_eq!(taken["spec"]["renewTime"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(release_patch(&lease)["spec"]["holderIdentity"], Value::Null);
    }
}
