//! Reads and watches the cluster's `RebootPolicy` objects.
//!
//! **For:** [`list_policies`] reads them once, [`watch_policies`] watches them, [`convert`] turns
//! one into what `core` decides with.
//! **May touch:** `rebootpolicies.dogwatch.dev` (list, watch).
//! **Promises:** no object is left out because it cannot be understood: it becomes a policy with
//! [`problems`](Policy::problems), which lets no reboot begin. If the kind is not installed, there
//! are no policies; if it may not be read, no reboot is allowed.
//!
//! Source: specification §2.6 and §9.

mod convert;
mod drain_rules;
mod fields;
mod gates;
mod labels;
#[cfg(test)]
mod list_tests;
mod object;
mod return_rules;
mod rollout;
mod status;
#[cfg(test)]
mod tests;
mod watch;

use dogwatch_core::policy::{ClusterPolicies, Policy};
use kube::Client;
use kube::api::{Api, ListParams};

use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::readable_dates::ReadableApi as _;

pub use convert::{convert_policy, convert_policy_object};
pub(crate) use labels::selector_problem;
pub use object::PolicyObject;
pub use status::{status_to_write, write_policy_event, write_status};
pub use watch::{
    PolicyRecheckIntervals, PolicyWatchView, watch_policies, watch_policies_with_intervals,
};

/// All policies of the cluster, in one list.
///
/// # Errors
/// When the request fails. No error if the kind is not installed (no policies) or may not be read
/// ([`ClusterPolicies::Unreadable`]).
pub async fn list_policies(client: &Client) -> Result<ClusterPolicies, Error> {
    list_policies_beside_watch(client, || true).await
}

/// All policies of the cluster, for a caller that watches them as well and keeps what it reads.
///
/// # Errors
/// As [`list_policies`]; and [`Error::UnconfirmedRefusal`] if the policies may not be read, unless the
/// watch shows that too. An API server that has just started denies what it allows a moment later, so
/// the watch believes only a second refusal.
pub async fn list_policies_beside_watch(
    client: &Client,
    is_watch_refused: impl FnOnce() -> bool,
) -> Result<ClusterPolicies, Error> {
    match list_policy_objects(client).await {
        Ok(objects) => Ok(ClusterPolicies::Known(convert_policies(objects.iter()))),
        Err(error) if error.kind() == ApiErrorKind::NotFound => {
            Ok(ClusterPolicies::Known(Vec::new()))
        }
        Err(Error::Answer(status)) if status.code == 403 && !is_watch_refused() => {
            Err(Error::UnconfirmedRefusal(status))
        }
        Err(error) => unreadable_policies(&error).ok_or(error),
    }
}

/// The objects themselves, for callers that also need their generation or status.
///
/// # Errors
/// [`ApiErrorKind::NotFound`] if the kind is not installed, or any other failure.
pub async fn list_policy_objects(client: &Client) -> Result<Vec<PolicyObject>, Error> {
    let all: Api<PolicyObject> = Api::all(client.clone());
    let list = with_timeout(all.list_readable(&ListParams::default())).await?;
    Ok(list.items)
}

/// Sorted by name, so that the same objects give an equal value.
fn convert_policies<'a>(objects: impl Iterator<Item = &'a PolicyObject>) -> Vec<Policy> {
    let mut policies: Vec<Policy> = objects.map(convert_policy_object).collect();
    policies.sort_by(|a, b| a.name.cmp(&b.name));
    policies
}

/// `Some` if the API server denied the read: a retry does not help until somebody grants the right.
pub(crate) fn unreadable_policies(error: &Error) -> Option<ClusterPolicies> {
    error.is_denied().then(|| ClusterPolicies::Unreadable {
        why: format!(
            "{}; allow the service account to list and watch rebootpolicies.dogwatch.dev, as \
             deploy/base/rbac.yaml does",
            error.error_chain()
        ),
    })
}
