//! S1 on a Lease: a holder goes only from none to one, and from one to none.

use super::history::{ClusterState, ClusterWrite, KnownLease, LeaseState, StateKnowledge};

pub(super) fn judge_lease(
    state: &mut ClusterState,
    name: &str,
    after: Option<&LeaseState>,
    write: &ClusterWrite,
) {
    state.step += 1;
    let source = &write.source;
    let before = state.leases.get(name).cloned();
    let followed = before
        .as_ref()
        .filter(|before| before.is_followed_by(write));
    if let Some(before) = followed {
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
    let is_followed = followed.is_some();
    let kept = before.filter(|before| is_same_taking(&before.state, after, is_followed));
    let taken = kept.map_or(state.step, |before| before.taken);
    let known = KnownLease {
        version: write.version,
        knowledge: StateKnowledge::Current,
        state: after.clone(),
        source: source.clone(),
        taken,
    };
    state.leases.insert(name.to_owned(), known);
}

/// Whether the holder has held it since the earlier write. It may have freed and taken it again in
/// writes that the history does not show.
fn is_same_taking(before: &LeaseState, after: &LeaseState, is_followed: bool) -> bool {
    before.holder == after.holder && (is_followed || before.taken_at() == after.taken_at())
}
