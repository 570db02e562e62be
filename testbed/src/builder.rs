//! Options of a test's control plane.

use crate::{ControlPlane, Error, identity::TokenUser};

/// The controllers that a drain depends on: status of budgets, owners of pods, garbage collection.
///
/// DaemonSet pods need a scheduler to be bound. There is none, so a test binds them or creates its
/// pods with a node.
pub const WORKLOAD_CONTROLLERS: [&str; 7] = [
    "disruption-controller",
    "daemonset-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "replicaset-controller",
    "statefulset-controller",
];

/// What real kubelets and their pods need beside [`WORKLOAD_CONTROLLERS`]: their accounts and the
/// certificate to trust, volumes that are bound, Nodes that fall silent, quotas, and the end of
/// pods whose Node is gone.
const NODE_CONTROLLERS: [&str; 7] = [
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "pod-garbage-collector-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "taint-eviction-controller",
];

/// A control plane before its start: [`ControlPlane::builder`].
#[derive(Clone, Debug)]
pub struct ControlPlaneBuilder {
    pub(crate) controllers: Vec<String>,
    pub(crate) users: Vec<TokenUser>,
    pub(crate) api_server_flags: Vec<String>,
    pub(crate) serves_kubelets: bool,
}

impl Default for ControlPlaneBuilder {
    fn default() -> Self {
        Self {
            controllers: WORKLOAD_CONTROLLERS.map(str::to_owned).to_vec(),
            users: Vec::new(),
            api_server_flags: Vec::new(),
            serves_kubelets: false,
        }
    }
}

impl ControlPlaneBuilder {
    /// Runs exactly these controllers of kube-controller-manager, by their own names; with none,
    /// the program is not started.
    #[must_use]
    pub fn with_controllers<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.controllers = names.into_iter().map(str::to_owned).collect();
        self
    }

    /// Gives pods their accounts' tokens, and runs the controllers that real nodes need.
    #[must_use]
    pub fn with_real_kubelets(mut self) -> Self {
        self.controllers.extend(NODE_CONTROLLERS.map(str::to_owned));
        self.serves_kubelets = true;
        self
    }

    /// Adds a user with a fixed token; a kubelet is `system:node:NAME` in group `system:nodes`.
    #[must_use]
    pub fn with_user(mut self, token: &str, name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self.users.push(TokenUser {
            token: token.to_owned(),
            name: name.to_owned(),
            groups,
        });
        self
    }

    /// Adds a flag of kube-apiserver, as `--name=value`.
    #[must_use]
    pub fn with_api_server_flag(mut self, flag: &str) -> Self {
        self.api_server_flags.push(flag.to_owned());
        self
    }

    /// Starts the control plane; it is ready when this returns.
    pub async fn start(self) -> Result<ControlPlane, Error> {
        ControlPlane::start_with(self).await
    }
}
