//! Reboots at an appointed time: waits for the time of each `RebootSchedule`, then asks its targets.
//!
//! **For:** one loop while this process leads: watch, decide ([`schedule::decide`]), do, say.
//! **May touch:** what [`ScheduleClient`] may.
//! **Promises:** nothing is written while this process does not lead; of one schedule one thing is done
//! at a time, and trouble with it, or with one of its targets, delays only itself (L1).

mod eye;
mod job;
mod show;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::schedule::{self, ScheduleName};
use dogwatch_k8s::schedule::{ScheduleClient, ScheduleWatch};
use dogwatch_process::health::Heart;
use dogwatch_process::jitter::Jitter;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tracing::warn;

use self::eye::Eye;
use self::job::{Done, Job};
use crate::Context;

/// Runs all schedules while this process leads.
pub async fn run(context: Context) {
    context
        .while_leading(|| Schedules::new(context.clone()).lead())
        .await;
}

struct Schedules {
    context: Context,
    client: ScheduleClient,
    watch: ScheduleWatch,
    heart: Heart,
    eyes: BTreeMap<ScheduleName, Eye>,
    jobs: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Why nothing can be seen, as it was last said.
    trouble: Option<String>,
}

impl Schedules {
    fn new(context: Context) -> Self {
        let (client, home) = (context.client.clone(), context.namespace.clone());
        let jitter = Jitter::of(&context.process);
        Self {
            watch: ScheduleWatch::new(client.clone(), home.clone(), move || jitter.draw()),
            client: ScheduleClient::new(client, home),
            heart: context.board.heart("schedules"),
            context,
            eyes: BTreeMap::new(),
            jobs: FuturesUnordered::new(),
            trouble: None,
        }
    }

    async fn lead(mut self) {
        loop {
            self.heart.working("schedules");
            let wake = self.pass();
            let now = self.context.clock.now().mono;
            self.heart
                .sleeping(wake.map(|wake| wake.saturating_sub(now)));
            tokio::select! {
                () = self.watch.changed() => {}
                Some(done) = self.jobs.next() => self.finished(done),
                () = self.context.clock.wake_at(wake) => {}
            }
        }
    }

    /// Decides about every schedule, and begins what is to be done. When to do so again.
    fn pass(&mut self) -> Option<Duration> {
        self.say_trouble();
        if !self.watch.seen().synced {
            return None;
        }
        let all = &self.watch.seen().schedules;
        let living: BTreeSet<String> = all.values().map(|one| one.uid.clone()).collect();
        self.eyes
            .retain(|name, eye| all.get(name).is_some_and(|one| one.uid == eye.uid()));
        for (name, seen) in all {
            let eye = self.eyes.entry(name.clone());
            eye.or_insert_with(|| Eye::of(seen)).sees(seen);
        }
        let mut wake: Option<Duration> = None;
        for eye in self.eyes.values_mut() {
            let next = begin(&self.context, &self.client, eye, &living, &self.jobs);
            wake = [wake, next].into_iter().flatten().min();
        }
        show::schedules(&self.context.metrics, self.eyes.values().map(Eye::schedule));
        wake
    }

    fn finished(&mut self, done: Done) {
        show::done(&self.context.metrics, &done);
        let now = self.context.clock.now().mono;
        // One that is gone meanwhile, or is another one of that name, has nothing to learn.
        let eye = self.eyes.get_mut(&done.name);
        if let Some(eye) = eye.filter(|eye| eye.uid() == done.uid) {
            if let Some(trouble) = done.trouble() {
                warn!(schedule = %done.name, error = trouble, "cannot do what a schedule wants");
            }
            eye.learns(done, now);
        }
    }

    fn say_trouble(&mut self) {
        let trouble = &self.watch.seen().trouble;
        if *trouble != self.trouble {
            if let Some(error) = trouble {
                warn!(error, "cannot see schedules");
            }
            self.trouble.clone_from(trouble);
        }
    }
}

/// Begins what one schedule wants, unless it is being worked on or has to pause.
fn begin(
    context: &Context,
    client: &ScheduleClient,
    eye: &mut Eye,
    living: &BTreeSet<String>,
    jobs: &FuturesUnordered<BoxFuture<'static, Done>>,
) -> Option<Duration> {
    let now = context.clock.now();
    if eye.is_busy() {
        return None;
    }
    if let Some(until) = eye.paused_until().filter(|until| *until > now.mono) {
        return Some(until);
    }
    let seen = eye.seen(living);
    let decision = schedule::decide(&seen, now);
    let wake = decision.wake.as_ref().map(|wake| wake.at);
    let events = eye.unsaid(&decision.report.events);
    let Some(job) = Job::new(context, client, seen, decision, events) else {
        return wake;
    };
    eye.begins();
    jobs.push(Box::pin(job.run()));
    wake
}

impl Drop for Schedules {
    /// Who does not lead has no schedules.
    fn drop(&mut self) {
        self.heart.sleeping(None);
        show::schedules(&self.context.metrics, std::iter::empty());
    }
}
