//! S1 on a Lease: a holder goes only from none to one, and from one to none.

use super::history::{ClusterState, ClusterWrite, KnownLease, LeaseState};

pub(super) fn judge_lease(
    state: &mut ClusterState,
    name: &str,
    after: Option<&LeaseState>,
    write: &ClusterWrite,
) {
    state.step += 1;
    let source = &write.source;
    let before = state.leases.get(name).cloned();
    let before = before.filter(|before| write.follows_version(before.version));
    if let Some(before) = &before {
        let (old, new) = (
            &before.state.holder,
            after.and_then(|after| after.holder.as_ref()),
        );
        match (old, new) {
            (Some(old), Some(new)) if old != new => {
                let what = format!(
                    "Lease {name} went from holder {old} to holder {new} without being freed"
                );
                state.accuse("S1", what, [before.source.clone(), source.clone()]);
            }
            (Some(old), None) if after.is_none() => {
                let what = format!("Lease {name} was deleted while {old} held it");
                state.accuse("S1", what, [before.source.clone(), source.clone()]);
            }
            (Some(_) | None, Some(_) | None) => {}
        }
    }
    let Some(after) = after else {
        state.leases.remove(name);
        return;
    };
    let kept = before.filter(|before| before.state.holder == after.holder);
    let taken = kept.map_or(state.step, |before| before.taken);
    let known = KnownLease {
        version: write.version,
        state: after.clone(),
        source: source.clone(),
        taken,
    };
    state.leases.insert(name.to_owned(), known);
}
