//! What the healer may do on the real API server is what `deploy` ships, and what it does is that.
//! Source: specification §6.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use dogwatch_testbed::{AuditEntry, rights_in, shared};
use tokio::sync::OnceCell;
use tokio::time::Instant;

const ROLES: &str = include_str!("../../../../deploy/base/controller-rbac.yaml");
const POLICY_RIGHTS: &str = include_str!("../../../../deploy/policies/rbac.yaml");
const POLICIES: [&str; 3] = [
    include_str!("../../../../deploy/policies/coordinators.yaml"),
    include_str!("../../../../deploy/policies/locks.yaml"),
    include_str!("../../../../deploy/policies/requests.yaml"),
];

/// Refuses one ConfigMap. Made last, it is in force last.
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

/// What all cases so far have used, and how many they were.
static USED: Mutex<(BTreeSet<String>, usize)> = Mutex::new((BTreeSet::new(), 0));

/// The controller of a Dogwatch in this namespace, with the shipped rights there.
pub async fn controller(namespace: &str) -> kube::Client {
    static IN_FORCE: OnceCell<()> = OnceCell::const_new();
    IN_FORCE.get_or_init(install_policies).await;
    let plane = shared().await;
    let label = [
        "label",
        "namespace",
        namespace,
        "app.kubernetes.io/part-of=dogwatch",
    ];
    plane.run_kubectl(&label, "").await.unwrap();
    let here = format!("namespace: {namespace}\n");
    let rights = [ROLES, POLICY_RIGHTS].join("---\n");
    let rights = rights.replace("namespace: dogwatch\n", &here);
    let apply = ["apply", "-f", "-"];
    plane.run_kubectl(&apply, &rights).await.unwrap();
    plane.wait_until_rights_are_in_force().await.unwrap();
    let token = plane.service_account_token(namespace, "dogwatch-controller", None);
    let kubeconfig = plane.kubeconfig_for(&token.await.unwrap()).unwrap();
    crate::client_by(&kubeconfig).await
}

async fn install_policies() {
    let plane = shared().await;
    let policies = POLICIES.join("---\n").replace("[Warn, Audit]", "[Deny]");
    let manifests = format!("{policies}---\n{CANARY}");
    let apply = ["apply", "-f", "-"];
    plane.run_kubectl(&apply, &manifests).await.unwrap();
    let deadline = Instant::now() + Duration::from_mins(2);
    let create = ["create", "configmap", "canary", "--dry-run=server"];
    while plane.run_kubectl(&create, "").await.is_ok() {
        assert!(Instant::now() < deadline, "the policies are not in force");
        // Nothing tells when an API server has taken a policy in.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Nothing was refused in this case; and once all have run, no right of the healer's was unused.
pub async fn after(namespace: &str, cases: usize) {
    let user = format!("system:serviceaccount:{namespace}:dogwatch-controller");
    let mut entries = shared().await.audit().await.unwrap();
    entries.retain(|entry| entry.user == user);
    assert!(!entries.is_empty(), "{user} did nothing");
    let refused: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.code == 403).collect();
    assert!(
        refused.is_empty(),
        "what is shipped does not let it work: {refused:#?}"
    );
    let (used, all) = {
        let mut used = USED.lock().unwrap();
        used.0.extend(entries.iter().map(AuditEntry::right));
        used.1 += 1;
        (used.0.clone(), used.1 == cases)
    };
    let shipped = rights_in(&[ROLES], |why| why.contains("healer"));
    assert!(shipped.len() > 5, "{shipped:?}");
    let unused: Vec<&String> = shipped.difference(&used).collect();
    assert!(!all || unused.is_empty(), "unused: {unused:?}");
}
