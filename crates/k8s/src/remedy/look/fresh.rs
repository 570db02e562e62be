//! Signs of life, and everything that a release rests on, each by a GET.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::annotation::EXTERNAL_REMEDIATION;
use dogwatch_core::name::NodeName;
use dogwatch_core::power::Host;
use dogwatch_core::remedy::{Beat, Case, Fresh, KeyOwner, MachineName, ObjectName, Subject};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};

use crate::error::{Error, ask};
use crate::host::convert;
use crate::node::node_seen;
use crate::remedy::client::RemedyClient;
use crate::remedy::request::request;
use crate::remedy::restore;

/// Where kubelets renew a Lease each, named as their Node. Source: Kubernetes.
pub(crate) const NODE_LEASES: &str = "kube-node-lease";

impl RemedyClient {
    /// A Node's sign of life.
    ///
    /// # Errors
    /// When it is not known: that there is neither Node nor Lease is an answer.
    pub async fn beat(&self, node: &NodeName) -> Result<Beat, Error> {
        let (lease, node) = futures::try_join!(self.lease(node), self.node(node))?;
        Ok(beat(lease.as_ref(), node.as_ref()))
    }

    /// Reads afresh what the case rests on. `taken` is a moment before this was called.
    ///
    /// # Errors
    /// When one of them is not known: with less than all of it nothing is concluded.
    pub async fn fresh(&self, case: &Case, taken: Duration) -> Result<Fresh, Error> {
        let (host, node, lease, marked) = futures::try_join!(
            Box::pin(self.fresh_host(case)),
            Box::pin(self.fresh_node(case)),
            Box::pin(self.fresh_lease(case)),
            Box::pin(self.marked(case)),
        )?;
        let needs = match marked {
            Some(marked) => marked,
            None => node
                .as_ref()
                .is_some_and(|node| node_needs(node, &case.key)),
        };
        Ok(Fresh {
            taken,
            host: host.map(Arc::new),
            backup: node.as_ref().map(restore::backup),
            beat: beat(lease.as_ref(), node.as_ref()),
            // The API server accepts no name that we would not.
            node: node.and_then(|node| node_seen(&node).ok()).map(Arc::new),
            needs,
        })
    }

    async fn fresh_host(&self, case: &Case) -> Result<Option<Host>, Error> {
        let Ok(host) = &case.host else {
            return Ok(None);
        };
        let hosts = self.hosts(&host.name.namespace);
        let object = ask(hosts.get_opt(&host.name.name)).await?;
        Ok(object.as_ref().map(convert))
    }

    async fn fresh_node(&self, case: &Case) -> Result<Option<Node>, Error> {
        match &case.node_name {
            Some(name) => self.node(name).await,
            None => Ok(None),
        }
    }

    async fn fresh_lease(&self, case: &Case) -> Result<Option<Lease>, Error> {
        match &case.node_name {
            Some(name) => self.lease(name).await,
            None => Ok(None),
        }
    }

    /// Whether the need stands; `None`: it would stand on the Node.
    async fn marked(&self, case: &Case) -> Result<Option<bool>, Error> {
        Ok(match &case.subject {
            Subject::Machine(name) => Some(self.machine_needs(name, &case.key).await?),
            Subject::Request(name) => Some(self.request_needs(name, &case.key).await?),
            Subject::Node(_) => None,
            // Nobody asks for anything.
            Subject::Host(_) => Some(false),
        })
    }

    async fn machine_needs(&self, name: &MachineName, key: &KeyOwner) -> Result<bool, Error> {
        let object = self.machine(name.api, &name.object).await?;
        Ok(object.is_some_and(|object| {
            let is_it = matches!(key, KeyOwner::Machine(uid) if object.uid().as_ref() == Some(uid));
            is_it && object.annotations().contains_key(EXTERNAL_REMEDIATION)
        }))
    }

    /// A request stands as long as it is neither deleted nor given up by whoever made it.
    async fn request_needs(&self, name: &ObjectName, key: &KeyOwner) -> Result<bool, Error> {
        let requests = self.requests(&name.namespace);
        let object = ask(requests.get_opt(&name.name)).await?;
        Ok(object.as_ref().map(request).is_some_and(|request| {
            let is_it = matches!(key, KeyOwner::Request(uid) if *uid == request.uid);
            is_it && !request.deleting && !request.timed_out
        }))
    }

    async fn node(&self, name: &NodeName) -> Result<Option<Node>, Error> {
        ask(self.nodes().get_opt(name.as_str())).await
    }

    async fn lease(&self, node: &NodeName) -> Result<Option<Lease>, Error> {
        ask(self.node_leases().get_opt(node.as_str())).await
    }

    pub(in crate::remedy) fn node_leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), NODE_LEASES)
    }
}

fn node_needs(node: &Node, key: &KeyOwner) -> bool {
    let is_it = matches!(key, KeyOwner::Node(uid) if node.uid().as_ref() == Some(uid));
    is_it && node.annotations().contains_key(EXTERNAL_REMEDIATION)
}

/// What these two say of the Node's life.
pub(in crate::remedy) fn beat(lease: Option<&Lease>, node: Option<&Node>) -> Beat {
    let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref());
    let posted = node.and_then(|node| {
        let mut conditions = node.status.as_ref()?.conditions.iter().flatten();
        let ready = conditions.find(|condition| condition.type_ == "Ready")?;
        ready.last_heartbeat_time.as_ref().map(|time| time.0)
    });
    let lasts = lease.and_then(|lease| lease.spec.as_ref()?.lease_duration_seconds);
    let lasts = lasts.and_then(|seconds| u64::try_from(seconds).ok());
    Beat {
        node_uid: node.and_then(Node::uid),
        renewed: renewed.map(|time| time.0),
        posted,
        lease_lasts: lasts.map(Duration::from_secs),
    }
}
