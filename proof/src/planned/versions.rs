//! resourceVersions, renumbered after each step: only which of two is newer matters, so a world in
//! which an object was written ten times is the same as one in which it was written twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_core::reboot::OwnNodeState;

use super::coordinator::CoordinatorView;
use super::server::ServerWrite;
use super::world::PlannedWorld;

type Renumbering = BTreeMap<String, String>;

pub fn renumber_versions(world: &mut PlannedWorld<'_>) {
    forget_settled_releases(world);
    for node in 0..world.hosts.len() {
        let mut known = BTreeSet::new();
        visit_node_versions(world, node, &mut |version| {
            known.insert(number_of(version));
        });
        if let Some(renumbering) = make_renumbering(&known) {
            rewrite_node_versions(world, node, &renumbering);
        }
    }
    for slot in 0..world.leases.len() {
        let mut known = BTreeSet::new();
        visit_lease_versions(world, slot, &mut |version| {
            known.insert(number_of(version));
        });
        if let Some(renumbering) = make_renumbering(&known) {
            rewrite_lease_versions(world, slot, &renumbering);
        }
    }
}

/// A version that neither the server nor the coordinator's view has any more is never seen again.
fn forget_settled_releases(world: &mut PlannedWorld<'_>) {
    for view in world.coordinators.iter_mut().flatten() {
        let seen = &view.seen.lock;
        let Some(release) = &seen.unanswered_release else {
            continue;
        };
        let known = seen.leases.iter().flatten();
        let mut all = world.leases.iter().map(AsRef::as_ref).chain(known);
        if !all.any(|lease| release.may_still_free(lease)) {
            Arc::make_mut(view).seen.lock.unanswered_release = None;
        }
    }
}

fn number_of(version: &str) -> u64 {
    version.parse().expect("the model's versions are numbers")
}

/// `None`: the numbers are 1, 2, 3, … already.
fn make_renumbering(known: &BTreeSet<u64>) -> Option<Renumbering> {
    let pairs = || (1_u64..).zip(known);
    let same = pairs().all(|(new, old)| new == *old);
    let text = |(new, old): (u64, &u64)| (old.to_string(), new.to_string());
    (!same).then(|| pairs().map(text).collect())
}

fn visit_node_versions(world: &PlannedWorld<'_>, node: usize, visit: &mut dyn FnMut(&str)) {
    if let Some(there) = &world.nodes[node] {
        visit(&there.resource_version);
    }
    if let Some(view) = &world.coordinators[node] {
        if let OwnNodeState::There(seen) = &view.seen.node {
            visit(&seen.resource_version);
        }
        view.seen
            .run
            .unanswered_patch_version
            .iter()
            .for_each(|version| visit(version));
    }
    for write in &world.late {
        if let ServerWrite::Node {
            node: of, patch, ..
        } = &**write
            && *of == node
        {
            visit(&patch.resource_version);
        }
    }
}

fn rewrite_node_versions(world: &mut PlannedWorld<'_>, node: usize, renumbering: &Renumbering) {
    let rename = |version: &mut String| version.clone_from(&renumbering[version]);
    if let Some(there) = &mut world.nodes[node] {
        rename(&mut Arc::make_mut(there).resource_version);
    }
    if let Some(view) = &mut world.coordinators[node] {
        let seen = &mut Arc::make_mut(view).seen;
        if let OwnNodeState::There(seen) = &mut seen.node {
            rename(&mut seen.resource_version);
        }
        seen.run
            .unanswered_patch_version
            .iter_mut()
            .for_each(rename);
    }
    for write in &mut world.late {
        if let ServerWrite::Node {
            node: of, patch, ..
        } = Arc::make_mut(write)
            && *of == node
        {
            rename(&mut patch.resource_version);
        }
    }
}

fn visit_lease_versions(world: &PlannedWorld<'_>, slot: usize, visit: &mut dyn FnMut(&str)) {
    visit(&world.leases[slot].resource_version);
    for view in world.coordinators.iter().flatten() {
        let mut copy = CoordinatorView::clone(view);
        view_lease_versions(&mut copy, slot, &mut |version| visit(version));
    }
    for write in &world.late {
        if let Some(version) = write_lease_version(&mut ServerWrite::clone(write), slot) {
            visit(version);
        }
    }
}

fn rewrite_lease_versions(world: &mut PlannedWorld<'_>, slot: usize, renumbering: &Renumbering) {
    let rename = &mut |version: &mut String| version.clone_from(&renumbering[version]);
    rename(&mut Arc::make_mut(&mut world.leases[slot]).resource_version);
    for view in world.coordinators.iter_mut().flatten() {
        view_lease_versions(Arc::make_mut(view), slot, rename);
    }
    for write in &mut world.late {
        if let Some(version) = write_lease_version(Arc::make_mut(write), slot) {
            rename(version);
        }
    }
}

/// Every version of this slot's Lease that the coordinator remembers.
fn view_lease_versions(
    view: &mut CoordinatorView,
    slot: usize,
    visit: &mut dyn FnMut(&mut String),
) {
    let name = lease_name(slot);
    let lock = &mut view.seen.lock;
    let own = lock.leases.iter().flatten();
    let own = own.filter(|lease| lease.holder.as_ref() == Some(&view.seen.run.holder));
    let counted = own
        .min_by_key(|lease| lease.slot)
        .map(|lease| lease.name.clone());
    for lease in lock
        .leases
        .iter_mut()
        .flatten()
        .filter(|lease| lease.name == name)
    {
        visit(&mut lease.resource_version);
    }
    if let Some(count) = &mut lock.count
        && counted.as_ref() == Some(&name)
        && !count.count.for_resource_version.is_empty()
    {
        visit(&mut count.count.for_resource_version);
    }
    if let Some(holder) = lock.holder.as_mut().filter(|holder| holder.lease == name) {
        visit(&mut holder.resource_version);
    }
    let released = lock.unanswered_release.as_mut();
    if let Some(release) = released.filter(|release| release.lease == name) {
        visit(&mut release.resource_version);
    }
    if let Some(look) = view.first_look.as_mut().filter(|look| look.slot == slot) {
        visit(&mut look.resource_version);
    }
    let listed = view.listed.iter_mut().flat_map(|listed| &mut listed.held);
    for held in listed.filter(|held| held.lease == name) {
        visit(&mut held.resource_version);
    }
}

fn write_lease_version(write: &mut ServerWrite, slot: usize) -> Option<&mut String> {
    match write {
        ServerWrite::Bid {
            slot: of, version, ..
        }
        | ServerWrite::Free {
            slot: of, version, ..
        } => (*of == slot).then_some(version),
        ServerWrite::Node { .. } => None,
    }
}

pub fn lease_name(slot: usize) -> String {
    format!("dogwatch-default-{slot}")
}
