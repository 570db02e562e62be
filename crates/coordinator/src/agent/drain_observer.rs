//! Runs the drain for as long as decisions ask for it.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::drain::{DrainConfig, DrainStart, PodRules};
use dogwatch_core::reboot::{RebootObserve, RebootSnapshot};
use dogwatch_k8s::drain;
use tokio::sync::watch;

use super::facts::ObservedFact;
use super::observers::{ObserverContext, ObserverSet, ObserverTask};

/// A running drain, and the switch from evicting to deleting.
pub(super) struct DrainObserver {
    delete: watch::Sender<bool>,
    rules: PodRules,
    _running: ObserverTask,
}

impl ObserverSet {
    pub(super) fn ensure_drain_observer(
        &mut self,
        looks: &[RebootObserve],
        eyes: &ObserverContext,
        seen: &RebootSnapshot,
    ) {
        let wanted = looks.iter().find_map(|look| match look {
            RebootObserve::Drain { delete, rules } => Some((*delete, rules)),
            RebootObserve::Locks { .. }
            | RebootObserve::GroupSize { .. }
            | RebootObserve::StartGates { .. }
            | RebootObserve::Count { .. }
            | RebootObserve::Holder { .. }
            | RebootObserve::Attachments { .. }
            | RebootObserve::Gates { .. } => None,
        });
        let Some((delete, rules)) = wanted else {
            self.drain = None;
            return;
        };
        // Other rules apply now: a new drain starts, which judges each pod again. It keeps the time
        // at which the drain began.
        self.drain.take_if(|drain| drain.rules != *rules);
        let drain = self.drain.get_or_insert_with(|| {
            let (sender, receiver) = watch::channel(false);
            let config = DrainConfig {
                rules: rules.clone(),
                start: drain_start(seen, eyes.clock.now()),
                ..DrainConfig::default()
            };
            DrainObserver {
                delete: sender,
                rules: rules.clone(),
                _running: ObserverTask::spawn(observe_drain(eyes.clone(), config, receiver)),
            }
        });
        drain
            .delete
            .send_if_modified(|now| delete && !std::mem::replace(now, true));
    }
}

/// The time at which the phase began, which does not change with the rules.
fn drain_start(seen: &RebootSnapshot, now: Now) -> DrainStart {
    let begun = seen.run.phase.map(|phase| DrainStart {
        seen: phase.seen,
        before: phase.before,
    });
    begun.unwrap_or(DrainStart {
        seen: now.mono,
        before: Duration::ZERO,
    })
}

async fn observe_drain(
    eyes: ObserverContext,
    config: DrainConfig,
    mut delete: watch::Receiver<bool>,
) {
    let clock = eyes.clock.clone();
    let (client, evicts) = (eyes.client.clone(), eyes.node_client.clone());
    let mut handle =
        drain::DrainRunner::start_drain_as(client, evicts, &eyes.node, config, move || clock.now());
    loop {
        let progress = handle.progress.borrow_and_update().clone();
        eyes.send_fact(ObservedFact::Drain(Box::new(progress)));
        tokio::select! {
            biased;
            changed = handle.progress.changed() => if changed.is_err() { return },
            Ok(()) = delete.changed() => handle.delete_rest(),
        }
    }
}
