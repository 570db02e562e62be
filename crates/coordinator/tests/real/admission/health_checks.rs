//! Other projects' health checks may use our kinds without a binding of ours, by the labels of
//! their contracts. Source: specification §4.2; Cluster API's provider contract; medik8s'
//! remediator contract.

use dogwatch_api::{power_remediation, power_remediation_template};
use dogwatch_testbed::ControlPlane;

use crate::support::PATIENCE;

const SHIPPED: &str = include_str!("../../../../../deploy/remediation/health-checks.yaml");

/// From the projects' own manifests: an aggregated role, and its subjects.
const THEIRS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: capi-aggregated-manager }
aggregationRule:
  clusterRoleSelectors: [{ matchLabels: { cluster.x-k8s.io/aggregate-to-manager: "true" } }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: capi-aggregated-manager }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: capi-aggregated-manager }
subjects: [{ kind: User, apiGroup: rbac.authorization.k8s.io, name: cluster-api }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: ext-remediation }
aggregationRule:
  clusterRoleSelectors: [{ matchLabels: { rbac.ext-remediation/aggregate-to-ext-remediation: "true" } }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: ext-remediation }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ext-remediation }
subjects: [{ kind: User, apiGroup: rbac.authorization.k8s.io, name: medik8s }]
"#;

/// Account, verb and resource that the contracts require.
const MAY: [(&str, &str, &str); 15] = [
    ("cluster-api", "get", "powerremediationtemplates"),
    ("cluster-api", "get", "powerremediations"),
    ("cluster-api", "list", "powerremediations"),
    ("cluster-api", "watch", "powerremediations"),
    ("cluster-api", "create", "powerremediations"),
    ("cluster-api", "patch", "powerremediations"),
    ("cluster-api", "delete", "powerremediations"),
    ("medik8s", "get", "powerremediationtemplates"),
    ("medik8s", "get", "powerremediations"),
    ("medik8s", "list", "powerremediations"),
    ("medik8s", "watch", "powerremediations"),
    ("medik8s", "create", "powerremediations"),
    ("medik8s", "update", "powerremediations"),
    ("medik8s", "patch", "powerremediations"),
    ("medik8s", "delete", "powerremediations"),
];

/// Rights that the accounts must not have.
const MAY_NOT: [(&str, &str, &str); 4] = [
    ("cluster-api", "patch", "powerremediations/status"),
    ("medik8s", "patch", "powerremediations/status"),
    ("medik8s", "patch", "powerremediationtemplates"),
    ("cluster-api", "delete", "nodes"),
];

#[tokio::test]
async fn health_checks_of_cluster_api_and_medik8s_may_make_requests_by_their_own_roles() {
    let builder = ControlPlane::builder().with_controllers(["clusterrole-aggregation-controller"]);
    let plane = builder.start().await;
    let plane = plane.expect("the real control plane starts");
    let kinds = [
        power_remediation::remediation_crd(),
        power_remediation_template::template_crd(),
    ];
    for manifest in kinds
        .map(|kind| kind.to_string())
        .iter()
        .map(String::as_str)
    {
        let apply = ["apply", "--server-side", "-f", "-"];
        let applied = plane.run_kubectl(&apply, manifest).await;
        applied.expect("a kind that is accepted");
    }
    for manifest in [THEIRS, SHIPPED] {
        let applied = plane.run_kubectl(&["apply", "-f", "-"], manifest).await;
        applied.expect("roles that are accepted");
    }
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for (who, verb, what) in MAY {
        while !may(&plane, who, verb, what).await {
            let now = tokio::time::Instant::now();
            assert!(now < deadline, "{who} may not {verb} {what}");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    }
    for (who, verb, what) in MAY_NOT {
        assert!(
            !may(&plane, who, verb, what).await,
            "{who} may {verb} {what}"
        );
    }
}

async fn may(plane: &ControlPlane, who: &str, verb: &str, what: &str) -> bool {
    let who = format!("--as={who}");
    let (what, below) = what.split_once('/').unwrap_or((what, ""));
    let below = format!("--subresource={below}");
    let asked = ["auth", "can-i", verb, what, &below, &who];
    // "no" is an exit code other than 0.
    plane.run_kubectl(&asked, "").await.is_ok()
}
