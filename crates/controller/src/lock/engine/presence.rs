//! Renews this replica's own Lease, which shows that it lives and who waits here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use dogwatch_core::lock::HolderId;
use dogwatch_core::lock::api_lock::WaitingHost;
use dogwatch_core::name::GroupName;
use dogwatch_k8s::lock::LocalWaiter;
use dogwatch_runtime::mutex::lock_ignoring_poison;

use super::lock_state::LockState;

pub(super) const PRESENCE_RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// The shortest time between two writes when the waiters change, so that a storm of clients causes
/// no storm of writes.
const MIN_PRESENCE_WRITE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn spawn_presence_loop(shared: &Arc<LockState>) {
    tokio::spawn(run_presence_loop(Arc::downgrade(shared)));
}

/// Runs until the engine stops or is dropped.
async fn run_presence_loop(engine: Weak<LockState>) {
    while let Some(shared) = engine.upgrade() {
        if *shared.stop.borrow() {
            return;
        }
        renew_presence(&shared).await;
        tokio::time::sleep(MIN_PRESENCE_WRITE_INTERVAL).await;
        tokio::select! {
            biased;
            () = shared.wait_for_stop() => return,
            () = shared.waiters_changed.notified() => {}
            () = tokio::time::sleep(PRESENCE_RENEW_INTERVAL.saturating_sub(MIN_PRESENCE_WRITE_INTERVAL)) => {}
        }
        shared.forget_idle_queues();
    }
}

async fn renew_presence(shared: &LockState) {
    let _writer = shared.presence_writer.lock().await;
    if *shared.stop.borrow() {
        // The Lease may be deleted already, and a write would create it anew.
        return;
    }
    let waiting: BTreeMap<GroupName, Vec<LocalWaiter>> = {
        let queues = lock_ignoring_poison(&shared.queues);
        let first = queues
            .values()
            .map(|queue| (queue.group.clone(), queue.longest_waiting()));
        first.collect()
    };
    let names: BTreeSet<HolderId> = waiting
        .values()
        .flatten()
        .map(|host| host.holder.clone())
        .collect();
    let hosts: Vec<WaitingHost> = lock_ignoring_poison(&shared.reasons)
        .values()
        .cloned()
        .collect();
    // Until the new Lease is written, leaving holders still read the previous one.
    lock_ignoring_poison(&shared.advertised).extend(names.iter().cloned());
    match shared
        .presence
        .renew_presence(&waiting, &hosts, shared.now().wall)
        .await
    {
        Ok(()) => {
            shared.present.send_replace(true);
            *lock_ignoring_poison(&shared.advertised) = names;
        }
        Err(error) => {
            tracing::warn!(
                error = error.error_chain(),
                "failed to renew the lock API's own Lease"
            );
        }
    }
}
