//! Reads how far the rollout of a policy is.

use dogwatch_api::reboot_policy::PolicyRolloutState;

use super::scenario_cluster::ScenarioCluster;
use crate::observer::ObservedKind;

impl ScenarioCluster {
    fn rollout_state(&self, policy: &str) -> Option<PolicyRolloutState> {
        let object = self.observer.get_object(ObservedKind::Policy, policy)?;
        serde_json::from_value(object["status"]["rollout"].clone()).ok()
    }

    /// The phase, or `Halted`; `None`: the policy has no state.
    pub(super) fn rollout_phase(&self, policy: &str) -> Option<String> {
        let state = self.rollout_state(policy)?;
        let halted = state.halted.is_some().then_some("Halted");
        Some(halted.unwrap_or(state.phase.as_str()).to_owned())
    }

    /// Since when the rollout is halted.
    pub(super) fn rollout_halted_since(&self, policy: &str) -> Option<String> {
        let halt = self.rollout_state(policy)?.halted?;
        Some(halt.since.to_string())
    }
}
