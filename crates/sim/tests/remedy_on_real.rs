//! Remediation's cases on a real API server, with short times and the rights that are shipped.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]
#![allow(
    clippy::disallowed_methods,
    reason = "a real API server has the real time"
)]

#[allow(dead_code, unused_imports, reason = "each test binary uses its part")]
mod power_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod power_rights;
#[allow(dead_code, reason = "each test binary uses its part")]
mod remedy_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use std::time::{Duration, Instant};

use dogwatch_api::{power_remediation, power_remediation_template};
use dogwatch_testbed::{rights_used, shared_control_plane};
use jiff::Timestamp;

use power_cases::world::{World as Metal, short};
use remedy_cases as cases;
use remedy_cases::world::World;
use support::real::{
    ALONE, HOSTS_ROLE, NAMESPACE, REMEDIATION_ROLE, ROLES, alone_on_real, apply, apply_in,
    asked_by_controller, client, client_by, kubeconfig_of,
};

every_remedy_case!(alone_on_real);

async fn world() -> World {
    let mut metal = Metal::on(client().await, short(), Timestamp::now()).await;
    metal.leading = power_rights::controller().await;
    apply(REMEDIATION_ROLE).await;
    power_rights::in_namespace(&metal.namespace).await;
    let mut world = World::on(metal).await;
    world.home = "dogwatch".into();
    world
}

const DELETE: &str = "- delete # remediation: a Node whose host is proved off";

#[tokio::test]
async fn without_the_right_to_delete_nodes_it_is_said_and_what_needs_none_is_served() {
    let _alone = ALONE.lock().await;
    let mut metal = Metal::on(client().await, short(), Timestamp::now()).await;
    // The same account under another name, with one right less.
    let weak = |manifests: &str| manifests.replace("dogwatch-controller", "dogwatch-weak");
    assert!(REMEDIATION_ROLE.contains(DELETE));
    let weaker = REMEDIATION_ROLE.replace(DELETE, "- get");
    for manifests in [NAMESPACE, ROLES, &weaker] {
        apply(&weak(manifests)).await;
    }
    apply_in(&metal.namespace, &weak(HOSTS_ROLE)).await;
    metal.leading = client_by(&kubeconfig_of("dogwatch", "dogwatch-weak").await).await;
    let mut world = World::on(metal).await;
    world.home = "dogwatch".into();
    let right = weak(REMEDIATION_ROLE);
    let give_right = || apply(&right);
    cases::bad::what_needs_no_deletion_is_served_without_the_right_to_it(&world, give_right).await;
    world.end().await;
}

/// A request, and the API server's answer.
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
    let plane = shared_control_plane().await;
    for (kind, name) in [
        (
            power_remediation::remediation_crd(),
            power_remediation::CRD_NAME,
        ),
        (
            power_remediation_template::template_crd(),
            power_remediation_template::CRD_NAME,
        ),
    ] {
        plane
            .install_manifests(&kind.to_string(), &[name])
            .await
            .unwrap();
    }
    for (kind, spec, answer) in UNSERVED {
        let object = format!(
            r#"{{"apiVersion":"dogwatch.dev/v1alpha1","kind":"{kind}","metadata":{{"name":"wrong","namespace":"default"}},"spec":{spec}}}"#
        );
        let create = ["create", "--dry-run=server", "-f", "-"];
        let deadline = Instant::now() + Duration::from_mins(2);
        // At first the server answers that it does not serve the kind yet.
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

/// Checks that nothing was refused; `remedy_client_on_real` checks that every right is used.
async fn after(_: &World) {
    rights_used(&asked_by_controller("dogwatch").await);
}
