//! What is known of each remediation, for whoever asks: people, tests.
//!
//! **Promises:** what is shown is what was decided from; nothing is shown by a process that does not lead.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dogwatch_core::remedy::{Case, Decision, Known, Subject};

/// One case, as it was decided last.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Who is concerned.
    pub case: Case,
    /// What was known beside the watched objects.
    pub known: Known,
    /// What was decided.
    pub decision: Decision,
}

/// All cases of the process that leads. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct RemediationBoard(Arc<Mutex<BTreeMap<Subject, Arc<Shown>>>>);

impl RemediationBoard {
    /// One case.
    pub fn case(&self, subject: &Subject) -> Option<Arc<Shown>> {
        self.lock().get(subject).cloned()
    }

    /// All of them.
    pub fn cases(&self) -> Vec<Arc<Shown>> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn show(&self, shown: Shown) {
        let subject = shown.case.subject.clone();
        self.lock().insert(subject, Arc::new(shown));
    }

    pub(super) fn keep(&self, is_there: impl Fn(&Subject) -> bool) {
        self.lock().retain(|subject, _| is_there(subject));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Subject, Arc<Shown>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
