//! What a test may choose about its control plane.

use crate::{ControlPlane, Error, identity::User};

/// The controllers that a drain can meet: budgets' status, pods' owners, deletion of what is owned.
///
/// DaemonSet pods need a scheduler to be bound; there is none, so a test binds them or makes its pods bound.
pub const WORKLOAD_CONTROLLERS: [&str; 7] = [
    "disruption-controller",
    "daemonset-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "replicaset-controller",
    "statefulset-controller",
];

/// A control plane before it is started: [`ControlPlane::builder`].
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) controllers: Vec<String>,
    pub(crate) users: Vec<User>,
    pub(crate) event_ttl: String,
    pub(crate) api_server_flags: Vec<String>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            controllers: WORKLOAD_CONTROLLERS.map(str::to_owned).to_vec(),
            users: Vec::new(),
            event_ttl: "1h".to_owned(),
            api_server_flags: Vec::new(),
        }
    }
}

impl Builder {
    /// Exactly these controllers of kube-controller-manager, by its own names; with none it is not started at all.
    #[must_use]
    pub fn controllers<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.controllers = names.into_iter().map(str::to_owned).collect();
        self
    }

    /// One more user, known by a fixed token; a kubelet is `system:node:NAME` in group `system:nodes`.
    #[must_use]
    pub fn user(mut self, token: &str, name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self.users.push(User {
            token: token.to_owned(),
            name: name.to_owned(),
            groups,
        });
        self
    }

    /// How long Events are kept, as a Go duration (`1h` where nothing is said).
    #[must_use]
    pub fn event_ttl(mut self, duration: &str) -> Self {
        duration.clone_into(&mut self.event_ttl);
        self
    }

    /// One more flag of kube-apiserver, as `--name=value`.
    #[must_use]
    pub fn api_server_flag(mut self, flag: &str) -> Self {
        self.api_server_flags.push(flag.to_owned());
        self
    }

    /// Starts it; ready when this returns.
    pub async fn start(self) -> Result<ControlPlane, Error> {
        ControlPlane::start_with(self).await
    }
}
