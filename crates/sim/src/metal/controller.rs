//! One replica of `dogwatch controller`: `--components power`, `power,remediation`, or what a script wants.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::redfish::Redfish;
use dogwatch_bmc::{Bmc, Class, Credentials, Fault};
use dogwatch_controller::board::Board;
use dogwatch_controller::cluster::{Cluster, Showing};
use dogwatch_controller::leader::{Election, Leadership};
use dogwatch_controller::lock::engine::{self, Engine, Gatekeeper};
use dogwatch_controller::metrics::Metrics;
use dogwatch_controller::power::{self, PowerBoard, Settings};
use dogwatch_controller::remedy;
use dogwatch_controller::run::{Component, leading};
use dogwatch_controller::{Context, Stop, Stopper};
use dogwatch_core::fleetlock::FleetlockGroups;
use dogwatch_core::leader::{Elector, Term};
use dogwatch_core::power::{Address, OwnerRules};
use dogwatch_core::{reboot, remedy as rules};
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::leader::LeaderClient;
use dogwatch_process::clock::Clock;
use dogwatch_process::jitter::Jitter;
use futures::future::join_all;
use tokio::sync::watch;

use super::readings::Overheard;
use super::yard::Yard;
use crate::api::ApiServer;
use crate::bmc::Wire;
use crate::clock::{Clock as _, TokioClock};
use crate::world::Actor;

/// How long the lock may take to give back what was not answered.
const GIVE_BACK_WITHIN: Duration = Duration::from_secs(15);

/// A running replica. Dropped, it is killed where it stands: its Lease stays.
pub struct Controller {
    /// What it knows of the hosts that it keeps.
    pub board: PowerBoard,
    /// The lock that it serves, if it does.
    pub lock: Option<Engine>,
    stopper: Stopper,
    process: Actor,
}

/// What a whole replica is made from.
pub struct Replica<'a> {
    /// The API server.
    pub server: &'a ApiServer,
    /// The time.
    pub clock: &'a Arc<TokioClock>,
    /// No process of this server ever had the name.
    pub process: &'a str,
    /// What runs.
    pub components: BTreeSet<Component>,
    /// What the flags say of nodes.
    pub flags: reboot::Config,
    /// The way to the BMCs, where there are hosts.
    pub way: Option<Way>,
    /// Who asks the Prometheus gates of the lock API's hosts.
    pub gatekeeper: Arc<dyn Gatekeeper>,
}

impl Controller {
    /// Starts one that keeps the hosts' power. No process of this yard ever had the name.
    pub fn start(yard: &Yard, process: &str) -> Self {
        Self::of(yard, process, None)
    }

    /// The same, and it remediates.
    pub fn remediating(yard: &Yard, process: &str, guards: rules::Config) -> Self {
        Self::of(yard, process, Some(guards))
    }

    /// Starts one with all the loops that the program itself would run for these components; the lock
    /// without its listeners.
    pub fn whole(replica: Replica<'_>) -> Self {
        let board = PowerBoard::default();
        let flags = replica.flags;
        let (base, stopper) = Base::of(replica.server, replica.clock, replica.process, flags);
        let context = base.context.clone();
        let parts = &replica.components;
        let power = replica.way.unwrap_or_else(Way::nowhere).settings(&board);
        let leading = leading(&context, parts, power, rules::Config::default());
        let leading: Vec<_> = leading.into_iter().map(|(_, part)| part).collect();
        let lock = parts
            .contains(&Component::Lock)
            .then(|| lock(&context, replica.gatekeeper));
        let served = lock.clone();
        let is_elected = !leading.is_empty();
        let process = async move {
            let (last_stopper, last_stop) = Stop::new();
            let election = base.election();
            let election = async {
                if is_elected {
                    election.run(last_stop).await;
                }
            };
            let watches = async {
                if is_elected {
                    base.showing.run(base.watches).await;
                }
                std::future::pending::<()>().await;
            };
            let finished = async {
                let giving_back = async {
                    context.stop.told().await;
                    if let Some(lock) = served {
                        lock.shutdown(GIVE_BACK_WITHIN).await;
                    }
                };
                tokio::join!(join_all(leading), giving_back);
                last_stopper.stop();
            };
            tokio::select! {
                biased;
                ((), ()) = async { tokio::join!(finished, election) } => {}
                () = watches => {}
            }
        };
        Self {
            board,
            lock,
            stopper,
            process: Actor::spawn(process),
        }
    }

    fn of(yard: &Yard, process: &str, guards: Option<rules::Config>) -> Self {
        let board = PowerBoard::default();
        let flags = reboot::Config::default();
        let (base, stopper) = Base::of(&yard.server, &yard.clock, process, flags);
        let settings = Way::to(yard).settings(&board);
        let remediation = guards.map(|config| remedy::Settings {
            config,
            power: board.clone(),
            power_config: yard.config,
            board: remedy::RemediationBoard::default(),
        });
        let process = async move {
            let context = base.context.clone();
            let election = base.election();
            let power = power::run(context.clone(), settings);
            let remediation = async {
                let Some(settings) = remediation else { return };
                let seen = base.showing.run(base.watches);
                tokio::join!(seen, remedy::run(context.clone(), settings));
            };
            tokio::join!(power, remediation, election.run(context.stop.clone()));
        };
        Self {
            board,
            lock: None,
            stopper,
            process: Actor::spawn(process),
        }
    }

    /// Tells it to finish and to give its lead back, as a process that is asked to end.
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// Whether it runs still.
    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// The name under which a replica asks the API server.
    pub fn user(process: &str) -> String {
        format!("controller/{process}")
    }
}

/// What every replica has, whatever runs in it.
struct Base {
    context: Context,
    terms: watch::Sender<Option<Term>>,
    showing: Showing,
    watches: ClusterWatch,
}

impl Base {
    fn of(
        server: &ApiServer,
        clock: &Arc<TokioClock>,
        process: &str,
        flags: reboot::Config,
    ) -> (Self, Stopper) {
        let wall = Arc::clone(clock);
        let clock = Clock::with_wall(move || wall.now());
        let (terms, leadership) = Leadership::new(clock.clone());
        let (showing, cluster) = Cluster::new();
        let (stopper, stop) = Stop::new();
        let metrics = Metrics::default();
        let client = server.client(&Controller::user(process));
        let namespace = dogwatch_api::DEFAULT_NAMESPACE;
        let watches = ClusterWatch::new(client.clone(), namespace, || 0.5);
        let context = Context {
            client,
            namespace: namespace.into(),
            clock,
            flags,
            process: process.into(),
            leadership,
            cluster,
            board: Board::new(metrics.clone()),
            metrics,
            stop,
        };
        let base = Self {
            context,
            terms,
            showing,
            watches,
        };
        (base, stopper)
    }

    fn election(&self) -> Election {
        election(&self.context, self.terms.clone())
    }
}

fn lock(context: &Context, gatekeeper: Arc<dyn Gatekeeper>) -> Engine {
    Engine::start(engine::Setup {
        client: context.client.clone(),
        namespace: context.namespace.clone(),
        process: context.process.clone(),
        clock: context.clock.clone(),
        flags: context.flags.clone(),
        fleetlock_groups: FleetlockGroups::new(["*", "default"]),
        fleetlock_drain: false,
        gatekeeper,
    })
}

fn election(context: &Context, terms: watch::Sender<Option<Term>>) -> Election {
    let jitter = Jitter::of(&context.process);
    let elector = Elector::new(context.process.clone(), jitter.draw());
    let lease = LeaderClient::new(
        context.client.clone(),
        &context.namespace,
        context.process.clone(),
    );
    Election::new(
        elector,
        lease,
        context.clock.clone(),
        terms,
        context.metrics.clone(),
        context.board.heart("election"),
        move || jitter.draw(),
    )
}

/// How the BMCs of a yard are reached, and how its hosts are kept.
#[derive(Clone)]
pub struct Way {
    config: dogwatch_core::power::Config,
    connect: power::Connect,
}

impl Way {
    /// To this yard's, those that are put up later too.
    pub fn to(yard: &Yard) -> Self {
        Self {
            config: yard.config,
            connect: connect(yard),
        }
    }

    /// There are none to keep.
    fn nowhere() -> Self {
        let nobody = |_: &Address, _: &Credentials, _: bool| -> Result<Arc<dyn Bmc>, Fault> {
            Err(Fault::harmless(
                Class::Unreachable,
                "there are no BMCs here",
            ))
        };
        Self {
            config: dogwatch_core::power::Config::default(),
            connect: Arc::new(nobody),
        }
    }

    fn settings(self, board: &PowerBoard) -> Settings {
        Settings {
            config: self.config,
            max_concurrent: NonZeroUsize::new(100).expect("it is not 0"),
            owners: OwnerRules::default(),
            connect: self.connect,
            board: board.clone(),
        }
    }
}

/// The real driver, over a wire to the BMC of that address.
fn connect(yard: &Yard) -> power::Connect {
    let (park, readings) = (yard.park.clone(), yard.readings.clone());
    let clock = Arc::clone(&yard.clock);
    Arc::new(
        move |address: &Address, credentials: &Credentials, _: bool| {
            let at = address.host().parse().ok();
            let bmc = at.and_then(|at| park.at(at));
            let nobody = || Fault::harmless(Class::Unreachable, "nobody listens at this address");
            let bmc = bmc.ok_or_else(nobody)?;
            let exchange = Overheard {
                wire: Wire::to(&bmc),
                bmc,
                readings: readings.clone(),
                clock: Arc::clone(&clock),
            };
            let driver = Redfish::over(Arc::new(exchange), address, credentials.clone())?;
            Ok(Arc::new(driver) as Arc<dyn Bmc>)
        },
    )
}
