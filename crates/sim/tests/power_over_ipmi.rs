//! The power controller and a real machine behind a real BMC: an annotation on a BareMetalHost, and what the machine's console says.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(
    clippy::disallowed_methods,
    reason = "a real machine has the real time"
)]

#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::num::NonZeroUsize;
use std::time::Duration;

use dogwatch_bmc::{Command, Credentials, Password, connect};
use dogwatch_controller::power::{self, PowerBoard, Settings};
use dogwatch_core::power::{Address, Config, Host, OwnerRules, State};
use dogwatch_core::reboot;
use dogwatch_k8s::host::{HostObject, convert};
use dogwatch_process::clock::Clock;
use dogwatch_testbed::ipmi_sim::{PASSWORD, USERNAME};
use dogwatch_testbed::vm::{Guest, NOT_LISTENING, RUNNING, SHUTTING_DOWN, Vm};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use support::embedded::server_from;
use support::leader::Leader;

const ANY: &str = "reboot.metal3.io";
const KEY: &str = "reboot.metal3.io/key";

/// A boot takes 7 s alone, and this machine may be compiling.
const PATIENCE: Duration = Duration::from_mins(3);

/// A controller that keeps one host over the machine. Dropped, it is killed, before the machine is.
struct Kept {
    _leader: Leader,
    vm: Vm,
    client: Client,
}

impl Kept {
    /// The machine runs, and the host wants it online.
    async fn over(guest: Guest) -> Self {
        let vm = Vm::start(guest).await.unwrap();
        power_on(&vm).await;
        let client = server_from(Timestamp::now()).client("controller");
        for object in objects(&vm) {
            create(&client, object).await;
        }
        let clock = Clock::with_wall(Timestamp::now);
        let flags = reboot::Config::default();
        let (mut leader, context, _) = Leader::new(&client, "default", &clock, &flags);
        leader.run(power::run(context, settings()));
        Self {
            _leader: leader,
            vm,
            client,
        }
    }

    fn hosts(&self) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn host(&self) -> Host {
        convert(&self.hosts().get("h0").await.unwrap())
    }

    async fn annotate(&self, key: &str, value: Option<&str>) {
        let body = json!({ "metadata": { "annotations": { key: value } } });
        let patched = self
            .hosts()
            .patch("h0", &PatchParams::default(), &Patch::Merge(body))
            .await;
        patched.unwrap();
    }

    async fn until(&self, what: &str, holds: impl Fn(&Host) -> bool) -> Host {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let host = self.host().await;
            if holds(&host) {
                return host;
            }
            let console = self.vm.console();
            assert!(
                Instant::now() < deadline,
                "never: {what}: {host:#?}\n{console}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn boots(&self) -> usize {
        self.vm.console().matches(RUNNING).count()
    }
}

async fn power_on(vm: &Vm) {
    let credentials = Credentials {
        username: USERNAME.to_owned(),
        password: Password::new(PASSWORD),
        ca: None,
    };
    let address = Address::parse(&vm.address()).unwrap();
    let bmc = connect(
        &address,
        &credentials,
        true,
        &dogwatch_bmc::Options::default(),
    )
    .unwrap();
    bmc.send(Command::On, Duration::from_secs(30))
        .await
        .unwrap();
    vm.shows(RUNNING, 1).await.unwrap();
}

fn settings() -> Settings {
    Settings {
        config: Config {
            poll: Duration::from_secs(2),
            confirm: Duration::from_secs(1),
            settle: Duration::from_secs(5),
            // A guest that is emulated on a busy machine has to hear it by then.
            soft: Duration::from_secs(40),
            ..Config::default()
        },
        max_concurrent: NonZeroUsize::MIN,
        owners: OwnerRules::default(),
        connect: power::drivers("ipmitool".into(), "/usr/sbin".into()),
        board: PowerBoard::default(),
    }
}

fn objects(vm: &Vm) -> [Value; 3] {
    let bytes = |text: &str| json!(k8s_openapi::ByteString(text.into()));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "bmc", "namespace": "default" },
        "data": { "username": bytes(USERNAME), "password": bytes(PASSWORD) },
    });
    let host = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": "h0", "namespace": "default" },
        "spec": {
            "online": true, "externallyProvisioned": true,
            "bmc": { "address": vm.address(), "credentialsName": "bmc" },
        },
    });
    [dogwatch_api::bare_metal_host::crd(), secret, host]
}

/// As soon as its kind is served.
async fn create(client: &Client, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let types = object.types.clone().unwrap();
    let kind = GroupVersionKind::try_from(&types).unwrap();
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = api.create(&PostParams::default(), &object).await {
        assert!(Instant::now() < deadline, "{kind:?}: {error}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn an_annotation_reboots_a_real_machine_softly_and_a_key_holds_it_off() {
    let kept = Kept::over(Guest::Polite).await;
    kept.until("on is seen", |host| {
        host.status.power.state == Some(State::On)
    })
    .await;

    kept.annotate(ANY, Some("")).await;
    kept.vm.shows(SHUTTING_DOWN, 1).await.unwrap();
    kept.vm.shows(RUNNING, 2).await.unwrap();
    let host = kept
        .until("the reboot is served", |host| {
            !host.annotations.contains_key(ANY)
        })
        .await;
    let status = &host.status;
    assert!(
        status.last_powered_on > status.pending_reboot_since,
        "{status:#?}"
    );

    kept.annotate(KEY, Some(r#"{"mode":"hard"}"#)).await;
    kept.until("off is confirmed", |host| {
        host.status.power.off_confirmed_at.is_some()
    })
    .await;
    // What others release workloads on: nothing of it runs.
    assert!(!kept.vm.has_process());
    let softly = kept.vm.console().matches(SHUTTING_DOWN).count();
    assert_eq!((kept.boots(), softly), (2, 1), "this time power was cut");

    kept.annotate(KEY, None).await;
    kept.vm.shows(RUNNING, 3).await.unwrap();
    kept.until("on is seen", |host| {
        host.status.power.state == Some(State::On)
    })
    .await;
}

#[tokio::test]
async fn a_real_machine_that_is_deaf_to_the_soft_way_is_cut_off_at_its_deadline() {
    let kept = Kept::over(Guest::Deaf).await;
    kept.until("on is seen", |host| {
        host.status.power.state == Some(State::On)
    })
    .await;
    kept.annotate(KEY, Some("")).await;
    kept.vm.shows(NOT_LISTENING, 1).await.unwrap();
    kept.until("off is confirmed", |host| {
        host.status.power.off_confirmed_at.is_some()
    })
    .await;
    assert!(!kept.vm.has_process());
    assert_eq!(kept.boots(), 1);
}
