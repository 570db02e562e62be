//! The Lease that a remediation holds for its node: `dogwatch-remedy-NODE`. Source: specification §2.2.
//!
//! It is taken without waiting, made free and not deleted (but where a quota leaves no room), and written as a slot is: made free by a
//! plain create, taken by server-side apply with UID and resourceVersion, never forced. Every count of a
//! budget sees it (`super::count`).

use std::collections::BTreeSet;

use dogwatch_api::{annotation, label, lease as lease_name};
use dogwatch_core::handshake::{RemedyRecord, control_plane_taken};
use dogwatch_core::lock::digest;
use dogwatch_core::name::{GroupName, NodeName};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use kube::api::{
    DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{Api, Client, ResourceExt as _};

use super::lease::{self, Incarnation};
use super::{LockClient, count, trim};
use crate::cluster::LeaseObject;
use crate::error::{Error, Kind, ask};
use crate::manager::patched_by;

/// How often one call tries again because the Lease was written meanwhile.
const TRIES: u32 = 5;

/// How many Leases that nobody holds are deleted at once where a quota lets no more be made.
const ROOM: usize = 10;

/// The remediator's hand on its Leases.
#[derive(Clone)]
pub struct RemedyLease {
    leases: Api<Lease>,
    nodes: Api<Node>,
}

/// How taking one ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is held for this node.
    Held(RemedyHeld),
    /// Not now; nothing is held.
    Refused {
        /// By whom, in words.
        by: String,
    },
}

/// How freeing one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freed {
    /// It is free.
    Done,
    /// It has changed since it was seen, and was left as it is: look again.
    Changed,
}

/// A Lease that is held, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemedyHeld {
    /// For which node.
    pub node: NodeName,
    /// Whose remediation it is; `None` if its record cannot be read.
    pub subject: Option<String>,
    /// The Lease's name.
    pub lease: String,
    /// Its UID.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    record: Option<RemedyRecord>,
}

impl RemedyHeld {
    /// What the cluster's one view shows. `None`: it is free, or no remediation's.
    pub fn of(lease: &LeaseObject) -> Option<Self> {
        let record = lease.annotations.get(annotation::HOLDER);
        let record = record.and_then(|text| serde_json::from_str(text).ok());
        let (uid, version) = (lease.uid.clone(), lease.resource_version.clone());
        seen(&lease.name, lease.holder.as_deref()?, uid, version, record)
    }

    fn version(&self) -> Incarnation<'_> {
        Incarnation {
            name: &self.lease,
            uid: &self.uid,
            resource_version: &self.resource_version,
        }
    }
}

impl RemedyLease {
    /// A hand on the Leases in Dogwatch's `namespace`.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), namespace),
            nodes: Api::all(client),
        }
    }

    /// Takes the node's Lease, without waiting; done already is done. `group` is the one that the Node
    /// belongs to now, `None` where that cannot be seen: what was recorded before stays then. Another subject's of the same
    /// node is taken over: whoever was written there before finds it changed when it frees.
    ///
    /// A control-plane node is refused while another one is out on Dogwatch's account
    /// ([`control_plane_taken`] says why at most one goes ahead). Who is refused holds nothing, or two
    /// that wait for each other would wait for ever.
    ///
    /// # Errors
    /// Whatever the API server says, and no answer: then it may be held, and the same call again tells.
    pub async fn take(
        &self,
        node: &NodeName,
        control_plane: bool,
        group: Option<GroupName>,
        subject: &str,
        now: Timestamp,
    ) -> Result<Taken, Error> {
        let wanted = RemedyRecord {
            node: node.clone(),
            subject: subject.to_owned(),
            control_plane,
            group,
            since: now,
            alone: false,
        };
        let held = match self.hold(&wanted).await? {
            Taken::Held(held) => held,
            refused @ Taken::Refused { .. } => return Ok(refused),
        };
        let record = held.record.as_ref();
        if !control_plane || record.is_some_and(|record| record.alone) {
            return Ok(Taken::Held(held));
        }
        match self.control_plane_taken(node).await? {
            Some(by) => {
                self.free(&held).await?;
                Ok(Taken::Refused { by })
            }
            None => self.found_alone(held, wanted).await,
        }
    }

    /// Makes it free, on the condition that it is as it was seen.
    ///
    /// # Errors
    /// Whatever the API server says, and no answer: then the same call again tells.
    pub async fn free(&self, held: &RemedyHeld) -> Result<Freed, Error> {
        match self.write_free(held.version()).await {
            Ok(()) => Ok(Freed::Done),
            Err(error) => match error.kind() {
                Kind::Conflict | Kind::NotFound => Ok(Freed::Changed),
                Kind::AlreadyExists
                | Kind::Gone
                | Kind::Forbidden
                | Kind::Throttled { .. }
                | Kind::Refused
                | Kind::Transient => Err(error),
            },
        }
    }

    /// Those that are held, read afresh.
    ///
    /// # Errors
    /// When there is no answer to go by.
    pub async fn held(&self) -> Result<Vec<RemedyHeld>, Error> {
        let leases = trim::list(&self.leases, ListParams::default()).await?;
        let leases = leases.iter().map(LeaseObject::of);
        Ok(leases.filter_map(|lease| RemedyHeld::of(&lease)).collect())
    }

    /// Held for the wanted node and subject, whoever wrote it.
    async fn hold(&self, wanted: &RemedyRecord) -> Result<Taken, Error> {
        let name = name_of(&wanted.node);
        let mut tries = 0;
        loop {
            tries += 1;
            let lease = self.there(&name).await?;
            let outcome = match Self::standing(&lease, wanted) {
                Standing::Done(held) => return Ok(Taken::Held(held)),
                Standing::Foreign { by } => return Ok(Taken::Refused { by }),
                Standing::Leftover => self.write_free(version(&lease)?).await.map(|()| None),
                Standing::Free => self.apply(version(&lease)?, wanted).await.map(Some),
                Standing::OfAnother(record) => {
                    self.apply(version(&lease)?, &record).await.map(Some)
                }
            };
            match outcome {
                Ok(Some(held)) => return Ok(Taken::Held(held)),
                // It changed while it was looked at.
                Err(error) if error.kind() == Kind::Conflict && tries < TRIES => {}
                Err(error) => return Err(error),
                Ok(None) => {}
            }
        }
    }

    /// The Lease; made free where there is none.
    async fn there(&self, name: &str) -> Result<Lease, Error> {
        if let Some(lease) = ask(self.leases.get_opt(name)).await? {
            return Ok(lease);
        }
        let free = Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec::default()),
        };
        match self.create(&free).await {
            Err(error) if error.is_over_quota() && self.make_room().await? => {
                self.create(&free).await
            }
            made => made,
        }
    }

    async fn create(&self, free: &Lease) -> Result<Lease, Error> {
        match ask(self.leases.create(&PostParams::default(), free)).await {
            Err(error) if error.kind() == Kind::AlreadyExists => {
                ask(self.leases.get(&free.name_any())).await
            }
            made => made,
        }
    }

    /// Deletes some Leases that nobody holds, as they were seen: those of nodes that were remediated once,
    /// then slots. A quota keeps others from filling the namespace; it must not keep a machine from being
    /// fenced. A bid for one of them names its UID and fails; who waits makes the slots it needs anew.
    async fn make_room(&self) -> Result<bool, Error> {
        let leases = trim::list(&self.leases, ListParams::default()).await?;
        let ours = |lease: &&Lease| lease.name_any().starts_with(lease_name::PREFIX);
        let free = |lease: &&Lease| lease::holder(lease).is_none();
        let mut free: Vec<&Lease> = leases.iter().filter(ours).filter(free).collect();
        free.sort_by_key(|lease| !lease.name_any().starts_with(lease_name::REMEDY_PREFIX));
        let mut is_room = false;
        for lease in free.into_iter().take(ROOM) {
            let params = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: lease.uid(),
                    resource_version: lease.resource_version(),
                }),
                ..DeleteParams::default()
            };
            match ask(self.leases.delete(&lease.name_any(), &params)).await {
                Ok(_) => is_room = true,
                Err(error) if matches!(error.kind(), Kind::Conflict | Kind::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(is_room)
    }

    fn standing(lease: &Lease, wanted: &RemedyRecord) -> Standing {
        let holder = lease::holder(lease);
        let Some(holder) = holder else {
            let is_clean = !lease::has_leftovers(lease);
            return if is_clean {
                Standing::Free
            } else {
                Standing::Leftover
            };
        };
        let held = RemedyHeld::of(&LeaseObject::of(lease));
        let Some(held) = held.filter(|held| held.node == wanted.node) else {
            let by = format!("{holder} holds Lease {}", lease.name_any());
            return Standing::Foreign { by };
        };
        let Some(record) = &held.record else {
            return Standing::OfAnother(wanted.clone());
        };
        let ours = RemedyRecord {
            subject: wanted.subject.clone(),
            control_plane: record.control_plane || wanted.control_plane,
            group: wanted.group.clone().or_else(|| record.group.clone()),
            ..record.clone()
        };
        if ours == *record {
            return Standing::Done(held);
        }
        Standing::OfAnother(ours)
    }

    /// Read after our own Lease was taken: two quorum reads.
    async fn control_plane_taken(&self, node: &NodeName) -> Result<Option<String>, Error> {
        let role = ListParams::default().labels(label::CONTROL_PLANE);
        let nodes = ask(self.nodes.list_metadata(&role)).await?;
        let members: BTreeSet<NodeName> = nodes
            .items
            .iter()
            .filter_map(|node| NodeName::new(node.name_any()).ok())
            .collect();
        let leases = trim::list(&self.leases, ListParams::default()).await?;
        let group = GroupName::control_plane();
        let held = leases.iter();
        let held: Vec<_> = held
            .filter_map(|lease| count::held(lease, &group))
            .collect();
        Ok(control_plane_taken(&held, &members, node))
    }

    async fn found_alone(&self, held: RemedyHeld, wanted: RemedyRecord) -> Result<Taken, Error> {
        let record = RemedyRecord {
            alone: true,
            ..held.record.clone().unwrap_or(wanted)
        };
        // What fails here is found held and not alone by the next call, which looks again.
        let held = self.apply(held.version(), &record).await?;
        Ok(Taken::Held(held))
    }

    async fn apply(
        &self,
        lease: Incarnation<'_>,
        record: &RemedyRecord,
    ) -> Result<RemedyHeld, Error> {
        let text =
            serde_json::to_string(record).expect("a record has only names, flags and a time");
        let holder = lease_name::REMEDY_HOLDER;
        let body = lease::held_body(lease, holder, &text, record.since);
        let params = PatchParams::apply(holder);
        let patch = Patch::Apply(&body);
        let written = ask(self.leases.patch(lease.name, &params, &patch)).await?;
        RemedyHeld::of(&LeaseObject::of(&written)).ok_or_else(|| unreadable(lease.name))
    }

    async fn write_free(&self, lease: Incarnation<'_>) -> Result<(), Error> {
        let params = patched_by(lease_name::REMEDY_HOLDER);
        let body = Patch::Merge(lease::free_body(lease, &[], 0));
        ask(self.leases.patch(lease.name, &params, &body)).await?;
        Ok(())
    }
}

impl LockClient {
    /// Whether a remediation holds the Lease of this node, read afresh.
    ///
    /// # Errors
    /// When there is no answer to go by.
    pub async fn is_remediated(&self, node: &NodeName) -> Result<bool, Error> {
        let lease = ask(self.leases.get_opt(&name_of(node))).await?;
        Ok(lease.is_some_and(|lease| lease::holder(&lease).is_some()))
    }
}

/// How a Lease stands to a remediation that wants it.
enum Standing {
    Free,
    /// Free, but fields of an older holder would refuse us.
    Leftover,
    Done(RemedyHeld),
    /// Another remediation's of the same node; what it is to say.
    OfAnother(RemedyRecord),
    Foreign {
        by: String,
    },
}

/// The Lease of a node; its name is hashed where it would be too long.
fn name_of(node: &NodeName) -> String {
    let plain = format!("{}{node}", lease_name::REMEDY_PREFIX);
    if plain.len() <= lease_name::LONGEST_NAME {
        return plain;
    }
    let digest = digest(node.as_str());
    format!("{}sha256-{digest}", lease_name::REMEDY_PREFIX)
}

/// The record on a remediation's Lease, if this is one and it can be read.
pub(super) fn record(lease: &Lease) -> Option<RemedyRecord> {
    let ours = lease.name_any().starts_with(lease_name::REMEDY_PREFIX);
    let text = lease::text(lease, annotation::HOLDER).filter(|_| ours)?;
    serde_json::from_str(text).ok()
}

fn seen(
    lease: &str,
    holder: &str,
    uid: String,
    resource_version: String,
    record: Option<RemedyRecord>,
) -> Option<RemedyHeld> {
    let in_name = lease.strip_prefix(lease_name::REMEDY_PREFIX)?;
    let node = record.as_ref().map(|record| record.node.clone());
    let node = node.or_else(|| NodeName::new(in_name).ok());
    (holder == lease_name::REMEDY_HOLDER).then_some(())?;
    Some(RemedyHeld {
        node: node?,
        subject: record.as_ref().map(|record| record.subject.clone()),
        lease: lease.to_owned(),
        uid,
        resource_version,
        record,
    })
}

fn version(lease: &Lease) -> Result<Incarnation<'_>, Error> {
    let metadata = &lease.metadata;
    let name = metadata.name.as_deref();
    let version = || {
        Some(Incarnation {
            name: name?,
            uid: metadata.uid.as_deref()?,
            resource_version: metadata.resource_version.as_deref()?,
        })
    };
    version().ok_or_else(|| unreadable(name.unwrap_or_default()))
}

fn unreadable(name: &str) -> Error {
    let text = format!("{name} was answered without its name, UID or version");
    Error::Unreadable(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::lock::HolderId;
    use serde_json::json;

    fn node(name: &str) -> NodeName {
        NodeName::new(name).unwrap()
    }

    #[test]
    fn a_name_too_long_for_a_lease_is_hashed_and_the_node_is_counted_all_the_same() {
        assert_eq!(name_of(&node("worker-0")), "dogwatch-remedy-worker-0");
        let longest = "n".repeat(lease_name::LONGEST_NAME - lease_name::REMEDY_PREFIX.len());
        assert_eq!(name_of(&node(&longest)).len(), lease_name::LONGEST_NAME);
        let long = node(&"n".repeat(253));
        let name = name_of(&long);
        assert!(name.len() < 100 && name.starts_with("dogwatch-remedy-sha256-"));
        // Even where its record is lost, for a holder's name is hashed in the same way.
        let lease: Lease = serde_json::from_value(json!({
            "metadata": { "name": name, "uid": "u", "resourceVersion": "1" },
            "spec": { "holderIdentity": "remedy" },
        }))
        .unwrap();
        let held = count::held(&lease, &GroupName::default_group()).unwrap();
        assert_eq!(held.subject(), HolderId::node(&long));
        assert!(held.fences_control_plane(), "nobody can tell");
    }
}
