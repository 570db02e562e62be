//! curl and Zincati against the real lock, on a real API server.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::fleetlock::FleetlockGroups;
use dogwatch_core::reboot::RebootConfig as Flags;
use dogwatch_k8s::connect::connect_by_kubeconfig;
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_testbed::ControlPlane;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::curl::{Curl, curl, finish, run};
use super::rig::{Alice, LOOPBACK, config, within};
use crate::lock::engine::{LockEngine, LockEngineSetup, NoGateChecker};
use crate::lock::http::{LockApiDeps, LockApiServer, LockAuthMode, LockProtocol, NoRequestMetrics};

/// A replica of the lock API in a namespace of its own.
struct Replica {
    plane: &'static ControlPlane,
    namespace: &'static str,
    api: String,
    fleetlock: String,
    engine: LockEngine,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

impl Replica {
    async fn start(namespace: &'static str) -> Self {
        let plane = dogwatch_testbed::shared_control_plane().await;
        let create = ["create", "namespace", namespace];
        plane.run_kubectl(&create, "").await.unwrap();
        let engine = LockEngine::start(LockEngineSetup {
            client: connect_by_kubeconfig(plane.admin_kubeconfig())
                .await
                .unwrap(),
            namespace: namespace.to_owned(),
            process: namespace.to_owned(),
            clock: ProcessClock::system_clock(),
            flags: Flags::default(),
            fleetlock_groups: FleetlockGroups::new(["default", "*"]),
            fleetlock_drain: false,
            gate_checker: Arc::new(NoGateChecker),
        });
        let mut config = config(LockAuthMode::None);
        config.fleetlock = Some(LOOPBACK.parse().unwrap());
        config.fleetlock_groups = FleetlockGroups::new(["default", "*"]);
        let parts = LockApiDeps {
            service: Arc::new(engine.clone()),
            access: Arc::new(Alice),
            record: Arc::new(NoRequestMetrics),
        };
        let server = LockApiServer::bind(config, parts).await.unwrap();
        let url = |protocol| format!("http://{}", server.address_of(protocol).unwrap());
        let (api, fleetlock) = (url(LockProtocol::Api), url(LockProtocol::FleetLock));
        let (stop, stopped) = oneshot::channel();
        let told = async {
            let _dropped = stopped.await;
        };
        let ended = tokio::spawn(async move { server.serve_until(told).await });
        Self {
            plane,
            namespace,
            api,
            fleetlock,
            engine,
            stop,
            ended,
        }
    }

    fn arguments(&self, call: &str, form: &str) -> [String; 3] {
        let url = format!("{}/api/v1/{call}", self.api);
        ["--data".to_owned(), form.to_owned(), url]
    }

    async fn call(&self, call: &str, form: &str) -> Curl {
        let arguments = self.arguments(call, form);
        run(&arguments.each_ref().map(String::as_str))
            .await
            .unwrap()
    }

    fn begin(&self, form: &str) -> tokio::process::Child {
        let arguments = self.arguments("lock", form);
        curl(&arguments.each_ref().map(String::as_str))
            .spawn()
            .unwrap()
    }

    async fn says(&self, path: &str, id: &str) -> u16 {
        let body = format!(r#"{{"client_params":{{"id":"{id}","group":"Workers"}}}}"#);
        let url = format!("{}/v1/{path}", self.fleetlock);
        let header = "fleet-lock-protocol: true";
        let answer = run(&[
            "--max-time",
            "20",
            "--header",
            header,
            "--data",
            &body,
            &url,
        ])
        .await;
        answer.unwrap().status
    }

    async fn holders(&self) -> String {
        let path = "-o=jsonpath={.items[*].spec.holderIdentity}";
        let selector = "--selector=dogwatch.dev/group";
        let get = [
            "get",
            "leases",
            "--namespace",
            self.namespace,
            selector,
            path,
        ];
        self.plane
            .run_kubectl(&get, "")
            .await
            .unwrap()
            .trim()
            .to_owned()
    }

    async fn until_waiting(&self, count: usize) {
        let seen = async {
            while self.engine.count_waiting() != count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within("the number that waits", seen).await;
    }

    async fn until_held_by(&self, holder: &str) {
        let seen = async { while self.holders().await != holder {} };
        within(&format!("held by {holder:?}"), seen).await;
    }
}

#[tokio::test]
async fn a_host_gets_the_lock_when_the_one_before_gives_it_up() {
    let replica = Replica::start("lock-http-hosts").await;
    let held = replica.call("lock", "hostname=host-a").await;
    assert_eq!(
        (held.status, held.body.matches('\n').count()),
        (200, 1),
        "{}",
        held.body
    );
    assert_eq!(replica.call("lock", "hostname=HOST-A").await.status, 200);
    let busy = replica.call("lock", "hostname=host-b&wait=false").await;
    assert_eq!(busy.status, 409, "{}", busy.body);
    assert!(busy.body.contains("api/host-a"), "{}", busy.body);
    let mut killed = replica.begin("hostname=host-c");
    replica.until_waiting(1).await;
    killed.kill().await.unwrap();
    replica.until_waiting(0).await;
    let waits = replica.begin("hostname=host-b");
    replica.until_waiting(1).await;
    assert_eq!(replica.call("unlock", "hostname=host-a").await.status, 200);
    let got = finish(waits).await.unwrap();
    assert_eq!(got.status, 200, "{}", got.body);
    replica.until_held_by("api/host-b").await;
    for _ in 0..2 {
        assert_eq!(replica.call("unlock", "hostname=host-b").await.status, 200);
    }
    replica.until_held_by("").await;
}

#[tokio::test]
async fn a_fleetlock_client_goes_through_its_whole_round() {
    let replica = Replica::start("lock-http-fleetlock").await;
    assert_eq!(replica.says("steady-state", "a").await, 200);
    assert_eq!(replica.says("pre-reboot", "a").await, 200);
    assert_eq!(replica.says("pre-reboot", "a").await, 200);
    assert_eq!(replica.holders().await, "fleetlock/Workers/a");
    assert_eq!(replica.says("steady-state", "b").await, 200);
    assert_eq!(replica.holders().await, "fleetlock/Workers/a");
    assert_eq!(replica.says("steady-state", "a").await, 200);
    assert_eq!(replica.says("pre-reboot", "b").await, 200);
    assert_eq!(replica.holders().await, "fleetlock/Workers/b");
}

#[tokio::test]
async fn at_the_end_the_lock_itself_tells_those_who_wait() {
    let replica = Replica::start("lock-http-end").await;
    replica.call("lock", "hostname=host-a").await;
    let waits = replica.begin("hostname=host-b");
    replica.until_waiting(1).await;
    replica.stop.send(()).unwrap();
    assert!(replica.engine.shutdown(Duration::from_secs(15)).await);
    let told = finish(waits).await.unwrap();
    assert_eq!(
        (told.status, told.body.matches('\n').count()),
        (503, 1),
        "{}",
        told.body
    );
    within("the end", replica.ended).await.unwrap();
    // A lock that was granted stays.
    let path = "-o=jsonpath={.items[*].spec.holderIdentity}";
    let get = [
        "get",
        "leases",
        "--namespace",
        replica.namespace,
        "--selector=dogwatch.dev/group",
        path,
    ];
    let holders = replica.plane.run_kubectl(&get, "").await.unwrap();
    assert_eq!(holders.trim(), "api/host-a");
}
