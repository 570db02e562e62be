//! This replica's own Lease: that it lives, and who waits here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use dogwatch_core::lock::HolderId;
use dogwatch_core::lock::api_lock::WaitingHost;
use dogwatch_core::name::GroupName;
use dogwatch_k8s::lock::WaitingHere;

use super::shared::{Shared, guard};

/// How often it is renewed.
pub(super) const RENEW_EVERY: Duration = Duration::from_secs(10);
/// How soon it may be written again when who waits has changed: a storm of clients is no storm of
/// writes.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);

pub(super) fn spawn(shared: &Arc<Shared>) {
    tokio::spawn(run(Arc::downgrade(shared)));
}

/// Until the engine is told to stop, or is gone.
async fn run(engine: Weak<Shared>) {
    while let Some(shared) = engine.upgrade() {
        if *shared.stop.borrow() {
            return;
        }
        renew(&shared).await;
        tokio::time::sleep(AT_MOST_EVERY).await;
        tokio::select! {
            () = shared.waiters_changed.notified() => {}
            () = tokio::time::sleep(RENEW_EVERY.saturating_sub(AT_MOST_EVERY)) => {}
            () = shared.stopped() => return,
        }
        shared.forget_idle_queues();
    }
}

async fn renew(shared: &Shared) {
    let _writer = shared.presence_writer.lock().await;
    if *shared.stop.borrow() {
        // It may be gone already, and would be made anew.
        return;
    }
    let waiting: BTreeMap<GroupName, Vec<WaitingHere>> = {
        let queues = guard(&shared.queues);
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
    let hosts: Vec<WaitingHost> = guard(&shared.reasons).values().cloned().collect();
    // Until it is written the leavers still read the one before.
    guard(&shared.advertised).extend(names.iter().cloned());
    match shared
        .presence
        .renew(&waiting, &hosts, shared.now().wall)
        .await
    {
        Ok(()) => {
            shared.present.send_replace(true);
            *guard(&shared.advertised) = names;
        }
        Err(error) => {
            tracing::warn!(
                error = error.in_words(),
                "cannot renew the lock API's own Lease"
            );
        }
    }
}
