//! One replica of `dogwatch controller --components power`, or `power,remediation`.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use dogwatch_bmc::redfish::Redfish;
use dogwatch_bmc::{Bmc, Class, Credentials, Fault};
use dogwatch_controller::board::Board;
use dogwatch_controller::cluster::Cluster;
use dogwatch_controller::leader::{Election, Leadership};
use dogwatch_controller::metrics::Metrics;
use dogwatch_controller::power::{self, PowerBoard, Settings};
use dogwatch_controller::remedy;
use dogwatch_controller::{Context, Stop};
use dogwatch_core::leader::Elector;
use dogwatch_core::power::Address;
use dogwatch_core::{reboot, remedy as rules};
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::leader::LeaderClient;
use dogwatch_process::clock::Clock;
use dogwatch_process::jitter::Jitter;

use super::readings::Overheard;
use super::yard::Yard;
use crate::bmc::Wire;
use crate::clock::Clock as _;
use crate::world::Actor;

/// A running replica. Dropped, it is killed where it stands: its Lease stays.
pub struct Controller {
    /// What it knows of the hosts that it keeps.
    pub board: PowerBoard,
    _process: Actor,
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

    fn of(yard: &Yard, process: &str, guards: Option<rules::Config>) -> Self {
        let board = PowerBoard::default();
        let clock = Arc::clone(&yard.clock);
        let clock = Clock::with_wall(move || clock.now());
        let (terms, leadership) = Leadership::new(clock.clone());
        let (showing, cluster) = Cluster::new();
        let (stopper, stop) = Stop::new();
        let metrics = Metrics::default();
        let context = Context {
            client: yard.server.client(&Self::user(process)),
            namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
            clock,
            flags: reboot::Config::default(),
            process: process.into(),
            leadership,
            cluster,
            board: Board::new(metrics.clone()),
            metrics,
            stop: stop.clone(),
        };
        let election = election(&context, terms);
        let settings = settings(yard, &board);
        let remediation = guards.map(|config| remedy::Settings {
            config,
            power: board.clone(),
            power_config: yard.config,
            board: remedy::RemediationBoard::default(),
        });
        let process = async move {
            let _never_told = stopper;
            let power = power::run(context.clone(), settings);
            let remediation = async {
                let Some(settings) = remediation else { return };
                let client = context.client.clone();
                let watches = ClusterWatch::new(client, &context.namespace, || 0.5);
                let seen = showing.run(watches);
                tokio::join!(seen, remedy::run(context.clone(), settings));
            };
            tokio::join!(power, remediation, election.run(stop));
        };
        Self {
            board,
            _process: Actor::spawn(process),
        }
    }

    /// The name under which a replica asks the API server.
    pub fn user(process: &str) -> String {
        format!("controller/{process}")
    }
}

fn election(
    context: &Context,
    terms: tokio::sync::watch::Sender<Option<dogwatch_core::leader::Term>>,
) -> Election {
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

fn settings(yard: &Yard, board: &PowerBoard) -> Settings {
    Settings {
        config: yard.config,
        max_concurrent: NonZeroUsize::new(100).expect("it is not 0"),
        host_namespaces: BTreeSet::new(),
        connect: connect(yard),
        board: board.clone(),
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
