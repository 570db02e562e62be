//! The healer's rights on the real API server are exactly those that `deploy` ships, and the cases
//! use each of them. Source: specification §6.

use std::time::Duration;

use dogwatch_testbed::{UsedRights, rights_in_manifests, shared_control_plane};
use tokio::sync::OnceCell;

use crate::support::real::{ROLES, apply, asked_by_controller, controller_of};
use crate::support::{PATIENCE, until_by};

const POLICY_RIGHTS: &str = include_str!("../../../../deploy/policies/rbac.yaml");
const POLICIES: [&str; 3] = [
    include_str!("../../../../deploy/policies/coordinators.yaml"),
    include_str!("../../../../deploy/policies/locks.yaml"),
    include_str!("../../../../deploy/policies/requests.yaml"),
];

/// Refuses one ConfigMap. It is created last, so it is in force last.
const CANARY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: canary }
spec:
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps] }
  matchConditions: [{ name: it, expression: object.metadata.name == 'canary' }]
  validations: [{ expression: 'false', message: in force }]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: canary }
spec: { policyName: canary, validationActions: [Deny] }
"#;

/// A client of the controller in this namespace, with the shipped rights there.
pub async fn controller(namespace: &str) -> kube::Client {
    static IN_FORCE: OnceCell<()> = OnceCell::const_new();
    IN_FORCE.get_or_init(install_policies).await;
    let plane = shared_control_plane().await;
    let label = [
        "label",
        "namespace",
        namespace,
        "app.kubernetes.io/part-of=dogwatch",
    ];
    plane.run_kubectl(&label, "").await.unwrap();
    let here = format!("namespace: {namespace}\n");
    let rights = [ROLES, POLICY_RIGHTS].join("---\n");
    apply(&rights.replace("namespace: dogwatch\n", &here)).await;
    controller_of(namespace).await
}

async fn install_policies() {
    let policies = POLICIES.join("---\n").replace("[Warn, Audit]", "[Deny]");
    apply(&format!("{policies}---\n{CANARY}")).await;
    // Nothing reports when an API server applies a new policy.
    let pause = Duration::from_millis(200);
    until_by(PATIENCE, pause, "the policies are in force", || async {
        let create = ["create", "configmap", "canary", "--dry-run=server"];
        shared_control_plane()
            .await
            .run_kubectl(&create, "")
            .await
            .is_err()
    })
    .await;
}

/// Checks that nothing was refused in this case and, after the last case, that every right was
/// used.
pub async fn after(namespace: &str, cases: usize) {
    static USED: UsedRights = UsedRights::none();
    let shipped = rights_in_manifests(&[ROLES], |why| why.contains("healer"));
    assert!(shipped.len() > 5, "{shipped:?}");
    USED.record_test(&asked_by_controller(namespace).await, cases, &shipped);
}
