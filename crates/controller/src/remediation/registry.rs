//! Shows the decisions of each remediation to tests and whoever wants to know.
//!
//! **Promises:** it shows exactly what a decision was made from; a process that does not lead shows
//! nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use dogwatch_core::remediation::{
    Remediation, RemediationDecision, RemediationMemory, RemediationSubject,
};
use dogwatch_runtime::mutex::lock_ignoring_poison;

/// One remediation as it was decided last.
#[derive(Debug, Clone)]
pub struct DecidedRemediation {
    pub case: Remediation,
    /// What was known beside the watched objects.
    pub known: RemediationMemory,
    pub decision: RemediationDecision,
}

/// All remediations of the leader. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct RemediationRegistry(Arc<Mutex<BTreeMap<RemediationSubject, Arc<DecidedRemediation>>>>);

impl RemediationRegistry {
    pub fn find_remediation(
        &self,
        subject: &RemediationSubject,
    ) -> Option<Arc<DecidedRemediation>> {
        self.lock_remediations().get(subject).cloned()
    }

    pub fn list_remediations(&self) -> Vec<Arc<DecidedRemediation>> {
        self.lock_remediations().values().cloned().collect()
    }

    pub(super) fn publish_remediation(&self, shown: DecidedRemediation) {
        let subject = shown.case.subject.clone();
        self.lock_remediations().insert(subject, Arc::new(shown));
    }

    pub(super) fn retain_subjects(&self, is_there: impl Fn(&RemediationSubject) -> bool) {
        self.lock_remediations()
            .retain(|subject, _| is_there(subject));
    }

    fn lock_remediations(
        &self,
    ) -> MutexGuard<'_, BTreeMap<RemediationSubject, Arc<DecidedRemediation>>> {
        lock_ignoring_poison(&self.0)
    }
}
