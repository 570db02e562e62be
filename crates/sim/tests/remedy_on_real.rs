//! Remediation's cases on a real API server, with short times, with the rights that are shipped.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(
    clippy::disallowed_methods,
    reason = "a real API server has the real time"
)]

#[allow(dead_code, reason = "each test binary uses its part")]
mod power_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod power_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod remedy_cases;

use std::path::Path;
use std::time::{Duration, Instant};

use dogwatch_api::{power_remediation, power_remediation_template};
use dogwatch_core::power::Config;
use dogwatch_testbed::{AuditEntry, shared};
use jiff::Timestamp;
use tokio::sync::Mutex;

use power_cases::world::World as Metal;
use remedy_cases::world::World;

const ROLE: &str = include_str!("../../../deploy/remediation/rbac.yaml");
const ACCOUNT: &str = "system:serviceaccount:dogwatch:dogwatch-controller";

/// One after the other: a process keeps every host of the cluster.
static ALONE: Mutex<()> = Mutex::const_new(());

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let _alone = ALONE.lock().await;
            let world = world().await;
            remedy_cases::$name(&world).await;
            world.end().await;
            nothing_was_refused().await;
        }
    )* };
}

every_remedy_case!(on_real);

async fn world() -> World {
    let mut metal = Metal::on(client().await, short(), Timestamp::now()).await;
    metal.leading = power_rights::controller().await;
    let apply = ["apply", "-f", "-"];
    shared().await.run_kubectl(&apply, ROLE).await.unwrap();
    power_rights::in_namespace(&metal.namespace).await;
    let mut world = World::on(metal).await;
    world.home = "dogwatch".into();
    world
}

const BASE: [&str; 2] = [
    include_str!("../../../deploy/base/namespace.yaml"),
    include_str!("../../../deploy/base/controller-rbac.yaml"),
];
const HOSTS_ROLE: &str = include_str!("../../../deploy/hosts/rbac.yaml");
const DELETE: &str = "- delete # remediation: a Node whose host is proved off";

#[tokio::test]
async fn without_the_right_to_delete_nodes_it_is_said_and_what_needs_none_is_served() {
    let _alone = ALONE.lock().await;
    let mut metal = Metal::on(client().await, short(), Timestamp::now()).await;
    let plane = shared().await;
    // The same account under another name, and with one right less.
    let give = async |manifests: &str| {
        let manifests = manifests.replace("dogwatch-controller", "dogwatch-weak");
        let apply = ["apply", "-f", "-"];
        plane.run_kubectl(&apply, &manifests).await.unwrap();
    };
    assert!(ROLE.contains(DELETE));
    for manifests in [BASE[0], BASE[1], &ROLE.replace(DELETE, "- get")] {
        give(manifests).await;
    }
    let secrets = HOSTS_ROLE.replace("dogwatch-controller", "dogwatch-weak");
    let namespace = format!("--namespace={}", metal.namespace);
    let apply = ["apply", "-f", "-", namespace.as_str()];
    plane.run_kubectl(&apply, &secrets).await.unwrap();
    let token = plane.service_account_token("dogwatch", "dogwatch-weak", None);
    let kubeconfig = plane.kubeconfig_for(&token.await.unwrap()).unwrap();
    metal.leading = client_by(&kubeconfig).await;
    let mut world = World::on(metal).await;
    world.home = "dogwatch".into();
    remedy_cases::bad::what_needs_no_deletion_is_served_without_the_right_to_it(&world, || {
        give(ROLE)
    })
    .await;
    world.end().await;
}

/// What is asked for, and what the API server answers.
const UNSERVED: [(&str, &str, &str); 6] = [
    (
        "PowerRemediation",
        r#"{"strategy":{"type":"Wipe"}}"#,
        r#"supported values: "DeleteNode", "OutOfServiceTaint""#,
    ),
    (
        "PowerRemediation",
        r#"{"strategy":{"retryLimit":11}}"#,
        "spec.strategy.retryLimit",
    ),
    (
        "PowerRemediation",
        r#"{"strategy":{"timeout":"10s"}}"#,
        "spec.strategy.timeout",
    ),
    (
        "PowerRemediationTemplate",
        r#"{"strategy":{"type":"DeleteNode"}}"#,
        r#"unknown field "spec.strategy""#,
    ),
    (
        "PowerRemediationTemplate",
        r#"{"template":{"spec":{"strategy":{"type":"Wipe"}}}}"#,
        "spec.template.spec.strategy.type: Unsupported value",
    ),
    (
        "Metal3RemediationTemplate",
        r#"{"template":{"spec":{}}}"#,
        r#"no matches for kind "Metal3RemediationTemplate" in version "dogwatch.dev/v1alpha1""#,
    ),
];

#[tokio::test]
async fn a_request_or_a_template_that_nobody_can_serve_is_refused_with_its_field_named() {
    let _alone = ALONE.lock().await;
    let plane = shared().await;
    for kind in [power_remediation::crd(), power_remediation_template::crd()] {
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        let kind = kind.to_string();
        plane.run_kubectl(&apply, &kind).await.unwrap();
    }
    for (kind, spec, answer) in UNSERVED {
        let object = format!(
            r#"{{"apiVersion":"dogwatch.dev/v1alpha1","kind":"{kind}","metadata":{{"name":"wrong","namespace":"default"}},"spec":{spec}}}"#
        );
        let create = ["create", "--dry-run=server", "-f", "-"];
        let deadline = Instant::now() + Duration::from_mins(2);
        // At first it answers that it does not serve the kind yet.
        loop {
            let refused = plane.run_kubectl(&create, &object).await.unwrap_err();
            let says = format!("{refused:?}").replace("\\\"", "\"");
            if says.contains(answer) {
                break;
            }
            assert!(Instant::now() < deadline, "{spec}: {says}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// That none is unused is held in `remedy_client_on_real`.
async fn nothing_was_refused() {
    let mut entries = shared().await.audit().await.unwrap();
    entries.retain(|entry| entry.user == ACCOUNT && entry.code == 403);
    let refused: Vec<&AuditEntry> = entries.iter().collect();
    assert!(
        refused.is_empty(),
        "what is shipped does not let it work: {refused:#?}"
    );
}

fn short() -> Config {
    let seconds = Duration::from_secs;
    Config {
        poll: seconds(1),
        check: seconds(2),
        confirm: Duration::from_millis(500),
        settle: seconds(4),
        soft: seconds(20),
        call: seconds(2),
    }
}

async fn client() -> kube::Client {
    client_by(shared().await.kubeconfig()).await
}

async fn client_by(path: &Path) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(path).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}
