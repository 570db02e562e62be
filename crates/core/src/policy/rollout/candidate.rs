//! Who begins, as a Node says it.

use dogwatch_api::node_reboot::RebootMethod;

use super::RolloutCandidate;
use crate::reboot::ObservedNode;

impl ObservedNode {
    /// Whether the record asks for a hold and not for a reboot.
    pub fn is_to_be_held(&self) -> bool {
        let record = self.record.get();
        record.is_some_and(|record| record.trigger.method == RebootMethod::Hold)
    }

    /// Who begins, for the rollout of its policy.
    pub fn rollout_candidate(&self) -> RolloutCandidate<'_> {
        if self.is_to_be_held() {
            return RolloutCandidate::Hold;
        }
        let record = self.record.get();
        RolloutCandidate::Reboot {
            node: self.name.as_str(),
            uid: &self.uid,
            boot_id: record
                .map(|record| &record.boot_id)
                .or(self.boot_id.as_ref()),
        }
    }
}
