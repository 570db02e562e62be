//! Controllers that put a pod back on the cordoned node as often as it is taken away.

use std::collections::BTreeMap;

use super::types::PodSeen;

/// Which replacement is not evicted any more. Source: specification §2.3.
const LAST_STRAW: u32 = 3;

/// How often each controller replaced a pod on this node during the drain, by the controller's UID.
#[derive(Debug, Clone, Default)]
pub(super) struct Turnover {
    replaced: BTreeMap<String, u32>,
}

impl Turnover {
    /// Takes note of a pod never seen before; says whether it is one replacement too many.
    ///
    /// `during`: it appeared after the initial list. A controller's first pod here replaces none,
    /// and a pod that does not tolerate the cordon was bound before it: that cannot go on for ever.
    pub(super) fn one_too_many(&mut self, pod: &PodSeen, during: bool) -> bool {
        let Some(owner) = &pod.controller else {
            return false;
        };
        let Some(replaced) = self.replaced.get_mut(&owner.uid) else {
            self.replaced.insert(owner.uid.clone(), 0);
            return false;
        };
        if !(during && pod.tolerates_cordon) {
            return false;
        }
        *replaced = replaced.saturating_add(1);
        *replaced >= LAST_STRAW
    }

    /// How often the controller of this UID replaced a pod here.
    pub(super) fn replaced(&self, controller: &str) -> u32 {
        self.replaced.get(controller).copied().unwrap_or_default()
    }
}
