//! One Warning Event for each halt of a rollout.

use std::collections::BTreeSet;

use dogwatch_core::policy::rollout::halt_event;
use dogwatch_k8s::cluster::ClusterView;
use dogwatch_k8s::policy::write_policy_event;
use tracing::warn;

use crate::ControllerContext;

/// Remembers which halts were reported: by policy and time.
#[derive(Debug, Default)]
pub(super) struct HaltEventWriter(BTreeSet<(String, jiff::Timestamp)>);

impl HaltEventWriter {
    /// Writes an Event for each halt that stands on the cluster. Its name is made of the halt, so
    /// another leader does not write it again.
    pub(super) async fn write_halt_events(
        &mut self,
        context: &ControllerContext,
        view: &ClusterView,
    ) {
        let policies = view.policies.known_policies();
        for (policy, (name, standing)) in policies.iter().zip(&view.policy_objects) {
            let state = policy.rollout.state.as_ref();
            let Some(halt) = state.and_then(|state| state.halted.as_ref()) else {
                continue;
            };
            let key = (name.clone(), halt.since);
            if self.0.contains(&key) || context.leadership.current_term().is_none() {
                continue;
            }
            let (event, now) = (halt_event(policy, halt), context.clock.now());
            let episode = halt.since.to_string();
            let object = (name.as_str(), standing.uid.as_str());
            match write_policy_event(&context.client, object, &event, &episode, now).await {
                Ok(()) => {
                    self.0.insert(key);
                }
                // The condition says the same; the next change of the cluster tries again.
                Err(error) => warn!(
                    policy = name,
                    error = error.error_chain(),
                    "failed to write an Event about a halt"
                ),
            }
        }
    }
}
