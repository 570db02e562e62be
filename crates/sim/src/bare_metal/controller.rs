//! One replica of `dogwatch controller` with the components that a script names, such as
//! `power,remediation`.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_bmc::redfish::RedfishDriver;
use dogwatch_bmc::{Bmc, BmcFault, Credentials, FaultClass};
use dogwatch_controller::cluster_views::{ClusterViewPublisher, ClusterViewReceiver};
use dogwatch_controller::health_registry::HealthRegistry;
use dogwatch_controller::leader::{LeaderElection, LeadershipHandle};
use dogwatch_controller::lock::engine::{self, GateChecker, LockEngine};
use dogwatch_controller::metrics::MetricsRegistry;
use dogwatch_controller::power::{self, HostRegistry, PowerSettings};
use dogwatch_controller::remediation;
use dogwatch_controller::run::{ControllerComponent, leading_components};
use dogwatch_controller::{ControllerContext, StopSignal, StopTrigger};
use dogwatch_core::fleetlock::FleetlockGroups;
use dogwatch_core::leader::LeaderTerm;
use dogwatch_core::power::{BmcAddress, OwnerRules};
use dogwatch_core::report::EstimateRollout;
use dogwatch_core::{reboot, remediation as rules};
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_kubesim::api::ApiServer;
use dogwatch_kubesim::clock::{ClusterClock as _, TokioClock};
use dogwatch_kubesim::world::ActorTask;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_runtime::jitter::JitterSource;
use futures::future::join_all;
use tokio::sync::watch;

use super::bmc_readings::RecordingTransport;
use super::lab::BareMetalLab;
use super::replica_trace::ReplicaTrace;
use crate::bmc::InProcessTransport;

/// How long the lock may take at shutdown to release locks whose callers got no answer.
const LOCK_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

/// A running replica. To drop it is to kill it: its Lease stays.
pub struct SimController {
    /// Its view of the hosts.
    pub board: HostRegistry,
    /// The lock engine, if the replica serves the lock API.
    pub lock: Option<LockEngine>,
    stopper: StopTrigger,
    process: ActorTask,
}

/// What a replica is made from.
pub struct ControllerReplica<'a> {
    pub server: &'a ApiServer,
    pub clock: &'a Arc<TokioClock>,
    /// A process name that was never used on this server.
    pub process: &'a str,
    pub components: BTreeSet<ControllerComponent>,
    /// Reboot flags that apply to all nodes.
    pub flags: reboot::RebootConfig,
    /// How to reach the BMCs, if there are hosts.
    pub bmc_access: Option<BmcAccess>,
    /// Checks the Prometheus gates for hosts of the lock API.
    pub gatekeeper: Arc<dyn GateChecker>,
    /// Makes estimates on another thread, whose writes have no fixed order in virtual time.
    pub planner: Option<Arc<dyn EstimateRollout>>,
}

impl SimController {
    /// Starts a replica with the power component. `process` must be a new name in this lab.
    pub fn start_power(yard: &BareMetalLab, process: &str) -> Self {
        Self::start_in_lab(yard, process, None)
    }

    /// Starts all loops that the real program would run for these components; the lock API without
    /// its listeners.
    pub fn start_replica(replica: ControllerReplica<'_>) -> Self {
        let board = HostRegistry::default();
        let (server, clock, flags) = (replica.server, replica.clock, replica.flags);
        let access = replica.bmc_access.unwrap_or_else(BmcAccess::without_bmcs);
        let (base, stopper) =
            ReplicaBase::for_replica(server, clock, replica.process, flags, &access.trace);
        let context = base.context.clone();
        let parts = &replica.components;
        let power = access.power_settings(&board);
        let leading = leading_components(
            &context,
            parts,
            power,
            (rules::RemediationConfig::default(), None),
            replica.planner,
        );
        let leading: Vec<_> = leading.into_iter().map(|(_, part)| part).collect();
        let lock = parts
            .contains(&ControllerComponent::Lock)
            .then(|| start_lock_engine(&context, replica.gatekeeper));
        let served = lock.clone();
        let is_elected = !leading.is_empty();
        let process = async move {
            let (last_stopper, last_stop) = StopSignal::new();
            let election = base.build_election();
            let election = async {
                if is_elected {
                    election.run(last_stop).await;
                }
            };
            let watches = async {
                if is_elected {
                    base.showing.publish_watched_views(base.watches).await;
                }
                std::future::pending::<()>().await;
            };
            let finished = async {
                let giving_back = async {
                    context.stop.wait_for_stop().await;
                    if let Some(lock) = served {
                        lock.shutdown(LOCK_SHUTDOWN_TIMEOUT).await;
                    }
                };
                tokio::join!(join_all(leading), giving_back);
                last_stopper.signal_stop();
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
            process: ActorTask::spawn(process),
        }
    }

    fn start_in_lab(
        yard: &BareMetalLab,
        process: &str,
        guards: Option<rules::RemediationConfig>,
    ) -> Self {
        let board = HostRegistry::default();
        let flags = reboot::RebootConfig::default();
        let (server, clock) = (&yard.server, &yard.clock);
        let (base, stopper) = ReplicaBase::for_replica(server, clock, process, flags, &yard.trace);
        let settings = BmcAccess::to_lab(yard).power_settings(&board);
        let remediation = guards.map(|config| remediation::RemediationSettings {
            config,
            power: board.clone(),
            power_config: yard.config,
            board: remediation::RemediationRegistry::default(),
            workload: None,
        });
        let process = async move {
            let context = base.context.clone();
            let election = base.build_election();
            let power = power::run_power_controller(context.clone(), settings);
            let remediation = async {
                let Some(settings) = remediation else { return };
                let seen = base.showing.publish_watched_views(base.watches);
                tokio::join!(
                    seen,
                    remediation::run_remediation(context.clone(), settings)
                );
            };
            tokio::join!(power, remediation, election.run(context.stop.clone()));
        };
        Self {
            board,
            lock: None,
            stopper,
            process: ActorTask::spawn(process),
        }
    }

    /// Asks the replica to finish and to give up its leader Lease, as a process does on SIGTERM.
    pub fn request_stop(&self) {
        self.stopper.signal_stop();
    }

    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// The user name with which a replica speaks to the API server.
    pub fn controller_user(process: &str) -> String {
        format!("controller/{process}")
    }
}

/// The parts of a replica that do not depend on its components.
struct ReplicaBase {
    context: ControllerContext,
    terms: watch::Sender<Option<LeaderTerm>>,
    showing: ClusterViewPublisher,
    watches: ClusterWatch,
}

impl ReplicaBase {
    fn for_replica(
        server: &ApiServer,
        clock: &Arc<TokioClock>,
        process: &str,
        flags: reboot::RebootConfig,
        trace: &ReplicaTrace,
    ) -> (Self, StopTrigger) {
        let wall = Arc::clone(clock);
        let clock = ProcessClock::with_wall_clock(move || wall.now());
        let (terms, leadership) = LeadershipHandle::new(clock.clone());
        let (showing, cluster) = ClusterViewReceiver::new();
        let (stopper, stop) = StopSignal::new();
        let metrics = MetricsRegistry::default();
        let client = server.client_for_user(&SimController::controller_user(process));
        let namespace = dogwatch_api::DEFAULT_NAMESPACE;
        let watches = ClusterWatch::new(client.clone(), namespace, || 0.5);
        let decision_log = trace.open_log(&clock, process);
        let context = ControllerContext {
            client,
            namespace: namespace.into(),
            clock,
            flags,
            process: process.into(),
            leadership,
            cluster,
            health: HealthRegistry::new(metrics.clone()),
            metrics,
            decision_log,
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

    fn build_election(&self) -> LeaderElection {
        let jitter = JitterSource::of_process(&self.context.process);
        LeaderElection::new(&self.context, self.terms.clone(), jitter)
    }
}

fn start_lock_engine(context: &ControllerContext, gatekeeper: Arc<dyn GateChecker>) -> LockEngine {
    LockEngine::start(engine::LockEngineSetup {
        client: context.client.clone(),
        namespace: context.namespace.clone(),
        process: context.process.clone(),
        clock: context.clock.clone(),
        flags: context.flags.clone(),
        fleetlock_groups: FleetlockGroups::new(["*", "default"]),
        fleetlock_drain: false,
        gate_checker: gatekeeper,
    })
}

/// How to reach the BMCs of a lab, and how to control its hosts.
#[derive(Clone)]
pub struct BmcAccess {
    config: dogwatch_core::power::PowerConfig,
    connect: power::ConnectDriver,
    trace: ReplicaTrace,
}

impl BmcAccess {
    /// Reaches all BMCs of this lab, including those added later.
    pub fn to_lab(yard: &BareMetalLab) -> Self {
        Self {
            config: yard.config,
            connect: connect_lab_bmcs(yard),
            trace: yard.trace.clone(),
        }
    }

    /// For a replica without hosts.
    fn without_bmcs() -> Self {
        let nobody = |_: &BmcAddress, _: &Credentials, _: bool| -> Result<Arc<dyn Bmc>, BmcFault> {
            Err(BmcFault::without_effect(
                FaultClass::Unreachable,
                "there are no BMCs here",
            ))
        };
        Self {
            config: dogwatch_core::power::PowerConfig::default(),
            connect: Arc::new(nobody),
            trace: ReplicaTrace::default(),
        }
    }

    fn power_settings(self, board: &HostRegistry) -> PowerSettings {
        PowerSettings {
            config: self.config,
            max_concurrent: NonZeroUsize::new(100).expect("it is not 0"),
            owners: OwnerRules::default(),
            connect: self.connect,
            board: board.clone(),
            has_workload_clusters: false,
        }
    }
}

/// Makes the real driver over a transport to the BMC at that address.
fn connect_lab_bmcs(yard: &BareMetalLab) -> power::ConnectDriver {
    let (park, readings) = (yard.bmc_fleet.clone(), yard.readings.clone());
    let clock = Arc::clone(&yard.clock);
    Arc::new(
        move |address: &BmcAddress, credentials: &Credentials, _: bool| {
            let at = address.host().parse().ok();
            let bmc = at.and_then(|at| park.bmc_at_address(at));
            let nobody = || {
                BmcFault::without_effect(FaultClass::Unreachable, "nobody listens at this address")
            };
            let bmc = bmc.ok_or_else(nobody)?;
            let exchange = RecordingTransport {
                wire: InProcessTransport::to_bmc(&bmc),
                bmc,
                readings: readings.clone(),
                clock: Arc::clone(&clock),
            };
            let driver =
                RedfishDriver::over_transport(Arc::new(exchange), address, credentials.clone())?;
            Ok(Arc::new(driver) as Arc<dyn Bmc>)
        },
    )
}
