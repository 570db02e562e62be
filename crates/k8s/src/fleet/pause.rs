//! Pauses policies: `spec.paused` of a `RebootPolicy`. Source: specification §2.6.

use dogwatch_api::annotation::ROLLOUT_RESUMED;
use dogwatch_api::label;
use dogwatch_api::reboot_policy::{PausedSpec, RebootPolicy, RebootPolicySpec};
use dogwatch_core::selector::LabelSelector;
use kube::api::{DeleteParams, Patch, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::FleetClient;
use super::request::{FIELD_MANAGER, MAX_TRIES};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::{patch_params_for, post_params_for};
use crate::policy::{PolicyObject, list_policy_objects};
use crate::readable_dates::ReadableApi as _;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PauseChange {
    Keep,
    /// Replaces an existing pause.
    Set(PausedSpec),
    Clear,
    /// Ends the pause, if there is one, and the halt of the policy's rollout since this time.
    EndHalt(jiff::Timestamp),
    /// Deletes the whole policy.
    Delete,
}

impl FleetClient {
    /// All policies, sorted by name.
    ///
    /// # Errors
    /// [`ApiErrorKind::NotFound`] if the kind is not installed.
    pub async fn list_policy_objects(&self) -> Result<Vec<PolicyObject>, Error> {
        let mut objects = list_policy_objects(&self.client).await?;
        objects.sort_by_key(kube::ResourceExt::name_any);
        Ok(objects)
    }

    /// Applies the change that `decide` returns, on the condition that the policy has not changed
    /// since it was read. `None`: no such policy.
    pub async fn change_pause(
        &self,
        name: &str,
        decide: impl Fn(&PolicyObject) -> PauseChange,
    ) -> Result<Option<PauseChange>, Error> {
        let mut tries = 0;
        loop {
            tries += 1;
            let Some(seen) = with_timeout(self.policy_api().get_readable_opt(name)).await? else {
                return Ok(None);
            };
            let change = decide(&seen);
            match self.write_pause(&seen, &change).await {
                Ok(()) => return Ok(Some(change)),
                // The controller writes a policy's status now and then.
                Err(error) if error.kind() == ApiErrorKind::Conflict && tries < MAX_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Creates a paused policy without other rules, for all nodes that no other policy selects. Its
    /// label says that it may be deleted when the pause ends.
    pub async fn create_paused_policy(
        &self,
        name: &str,
        priority: i32,
        paused: PausedSpec,
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
        let params = post_params_for(FIELD_MANAGER);
        let api: Api<RebootPolicy> = Api::all(self.client.clone());
        with_timeout(api.create(&params, &policy)).await?;
        Ok(())
    }

    async fn write_pause(&self, seen: &PolicyObject, change: &PauseChange) -> Result<(), Error> {
        let name = seen.name_any();
        let mut annotations = json!({});
        let paused = match change {
            PauseChange::Keep => return Ok(()),
            PauseChange::Set(paused) => {
                // Both fields are set: a merge patch would keep the end of an older pause.
                json!({ "reason": paused.reason, "until": paused.until })
            }
            PauseChange::Clear => json!(null),
            PauseChange::EndHalt(since) => {
                annotations = json!({ ROLLOUT_RESUMED: since.to_string() });
                json!(null)
            }
            PauseChange::Delete => {
                let params = DeleteParams::default().preconditions(Preconditions {
                    uid: seen.uid(),
                    resource_version: seen.resource_version(),
                });
                with_timeout(self.policy_api().delete(&name, &params)).await?;
                return Ok(());
            }
        };
        let body = json!({
            "metadata": {
                "uid": seen.uid(),
                "resourceVersion": seen.resource_version(),
                "annotations": annotations,
            },
            "spec": { "paused": paused },
        });
        let params = patch_params_for(FIELD_MANAGER);
        let policies = self.policy_api();
        with_timeout(policies.patch_readable(&name, &params, &Patch::Merge(&body))).await?;
        Ok(())
    }

    fn policy_api(&self) -> Api<PolicyObject> {
        Api::all(self.client.clone())
    }
}
