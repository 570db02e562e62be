//! The power controller and a real machine behind a real BMC: an annotation on a BareMetalHost, and
//! the machine's console.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(
    clippy::disallowed_methods,
    reason = "a real machine has the real time"
)]

mod ipmi_node_reboots;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::num::NonZeroUsize;
use std::time::Duration;

use dogwatch_bmc::{Credentials, Password, PowerCommand, connect_driver};
use dogwatch_controller::power::{self, HostRegistry, PowerSettings};
use dogwatch_core::power::{BmcAddress, HostSnapshot, OwnerRules, PowerConfig, PowerState};
use dogwatch_core::reboot;
use dogwatch_k8s::host::{HostObject, convert_host};
use dogwatch_runtime::clock::ProcessClock;
use dogwatch_testbed::ipmi_sim::{PASSWORD, USERNAME};
use dogwatch_testbed::vm::{
    GUEST_NOT_LISTENING, GUEST_RUNNING, GUEST_SHUTTING_DOWN, GuestMode, VirtualMachine,
};
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

/// A controller with one host for the machine. Dropping it kills the controller before the machine.
struct Kept {
    _leader: Leader,
    vm: VirtualMachine,
    client: Client,
}

impl Kept {
    /// Starts with a running machine whose host has `online: true`.
    async fn over(guest: GuestMode) -> Self {
        let vm = VirtualMachine::start(guest).await.unwrap();
        power_on(&vm).await;
        let client = server_from(Timestamp::now()).client_for_user("controller");
        for object in objects(&vm) {
            create(&client, object).await;
        }
        let clock = ProcessClock::with_wall_clock(Timestamp::now);
        let flags = reboot::RebootConfig::default();
        let (mut leader, context, _) = Leader::new(&client, "default", &clock, &flags);
        leader.run(power::run_power_controller(context, settings()));
        Self {
            _leader: leader,
            vm,
            client,
        }
    }

    fn hosts(&self) -> Api<HostObject> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn host(&self) -> HostSnapshot {
        convert_host(&self.hosts().get("h0").await.unwrap())
    }

    async fn annotate(&self, key: &str, value: Option<&str>) {
        let body = json!({ "metadata": { "annotations": { key: value } } });
        let patched = self
            .hosts()
            .patch("h0", &PatchParams::default(), &Patch::Merge(body))
            .await;
        patched.unwrap();
    }

    async fn until(&self, what: &str, holds: impl Fn(&HostSnapshot) -> bool) -> HostSnapshot {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let host = self.host().await;
            if holds(&host) {
                return host;
            }
            let console = self.vm.console_output();
            assert!(
                Instant::now() < deadline,
                "never: {what}: {host:#?}\n{console}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn boots(&self) -> usize {
        self.vm.console_output().matches(GUEST_RUNNING).count()
    }
}

async fn power_on(vm: &VirtualMachine) {
    let credentials = Credentials {
        username: USERNAME.to_owned(),
        password: Password::new(PASSWORD),
        ca: None,
    };
    let address = BmcAddress::parse(&vm.address()).unwrap();
    let bmc = connect_driver(
        &address,
        &credentials,
        true,
        &dogwatch_bmc::DriverOptions::default(),
    )
    .unwrap();
    bmc.send_command(PowerCommand::On, Duration::from_secs(30))
        .await
        .unwrap();
    vm.wait_until_console_shows(GUEST_RUNNING, 1).await.unwrap();
}

fn settings() -> PowerSettings {
    PowerSettings {
        config: PowerConfig {
            poll: Duration::from_secs(2),
            confirm: Duration::from_secs(1),
            settle: Duration::from_secs(5),
            // An emulated guest on a busy machine must react within this time.
            soft: Duration::from_secs(40),
            ..PowerConfig::default()
        },
        max_concurrent: NonZeroUsize::MIN,
        owners: OwnerRules::default(),
        connect: power::driver_connector("ipmitool".into(), "/usr/sbin".into()),
        board: HostRegistry::default(),
        has_workload_clusters: false,
    }
}

fn objects(vm: &VirtualMachine) -> [Value; 3] {
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
    [dogwatch_api::bare_metal_host::host_crd(), secret, host]
}

/// Creates the object as soon as its kind is served.
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
    let kept = Kept::over(GuestMode::Polite).await;
    kept.until("on is seen", |host| {
        host.status.power.state == Some(PowerState::On)
    })
    .await;

    kept.annotate(ANY, Some("")).await;
    kept.vm
        .wait_until_console_shows(GUEST_SHUTTING_DOWN, 1)
        .await
        .unwrap();
    kept.vm
        .wait_until_console_shows(GUEST_RUNNING, 2)
        .await
        .unwrap();
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
    // Other operators release workloads on this state, so no part of the machine may run.
    assert!(!kept.vm.has_process());
    let softly = kept
        .vm
        .console_output()
        .matches(GUEST_SHUTTING_DOWN)
        .count();
    assert_eq!((kept.boots(), softly), (2, 1), "this time power was cut");

    kept.annotate(KEY, None).await;
    kept.vm
        .wait_until_console_shows(GUEST_RUNNING, 3)
        .await
        .unwrap();
    kept.until("on is seen", |host| {
        host.status.power.state == Some(PowerState::On)
    })
    .await;
}

#[tokio::test]
async fn a_real_machine_that_is_deaf_to_the_soft_way_is_cut_off_at_its_deadline() {
    let kept = Kept::over(GuestMode::Deaf).await;
    kept.until("on is seen", |host| {
        host.status.power.state == Some(PowerState::On)
    })
    .await;
    kept.annotate(KEY, Some("")).await;
    kept.vm
        .wait_until_console_shows(GUEST_NOT_LISTENING, 1)
        .await
        .unwrap();
    kept.until("off is confirmed", |host| {
        host.status.power.off_confirmed_at.is_some()
    })
    .await;
    assert!(!kept.vm.has_process());
    assert_eq!(kept.boots(), 1);
}
