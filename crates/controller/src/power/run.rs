//! The component: hosts are seen on every replica, and kept by the one that leads.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use dogwatch_core::leader::Term;
use dogwatch_core::power::{Config, HostName, OwnerRules};
use dogwatch_k8s::host::HostClient;
use dogwatch_process::clock::Clock;
use dogwatch_process::jitter::Jitter;
use futures::stream::{BoxStream, StreamExt as _};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{info, warn};

use super::board::PowerBoard;
use super::feed::{self, News};
use super::fleet::Keepers;
use super::keeper::Input;
use super::lanes::Lanes;
use super::links::Connect;
use super::services::{Ids, Services};
use super::store::HostStore;
use super::tally::Tally;
use super::turns::Turns;
use crate::board::Board;
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::{Context, Stop};

/// How `/readyz` names it.
const PART: &str = "hosts";

/// What the flags say.
#[derive(Clone)]
pub struct Settings {
    /// Times.
    pub config: Config,
    /// `--bmc-max-concurrent`: how many polls and checks at a time.
    pub max_concurrent: NonZeroUsize,
    /// Whose hosts are whose.
    pub owners: OwnerRules,
    /// Makes the driver for an address.
    pub connect: Connect,
    /// Where it is shown what is known.
    pub board: PowerBoard,
}

/// Keeps all hosts while this process leads, and sees them all the time.
pub async fn run(context: Context, settings: Settings) {
    allow_many_connections();
    let hosts = Arc::new(HostClient::new(context.client.clone()));
    let news = feed::watch(&context, settings.owners.clone());
    let means = Means {
        clock: context.clock,
        leadership: context.leadership,
        process: context.process,
        metrics: context.metrics,
        board: context.board,
        stop: context.stop,
    };
    Power::new(means, settings, hosts).run(news).await;
}

/// A connection to each of many BMCs: as many files as the machine allows, not as many as its shells
/// are given. Ten thousand Redfish hosts keep ten thousand connections.
fn allow_many_connections() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, all) {
        warn!(%error, "cannot have more files open");
    }
}

/// What it needs of a process.
pub(super) struct Means {
    pub(super) clock: Clock,
    pub(super) leadership: Leadership,
    pub(super) process: String,
    pub(super) metrics: Metrics,
    pub(super) board: Board,
    pub(super) stop: Stop,
}

/// The loop.
pub(super) struct Power {
    means: Means,
    services: Arc<Services>,
    board: PowerBoard,
    hosts: BTreeMap<HostName, Input>,
    keepers: Option<(Term, Keepers)>,
    is_in_sync: bool,
    /// Leases of metal3's leaders' name where none is believed, as they were last said.
    not_believed: BTreeMap<String, String>,
}

impl Power {
    pub(super) fn new(means: Means, settings: Settings, hosts: Arc<dyn HostStore>) -> Self {
        means.board.ready(PART, Err("not in sync yet".to_owned()));
        let services = Services {
            hosts,
            clock: means.clock.clone(),
            leadership: means.leadership.clone(),
            config: settings.config,
            lanes: Lanes::new(settings.max_concurrent),
            turns: Turns::new(),
            connect: settings.connect,
            tally: Tally::new(means.metrics.clone()),
            jitter: Jitter::of(&means.process),
            ids: Ids::of(&means.process),
        };
        Self {
            means,
            services: Arc::new(services),
            board: settings.board,
            hosts: BTreeMap::new(),
            keepers: None,
            is_in_sync: false,
            not_believed: BTreeMap::new(),
        }
    }

    /// Until it is told to stop.
    pub(super) async fn run(mut self, mut news: BoxStream<'static, News>) {
        let stop = self.means.stop.clone();
        let leadership = self.means.leadership.clone();
        let heart = self.means.board.heart("power control");
        loop {
            heart.sleeping(None);
            tokio::select! {
                biased;
                () = stop.told() => break,
                lead = lead_changes(&leadership, &mut self.keepers) => self.lead(&lead),
                Some(news) = news.next() => {
                    heart.working("telling each host's keeper");
                    self.take(news);
                }
            }
        }
        if let Some((_, keepers)) = self.keepers.take() {
            keepers.finish().await;
        }
    }

    /// Begins to keep hosts when this process leads, and forgets everything when it does no more.
    fn lead(&mut self, lead: &Lead) {
        self.keepers = match lead {
            Lead::Lost => None,
            Lead::Won(term) => {
                let (services, board) = (self.services.clone(), self.board.clone());
                let mut keepers = Keepers::new(services, board, self.means.stop.clone());
                self.hosts.values().for_each(|input| keepers.tell(input));
                Some((*term, keepers))
            }
        };
        self.show_sync();
    }

    /// Whether all hosts have their keepers, for whoever goes by the board.
    fn show_sync(&self) {
        if self.is_in_sync && self.keepers.is_some() {
            self.board.in_sync();
        }
    }

    fn take(&mut self, news: News) {
        for (name, input) in news.hosts {
            self.take_host(name, input);
        }
        if let Some(why) = &news.trouble {
            warn!(why, "cannot see all of hosts; trying for ever");
        }
        self.say_not_believed(news.not_believed);
        if news.is_in_sync && !self.is_in_sync {
            info!(hosts = self.hosts.len(), "hosts are in sync");
        }
        self.is_in_sync |= news.is_in_sync;
        self.show_sync();
        self.means
            .board
            .ready(PART, ready(self.is_in_sync, news.trouble));
    }

    fn say_not_believed(&mut self, leases: BTreeMap<String, String>) {
        for (namespace, holder) in &leases {
            if self.not_believed.get(namespace) != Some(holder) {
                warn!(
                    namespace,
                    holder,
                    "a Lease baremetal-operator is not believed there: if metal3's controller runs there, name the namespace by --metal3-namespaces; else ask who made it"
                );
            }
        }
        self.services.tally.not_believed(leases.len());
        self.not_believed = leases;
    }

    fn take_host(&mut self, name: HostName, input: Option<Input>) {
        let keepers = self.keepers.as_mut().map(|(_, keepers)| keepers);
        let Some(input) = input else {
            if let Some(keepers) = keepers {
                keepers.leave(&name);
            }
            self.hosts.remove(&name);
            return;
        };
        if let Some(keepers) = keepers {
            keepers.tell(&input);
        }
        self.hosts.insert(name, input);
    }
}

fn ready(is_in_sync: bool, trouble: Option<String>) -> Result<(), String> {
    if is_in_sync {
        return Ok(());
    }
    let why = trouble.map_or(String::new(), |why| format!(" ({why})"));
    Err(format!("not in sync yet{why}"))
}

enum Lead {
    Won(Term),
    Lost,
}

async fn lead_changes(leadership: &Leadership, keepers: &mut Option<(Term, Keepers)>) -> Lead {
    let Some((term, keepers)) = keepers else {
        return Lead::Won(leadership.won().await);
    };
    tokio::select! {
        () = leadership.lost(*term) => Lead::Lost,
        never = keepers.look_after() => match never {},
    }
}
