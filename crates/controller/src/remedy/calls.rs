//! [`Hands`] over the API server.

use dogwatch_core::Now;
use dogwatch_core::condition::Write;
use dogwatch_core::decision::Event;
use dogwatch_core::name::{GroupName, NodeName};
use dogwatch_core::policy::{self, Policies};
use dogwatch_core::power::Host;
use dogwatch_core::reboot::NodeSeen;
use dogwatch_core::remedy::{
    Action, Case, Look, Machine, PowerRequest, Release, RemedyLease, Subject,
};
use dogwatch_k8s::heal::HealClient;
use dogwatch_k8s::lock::{Freed, RemedyHeld, RemedyLease as Leases, Taken};
use dogwatch_k8s::remedy::{About, Released, RemedyClient, WriteError};
use dogwatch_k8s::{Error, Kind};
use dogwatch_process::clock::Clock;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::hands::{Answer, Found, Hands, Trouble};
use crate::Context;
use crate::cluster::Cluster;

/// The calls of one process.
pub(super) struct Calls {
    client: RemedyClient,
    leases: Leases,
    /// Writes conditions of Nodes as the healer does.
    nodes: HealClient,
    cluster: Cluster,
    clock: Clock,
}

impl Calls {
    pub(super) fn new(context: &Context) -> Self {
        let client = &context.client;
        Self {
            client: RemedyClient::new(client.clone(), context.namespace.clone()),
            leases: Leases::new(client.clone(), &context.namespace),
            nodes: HealClient::new(client.clone(), &context.namespace),
            cluster: context.cluster.clone(),
            clock: context.clock.clone(),
        }
    }

    async fn perform(
        &self,
        action: &Action,
        conditions: &[Write],
        now: Now,
    ) -> Result<Answer, Trouble> {
        let client = &self.client;
        Ok(match action {
            Action::TakeLease {
                node,
                control_plane,
                subject,
            } => self.take(node, *control_plane, subject, now).await?,
            Action::FreeLease { node } => self.free(node).await?,
            Action::MarkNode { node, subject } => {
                node_is(client.mark_node(node, subject, now.wall).await?)
            }
            Action::UnmarkNode { node } => node_is(client.unmark_node(node).await?),
            Action::AddKey { host, key, record } => {
                host_is(client.add_key(host, key, record).await?)
            }
            Action::RemoveKey { host, key, record } => {
                host_is(client.remove_key(host, key, record.as_ref()).await?)
            }
            Action::WriteRecord { host, record } => {
                host_is(client.write_record(host, record).await?)
            }
            Action::KeepBackup { host, backup, over } => {
                let kept = client.keep_backup(host, backup, over.as_deref()).await?;
                Answer::Backup(kept.into())
            }
            Action::DropBackup { stored } => {
                client.drop_backup(stored).await?;
                Answer::BackupGone {
                    host: stored.host_uid.clone(),
                    uid: stored.uid.clone(),
                }
            }
            Action::RemoveOldBackup { host } => host_is(client.remove_old_backup(host).await?),
            Action::Release(release) => self.release(release).await?,
            Action::RemoveMachineNeed { machine } => {
                machine_is(client.remove_machine_need(machine).await?)
            }
            Action::RemoveNodeNeed { node } => node_is(client.remove_node_need(node).await?),
            Action::Restore { node, backup } => node_is(client.restore(node, backup).await?),
            Action::Untaint { node, tainted_at } => {
                node_is(client.untaint(node, *tainted_at).await?)
            }
            Action::WriteStatus { request, status } => {
                request_is(client.write_status(request, status, conditions).await?)
            }
            Action::AddFinalizer { request } => request_is(client.add_finalizer(request).await?),
            Action::RemoveFinalizer { request } => {
                let left = client.remove_finalizer(request).await?;
                left.map_or_else(|| gone(request), request_is)
            }
            Action::HandBack { machine, message } => {
                machine_is(client.hand_back(machine, message, now.wall).await?)
            }
        })
    }

    async fn release(&self, release: &Release) -> Result<Answer, Trouble> {
        let now = || self.clock.now().mono;
        Ok(match self.client.release(release, now).await? {
            Released::Gone => Answer::NodeGone {
                name: release.cleared.node().clone(),
                uid: release.cleared.node_uid().to_owned(),
            },
            Released::Tainted(node) => Answer::Node(node),
        })
    }

    async fn take(
        &self,
        node: &NodeName,
        control_plane: bool,
        subject: &Subject,
        now: Now,
    ) -> Result<Answer, Trouble> {
        let subject = subject.to_string();
        let group = self.group_of(node);
        let take = self
            .leases
            .take(node, control_plane, group, &subject, now.wall);
        match take.await? {
            Taken::Held(held) => Ok(Answer::Lease {
                node: node.clone(),
                lease: Some(lease(&held)),
            }),
            Taken::Refused { by } => Err(Trouble::Refused(by)),
        }
    }

    /// The group that the Node belongs to as things are; not known where Node or policies cannot be seen.
    fn group_of(&self, node: &NodeName) -> Option<GroupName> {
        let view = self.cluster.view();
        let seen = view.nodes.get(node).filter(|_| view.synced)?;
        match &view.policies {
            known @ Policies::Known(_) => Some(policy::group(known, &seen.labels)),
            Policies::NotYet | Policies::Unreadable { .. } => None,
        }
    }

    async fn free(&self, node: &NodeName) -> Result<Answer, Trouble> {
        let view = self.cluster.view();
        let mut held = view.leases.values().filter_map(|it| RemedyHeld::of(it));
        let free = Answer::Lease {
            node: node.clone(),
            lease: None,
        };
        let Some(held) = held.find(|held| held.node == *node) else {
            return Ok(free);
        };
        match self.leases.free(&held).await? {
            Freed::Done => Ok(free),
            Freed::Changed => Err(Trouble::Changed(format!("lease {}", held.lease))),
        }
    }

    async fn find(&self, case: &Case, look: &Look) -> Result<Found, Trouble> {
        let asked = self.clock.now().mono;
        Ok(match look {
            Look::Beat { node, .. } => Found::Beat(asked, self.client.beat(node).await?),
            Look::Fresh { .. } => {
                let fresh = Box::pin(self.client.fresh(case, asked));
                Found::Fresh(fresh.await?.into())
            }
            Look::Leftovers { node, .. } => {
                Found::Leftovers(self.client.leftovers(node, asked).await?)
            }
        })
    }

    async fn write(&self, case: &Case, conditions: &[Write], now: Now) -> Result<Answer, Trouble> {
        match (&case.subject, &case.machine, &case.node, &case.request) {
            (Subject::Machine(_), Some(machine), _, _) => {
                let write = self.client.write_machine_conditions(machine, conditions);
                Ok(machine_is(write.await?))
            }
            (Subject::Node(_), _, Some(node), _) => {
                let written = self.nodes.patch_conditions(node, conditions, now).await?;
                Ok(node_is(written))
            }
            (Subject::Request(_), _, _, Some(request)) => {
                let status = &request.status;
                let write = self.client.write_status(request, status, conditions);
                Ok(request_is(write.await?))
            }
            // Hosts' conditions are the power side's; what is gone has none.
            (
                Subject::Machine(_) | Subject::Node(_) | Subject::Request(_) | Subject::Host(_),
                _,
                _,
                _,
            ) => Ok(Answer::Nothing),
        }
    }

    /// About what the case is about, and about its Node: whoever looks at a Node that goes wants to know.
    async fn tell_of(&self, case: &Case, event: &Event, now: Now) -> Result<(), Trouble> {
        let host = case.host.as_ref().ok();
        let own = match &case.subject {
            Subject::Machine(_) => case.machine.as_deref().map(About::Machine),
            Subject::Request(_) => case.request.as_deref().map(About::Request),
            Subject::Host(_) => host.map(|host| About::Host(host)),
            Subject::Node(_) => None,
        };
        let node = case.node.as_deref().map(About::Node);
        let own = own.or(host
            .filter(|_| node.is_none())
            .map(|host| About::Host(host)));
        let since = case.record.as_ref().and_then(|record| record.steps.first());
        let episode = since.map_or_else(String::new, |step| step.at.to_string());
        for about in own.into_iter().chain(node) {
            self.client.say(about, &episode, event, now).await?;
        }
        Ok(())
    }
}

impl Hands for Calls {
    fn act<'a>(
        &'a self,
        action: &'a Action,
        conditions: &'a [Write],
        now: Now,
    ) -> BoxFuture<'a, Result<Answer, Trouble>> {
        self.perform(action, conditions, now).boxed()
    }

    fn look<'a>(&'a self, case: &'a Case, look: &'a Look) -> BoxFuture<'a, Result<Found, Trouble>> {
        self.find(case, look).boxed()
    }

    fn tell<'a>(
        &'a self,
        case: &'a Case,
        conditions: &'a [Write],
        now: Now,
    ) -> BoxFuture<'a, Result<Answer, Trouble>> {
        self.write(case, conditions, now).boxed()
    }

    fn say<'a>(
        &'a self,
        case: &'a Case,
        event: &'a Event,
        now: Now,
    ) -> BoxFuture<'a, Result<(), Trouble>> {
        self.tell_of(case, event, now).boxed()
    }
}

fn node_is(node: NodeSeen) -> Answer {
    Answer::Node(node.into())
}

fn host_is(host: Host) -> Answer {
    Answer::Host(host.into())
}

fn request_is(request: PowerRequest) -> Answer {
    Answer::Request(request.into())
}

fn gone(request: &PowerRequest) -> Answer {
    Answer::RequestGone {
        name: request.name.clone(),
        uid: request.uid.clone(),
    }
}

fn machine_is(machine: Machine) -> Answer {
    Answer::Machine(machine.into())
}

/// What the core sees of one that is held.
pub(super) fn lease(held: &RemedyHeld) -> RemedyLease {
    RemedyLease {
        subject: held.subject.clone(),
        resource_version: held.resource_version.clone(),
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let words = error.in_words();
        match error.kind() {
            Kind::Conflict | Kind::NotFound | Kind::AlreadyExists => Trouble::Changed(words),
            Kind::Forbidden | Kind::Refused => Trouble::Refused(words),
            Kind::Gone | Kind::Throttled { .. } | Kind::Transient => Trouble::Failed(words),
        }
    }
}

impl From<WriteError> for Trouble {
    fn from(error: WriteError) -> Self {
        let words = error.in_words();
        match error {
            WriteError::Changed(_) | WriteError::Expired(_) => Trouble::Changed(words),
            WriteError::Foreign(_)
            | WriteError::Kept { .. }
            | WriteError::Dropped(_)
            | WriteError::Forbidden { .. } => Trouble::Refused(words),
            WriteError::Api(error) => error.into(),
        }
    }
}
