//! Reads heartbeats, and everything that a release depends on, each by a GET.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::annotation::EXTERNAL_REMEDIATION;
use dogwatch_core::name::NodeName;
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::remediation::{
    FreshReads, KeyOwner, MachineName, NodeBackup, NodeHeartbeat, ObjectName, Remediation,
    RemediationSubject,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};

use crate::error::{Error, with_timeout};
use crate::host::convert_host;
use crate::node::observed_node;
use crate::readable_dates::ReadableApi as _;
use crate::remediation::client::RemediationClient;
use crate::remediation::request::parse_request;
use crate::remediation::restore;

/// The namespace in which each kubelet renews a Lease with the name of its Node. Source:
/// Kubernetes.
pub(crate) const NODE_LEASE_NAMESPACE: &str = "kube-node-lease";

impl RemediationClient {
    /// # Errors
    /// When a request fails. A missing Node or Lease is an answer, not an error.
    pub async fn read_heartbeat(&self, node: &NodeName) -> Result<NodeHeartbeat, Error> {
        let (lease, node) = futures::try_join!(self.read_node_lease(node), self.read_node(node))?;
        Ok(heartbeat_of(lease.as_ref(), node.as_ref()))
    }

    /// Reads everything that the remediation depends on. `taken`: a time before this call.
    ///
    /// # Errors
    /// When one of the reads fails: no conclusion is drawn from a part.
    pub async fn read_fresh(
        &self,
        case: &Remediation,
        taken: Duration,
    ) -> Result<FreshReads, Error> {
        let (host, stored_backup, node, lease, marked) = futures::try_join!(
            Box::pin(self.read_fresh_host(case)),
            Box::pin(self.read_stored_backup(case)),
            Box::pin(self.read_fresh_node(case)),
            Box::pin(self.read_fresh_lease(case)),
            Box::pin(self.read_need(case)),
        )?;
        let needs = match marked {
            Some(marked) => marked,
            None => node
                .as_ref()
                .is_some_and(|node| node_needs(node, &case.key)),
        };
        Ok(FreshReads {
            asked_at: taken,
            host: host.map(Arc::new),
            backup: node.as_ref().map(|node| NodeBackup {
                cluster: case.cluster.name.record_name(),
                ..restore::backup_of_node(node)
            }),
            stored_backup: stored_backup.map(Arc::new),
            heartbeat: heartbeat_of(lease.as_ref(), node.as_ref()),
            // The API server accepts no name that we would reject.
            node: node
                .and_then(|node| observed_node(&node).ok())
                .map(Arc::new),
            needs_remediation: needs,
        })
    }

    async fn read_fresh_host(&self, case: &Remediation) -> Result<Option<HostSnapshot>, Error> {
        let Ok(host) = &case.host else {
            return Ok(None);
        };
        let hosts = self.host_api(&host.name.namespace);
        let object = with_timeout(hosts.get_readable_opt(&host.name.name)).await?;
        Ok(object.as_ref().map(convert_host))
    }

    async fn read_fresh_node(&self, case: &Remediation) -> Result<Option<Node>, Error> {
        match &case.node_name {
            Some(name) => self.read_node(name).await,
            None => Ok(None),
        }
    }

    async fn read_fresh_lease(&self, case: &Remediation) -> Result<Option<Lease>, Error> {
        match &case.node_name {
            Some(name) => self.read_node_lease(name).await,
            None => Ok(None),
        }
    }

    /// Whether the remediation is still requested; `None`: the Node would show it.
    async fn read_need(&self, case: &Remediation) -> Result<Option<bool>, Error> {
        Ok(match &case.subject {
            RemediationSubject::Machine(name) => Some(self.machine_needs(name, &case.key).await?),
            RemediationSubject::Request(name) => Some(self.request_needs(name, &case.key).await?),
            RemediationSubject::Node(_) => None,
            // No object requests the remediation.
            RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_) => Some(false),
        })
    }

    async fn machine_needs(&self, name: &MachineName, key: &KeyOwner) -> Result<bool, Error> {
        let object = self.read_machine(name.api, &name.object).await?;
        Ok(object.is_some_and(|object| {
            let is_it = matches!(key, KeyOwner::Machine(uid) if object.uid().as_ref() == Some(uid));
            is_it && object.annotations().contains_key(EXTERNAL_REMEDIATION)
        }))
    }

    /// A request is valid until it is deleted, or its author gave it up.
    async fn request_needs(&self, name: &ObjectName, key: &KeyOwner) -> Result<bool, Error> {
        let requests = self.request_api(&name.namespace);
        let object = with_timeout(requests.get_readable_opt(&name.name)).await?;
        Ok(object.as_ref().map(parse_request).is_some_and(|request| {
            let is_it = matches!(key, KeyOwner::Request(uid) if *uid == request.uid);
            is_it && !request.deleting && !request.timed_out
        }))
    }

    async fn read_node(&self, name: &NodeName) -> Result<Option<Node>, Error> {
        with_timeout(self.node_api().get_readable_opt(name.as_str())).await
    }

    async fn read_node_lease(&self, node: &NodeName) -> Result<Option<Lease>, Error> {
        with_timeout(self.node_lease_api().get_readable_opt(node.as_str())).await
    }

    pub(in crate::remediation) fn node_lease_api(&self) -> Api<Lease> {
        Api::namespaced(self.node_client.clone(), NODE_LEASE_NAMESPACE)
    }
}

fn node_needs(node: &Node, key: &KeyOwner) -> bool {
    let is_it = matches!(key, KeyOwner::Node(uid) if node.uid().as_ref() == Some(uid));
    is_it && node.annotations().contains_key(EXTERNAL_REMEDIATION)
}

/// The heartbeat in the kubelet's Lease and in the Node's condition `Ready`.
pub(in crate::remediation) fn heartbeat_of(
    lease: Option<&Lease>,
    node: Option<&Node>,
) -> NodeHeartbeat {
    let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref());
    let posted = node.and_then(|node| {
        let mut conditions = node.status.as_ref()?.conditions.iter().flatten();
        let ready = conditions.find(|condition| condition.type_ == "Ready")?;
        ready.last_heartbeat_time.as_ref().map(|time| time.0)
    });
    let lasts = lease.and_then(|lease| lease.spec.as_ref()?.lease_duration_seconds);
    let lasts = lasts.and_then(|seconds| u64::try_from(seconds).ok());
    NodeHeartbeat {
        node_uid: node.and_then(Node::uid),
        renewed: renewed.map(|time| time.0),
        posted,
        lease_duration: lasts.map(Duration::from_secs),
    }
}
