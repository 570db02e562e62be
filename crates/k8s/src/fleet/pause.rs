//! Pausing policies: `spec.paused` of a `RebootPolicy`. Source: specification §2.6.

use dogwatch_api::label;
use dogwatch_api::reboot_policy::{Paused, RebootPolicy, RebootPolicySpec};
use dogwatch_core::selector::LabelSelector;
use kube::api::{DeleteParams, Patch, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::FleetClient;
use super::request::{MANAGER, TRIES};
use crate::error::{Error, Kind, ask};
use crate::manager::{made_by, patched_by};
use crate::policy::{PolicyObject, objects};

/// What to do with one policy's pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PauseChange {
    /// It stays as it is.
    Keep,
    /// This pause instead of the one that is there, if there is one.
    Set(Paused),
    /// No pause.
    Clear,
    /// The whole policy goes.
    Delete,
}

impl FleetClient {
    /// All policies as they stand. By name.
    ///
    /// # Errors
    /// [`Kind::NotFound`] where the kind is not installed.
    pub async fn policy_objects(&self) -> Result<Vec<PolicyObject>, Error> {
        let mut objects = objects(&self.client).await?;
        objects.sort_by_key(kube::ResourceExt::name_any);
        Ok(objects)
    }

    /// Does to the policy of this name what `decide` says of it, on the condition that it still is
    /// as it was decided on. `None`: there is no such policy (any more).
    pub async fn change_pause(
        &self,
        name: &str,
        decide: impl Fn(&PolicyObject) -> PauseChange,
    ) -> Result<Option<PauseChange>, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(seen) = ask(self.policies().get_opt(name)).await? else {
                return Ok(None);
            };
            let change = decide(&seen);
            match self.change(&seen, &change).await {
                Ok(()) => return Ok(Some(change)),
                // The controller writes a policy's status now and then.
                Err(error) if error.kind() == Kind::Conflict && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A new policy for every node that no other rules, paused and silent about all else. The label
    /// says that it may go with its pause.
    pub async fn make_paused(
        &self,
        name: &str,
        priority: i32,
        paused: Paused,
    ) -> Result<(), Error> {
        let spec = RebootPolicySpec {
            node_selector: Some(LabelSelector::default()),
            priority: Some(priority),
            paused: Some(paused),
            ..RebootPolicySpec::default()
        };
        let mut policy = RebootPolicy::new(name, spec);
        let made = (label::MADE_BY.to_owned(), label::MADE_BY_PAUSE.to_owned());
        policy.metadata.labels = Some([made].into());
        let params = made_by(MANAGER);
        let api: Api<RebootPolicy> = Api::all(self.client.clone());
        ask(api.create(&params, &policy)).await?;
        Ok(())
    }

    async fn change(&self, seen: &PolicyObject, change: &PauseChange) -> Result<(), Error> {
        let name = seen.name_any();
        let paused = match change {
            PauseChange::Keep => return Ok(()),
            PauseChange::Set(paused) => {
                // Both parts are named: a merge patch would keep the end of an older pause.
                json!({ "reason": paused.reason, "until": paused.until })
            }
            PauseChange::Clear => json!(null),
            PauseChange::Delete => {
                let params = DeleteParams::default().preconditions(Preconditions {
                    uid: seen.uid(),
                    resource_version: seen.resource_version(),
                });
                ask(self.policies().delete(&name, &params)).await?;
                return Ok(());
            }
        };
        let body = json!({
            "metadata": { "uid": seen.uid(), "resourceVersion": seen.resource_version() },
            "spec": { "paused": paused },
        });
        let params = patched_by(MANAGER);
        let policies = self.policies();
        ask(policies.patch_metadata(&name, &params, &Patch::Merge(&body))).await?;
        Ok(())
    }

    fn policies(&self) -> Api<PolicyObject> {
        Api::all(self.client.clone())
    }
}
