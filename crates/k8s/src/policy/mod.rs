//! The cluster's `RebootPolicy` objects as decisions see them.
//!
//! **For:** [`policies`] reads them once, [`watch_policies`] keeps them in sight, [`convert`] makes
//! of one what `core` decides with.
//! **May touch:** `rebootpolicies.dogwatch.dev` (list, watch).
//! **Promises:** no object is ever left out because it cannot be understood: it becomes a policy
//! with [`problems`](Policy::problems), which lets nothing begin. Where the kind is not installed
//! there are no policies; where it may not be read, nothing is allowed.
//!
//! Source: specification §2.6 and §9.

mod convert;
mod fields;
mod gates;
mod labels;
mod object;
mod status;
#[cfg(test)]
mod tests;
mod watch;

use dogwatch_core::policy::{Policies, Policy};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};

use crate::error::{Error, Kind, ask};

pub use convert::convert;
pub(crate) use labels::selector_problem;
pub use object::PolicyObject;
pub use status::{status_to_write, write_status};
pub use watch::{Cadence, PoliciesSeen, watch_policies, watch_policies_at};

/// All policies of the cluster, by one list.
///
/// # Errors
/// When there is no answer to go by; not where the kind is not installed (no policies), nor where
/// they may not be read ([`Policies::Unreadable`]).
pub async fn policies(client: &Client) -> Result<Policies, Error> {
    match objects(client).await {
        Ok(objects) => Ok(Policies::Known(known(objects.iter()))),
        Err(error) if error.kind() == Kind::NotFound => Ok(Policies::Known(Vec::new())),
        Err(error) => unreadable(&error).ok_or(error),
    }
}

/// The objects themselves, for who needs their generation or status as well.
///
/// # Errors
/// [`Kind::NotFound`] where the kind is not installed, and whatever else may go wrong.
pub async fn objects(client: &Client) -> Result<Vec<PolicyObject>, Error> {
    let all: Api<PolicyObject> = Api::all(client.clone());
    Ok(ask(all.list(&ListParams::default())).await?.items)
}

/// By name, so that the same objects give the same value.
fn known<'a>(objects: impl Iterator<Item = &'a PolicyObject>) -> Vec<Policy> {
    let mut policies: Vec<Policy> = objects
        .map(|object| convert(&object.name_any(), &object.spec))
        .collect();
    policies.sort_by(|a, b| a.name.cmp(&b.name));
    policies
}

/// What it means to be refused: asking again will not help until somebody gives the right.
pub(crate) fn unreadable(error: &Error) -> Option<Policies> {
    let Error::Answer(status) = error else {
        return None;
    };
    // 401 is a token's trouble, which passes; 403 is a decision.
    (status.code == 403).then(|| Policies::Unreadable {
        why: format!(
            "{}; allow the service account to list and watch rebootpolicies.dogwatch.dev, as \
             deploy/base/rbac.yaml does",
            error.in_words()
        ),
    })
}
