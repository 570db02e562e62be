//! A process of the controller that leads.

use std::time::Duration;

use dogwatch_controller::board::Board;
use dogwatch_controller::cluster::{Cluster, Showing};
use dogwatch_controller::leader::Leadership;
use dogwatch_controller::metrics::Metrics;
use dogwatch_controller::{Context, Stop, Stopper};
use dogwatch_core::Now;
use dogwatch_core::leader::Term;
use dogwatch_core::reboot::Config;
use dogwatch_process::clock::Clock;
use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A process that leads, until it is dropped: killed.
pub struct Leader {
    pub terms: watch::Sender<Option<Term>>,
    pub metrics: Metrics,
    /// Dropped, it would tell the process to stop.
    _stopper: Stopper,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Leader {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Leader {
    /// One that leads from now on and runs nothing yet; what its components are given; and who shows them the
    /// cluster.
    pub fn new(
        client: &Client,
        namespace: &str,
        clock: &Clock,
        flags: &Config,
    ) -> (Self, Context, Showing) {
        let (terms, leadership) = Leadership::new(clock.clone());
        terms.send_replace(Some(term(1)));
        let (showing, cluster) = Cluster::new();
        let (stopper, stop) = Stop::new();
        let metrics = Metrics::default();
        let context = Context {
            client: client.clone(),
            namespace: namespace.to_owned(),
            clock: clock.clone(),
            flags: flags.clone(),
            process: "test".into(),
            leadership,
            cluster,
            metrics: metrics.clone(),
            board: Board::new(metrics.clone()),
            stop,
        };
        let leader = Self {
            terms,
            metrics,
            _stopper: stopper,
            tasks: Vec::new(),
        };
        (leader, context, showing)
    }

    /// It runs this as well.
    pub fn run(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task));
    }

    /// The election is lost.
    pub fn loses_the_lead(&self) {
        self.terms.send_replace(None);
    }

    /// It is won, for this term.
    pub fn leads(&self, number: u64) {
        self.terms.send_replace(Some(term(number)));
    }
}

/// A term that no test outlives.
fn term(number: u64) -> Term {
    Term {
        number,
        until: Now {
            wall: Timestamp::MAX,
            mono: Duration::from_hours(100_000),
        },
    }
}
