//! The admission policies of `deploy/policies-deny`, in force.

use std::time::Duration;

use dogwatch_testbed::ControlPlane;

use super::PATIENCE;

const SHIPPED: [&str; 7] = [
    include_str!("../../../../../deploy/policies/rbac.yaml"),
    include_str!("../../../../../deploy/policies/coordinators.yaml"),
    include_str!("../../../../../deploy/policies/locks.yaml"),
    include_str!("../../../../../deploy/policies/requests.yaml"),
    include_str!("../../../../../deploy/policies/remediation.yaml"),
    include_str!("../../../../../deploy/policies/bmcs.yaml"),
    include_str!("../../../../../deploy/policies/events.yaml"),
];

/// Refuses one ConfigMap. It is applied last, so it takes effect last.
const CANARY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: canary }
spec:
  matchConstraints:
    resourceRules:
      - { apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps], scope: "*" }
  matchConditions: [{ name: it, expression: object.metadata.name == 'canary' }]
  validations: [{ expression: 'false', message: in force }]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: canary }
spec: { policyName: canary, validationActions: [Deny] }
"#;

/// All policies, with the overlay that refuses instead of warning.
pub fn denying() -> String {
    SHIPPED.join("---\n").replace("[Warn, Audit]", "[Deny]")
}

/// Applies the policies, and waits until they are in force.
pub async fn install(plane: &ControlPlane) {
    let manifests = format!("{}---\n{CANARY}", denying());
    let applied = plane.run_kubectl(&["apply", "-f", "-"], &manifests).await;
    applied.expect("manifests that are accepted");
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !sings(plane).await {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the policies are not in force within {PATIENCE:?}"
        );
        // The API server does not report when a policy takes effect, so it is polled.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn sings(plane: &ControlPlane) -> bool {
    let create = ["create", "configmap", "canary", "--dry-run=server"];
    plane.run_kubectl(&create, "").await.is_err()
}
