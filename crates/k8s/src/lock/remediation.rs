//! The Lease that a remediation holds for its node: `dogwatch-remedy-NODE`. Source: specification
//! §2.2.
//!
//! It is taken without waiting, and freed rather than deleted (unless a quota leaves no room). It
//! is written like a slot: created free, taken by server-side apply with UID and resourceVersion,
//! never forced. Every budget count includes it (`super::count`).

use std::collections::BTreeSet;

use dogwatch_api::{annotation, label, lease as lease_name};
use dogwatch_core::lock::name_digest;
use dogwatch_core::markers::{RemediationLeaseRecord, find_control_plane_conflict};
use dogwatch_core::name::{GroupName, NodeName};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use kube::api::{
    DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{Api, Client, ResourceExt as _};

use super::lease::{self, LeaseIncarnation};
use super::{LockClient, count, trim};
use crate::cluster::LeaseObject;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::patch_params_for;
use crate::readable_dates::ReadableApi as _;

/// Tries per call when others write the Lease at the same time.
const MAX_TRIES: u32 = 5;

/// How many free Leases are deleted at once when a quota forbids more Leases.
const MAX_DELETED_FOR_ROOM: usize = 10;

/// Client for the Leases of remediations.
#[derive(Clone)]
pub struct RemediationLeaseClient {
    leases: Api<Lease>,
    nodes: Api<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseTakeOutcome {
    /// The Lease is held for this node.
    Held(RemediationLeaseHold),
    /// The Lease is held for this node, which is out of service as well as another control-plane
    /// node.
    HeldWithConflict {
        held: RemediationLeaseHold,
        /// The other node, as text.
        by: String,
    },
    /// Not possible now, and nothing is held.
    Refused {
        /// The reason, as text.
        by: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseFreeOutcome {
    Done,
    /// The Lease has changed since it was read, and was left unchanged: read it again.
    Changed,
}

/// A held Lease, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemediationLeaseHold {
    pub node: NodeName,
    /// The remediation's subject; `None` if the record cannot be read.
    pub subject: Option<String>,
    pub lease: String,
    pub uid: String,
    pub resource_version: String,
    /// [`RemediationLeaseRecord::alone`].
    pub alone: bool,
    record: Option<RemediationLeaseRecord>,
}

impl RemediationLeaseHold {
    /// `None`: the Lease is free, or no remediation's.
    pub fn from_lease(lease: &LeaseObject) -> Option<Self> {
        let record = lease.annotations.get(annotation::HOLDER);
        let record = record.and_then(|text| serde_json::from_str(text).ok());
        let (uid, version) = (lease.uid.clone(), lease.resource_version.clone());
        build_held_lease(&lease.name, lease.holder.as_deref()?, uid, version, record)
    }

    fn lease_incarnation(&self) -> LeaseIncarnation<'_> {
        LeaseIncarnation {
            name: &self.lease,
            uid: &self.uid,
            resource_version: &self.resource_version,
        }
    }
}

impl RemediationLeaseClient {
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), namespace),
            nodes: Api::all(client),
        }
    }

    /// Takes the node's Lease without waiting. `group` is the Node's current group; `None` (not
    /// known) keeps the recorded one. A held Lease of the same node is written again, also that of
    /// another subject: whoever frees an earlier version finds it changed.
    ///
    /// A control-plane node is refused while Dogwatch keeps another one out of service
    /// ([`find_control_plane_conflict`] explains why at most one goes ahead). A refused remediation
    /// holds nothing: two that wait for each other would wait for ever.
    ///
    /// # Errors
    /// Any failure. Without an answer the Lease may be held; repeat the call to find out.
    pub async fn take_lease(
        &self,
        node: &NodeName,
        control_plane: bool,
        group: Option<GroupName>,
        subject: &str,
        now: Timestamp,
    ) -> Result<LeaseTakeOutcome, Error> {
        let wanted = new_record(node, control_plane, group, subject, now);
        let taken = self.take_and_check(wanted).await?;
        if let LeaseTakeOutcome::HeldWithConflict { held, by } = taken {
            self.free_lease(&held).await?;
            return Ok(LeaseTakeOutcome::Refused { by });
        }
        Ok(taken)
    }

    /// Like [`Self::take_lease`], for a node that is out of service already: it holds its Lease
    /// also beside another one, because every budget has to count the node.
    ///
    /// # Errors
    /// As [`Self::take_lease`].
    pub async fn take_lease_of_out_node(
        &self,
        node: &NodeName,
        control_plane: bool,
        group: Option<GroupName>,
        subject: &str,
        now: Timestamp,
    ) -> Result<LeaseTakeOutcome, Error> {
        let wanted = new_record(node, control_plane, group, subject, now);
        self.take_and_check(wanted).await
    }

    async fn take_and_check(
        &self,
        wanted: RemediationLeaseRecord,
    ) -> Result<LeaseTakeOutcome, Error> {
        let held = match self.hold_lease(&wanted).await? {
            LeaseTakeOutcome::Held(held) => held,
            refused @ (LeaseTakeOutcome::HeldWithConflict { .. }
            | LeaseTakeOutcome::Refused { .. }) => return Ok(refused),
        };
        if !wanted.control_plane || held.alone {
            return Ok(LeaseTakeOutcome::Held(held));
        }
        Ok(
            match self.find_control_plane_conflict(&wanted.node).await? {
                Some(by) => LeaseTakeOutcome::HeldWithConflict { held, by },
                None => LeaseTakeOutcome::Held(self.record_alone(held, wanted).await?),
            },
        )
    }

    /// Frees the Lease, unless it has changed since it was read.
    ///
    /// # Errors
    /// Any failure. Without an answer, repeat the call.
    pub async fn free_lease(&self, held: &RemediationLeaseHold) -> Result<LeaseFreeOutcome, Error> {
        match self.write_free(held.lease_incarnation()).await {
            Ok(()) => Ok(LeaseFreeOutcome::Done),
            Err(error) => match error.kind() {
                ApiErrorKind::Conflict | ApiErrorKind::NotFound => Ok(LeaseFreeOutcome::Changed),
                ApiErrorKind::AlreadyExists
                | ApiErrorKind::Gone
                | ApiErrorKind::Forbidden
                | ApiErrorKind::Throttled { .. }
                | ApiErrorKind::Refused
                | ApiErrorKind::Transient => Err(error),
            },
        }
    }

    /// # Errors
    /// When the request fails.
    pub async fn list_held(&self) -> Result<Vec<RemediationLeaseHold>, Error> {
        let leases = trim::list_trimmed_leases(&self.leases, ListParams::default()).await?;
        let leases = leases.iter().map(LeaseObject::from_lease);
        Ok(leases
            .filter_map(|lease| RemediationLeaseHold::from_lease(&lease))
            .collect())
    }

    /// Makes sure that the Lease is held for the wanted node and subject.
    async fn hold_lease(&self, wanted: &RemediationLeaseRecord) -> Result<LeaseTakeOutcome, Error> {
        let name = lease_name_of(&wanted.node);
        let mut tries = 0;
        loop {
            tries += 1;
            let lease = self.read_or_create(&name).await?;
            let outcome = match Self::classify_lease(&lease, wanted) {
                RemediationLeaseState::Foreign { by } => {
                    return Ok(LeaseTakeOutcome::Refused { by });
                }
                RemediationLeaseState::Leftover => self
                    .write_free(incarnation_of(&lease)?)
                    .await
                    .map(|()| None),
                RemediationLeaseState::Free => self
                    .apply_record(incarnation_of(&lease)?, wanted)
                    .await
                    .map(Some),
                RemediationLeaseState::Held(record) => self
                    .apply_record(incarnation_of(&lease)?, &record)
                    .await
                    .map(Some),
            };
            match outcome {
                Ok(Some(held)) => return Ok(LeaseTakeOutcome::Held(held)),
                // The Lease was changed after it was read.
                Err(error) if error.kind() == ApiErrorKind::Conflict && tries < MAX_TRIES => {}
                Err(error) => return Err(error),
                Ok(None) => {}
            }
        }
    }

    /// Creates a free Lease if there is none.
    async fn read_or_create(&self, name: &str) -> Result<Lease, Error> {
        if let Some(lease) = with_timeout(self.leases.get_readable_opt(name)).await? {
            return Ok(lease);
        }
        let free = Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec::default()),
        };
        match self.create_lease(&free).await {
            Err(error) if error.is_over_quota() && self.delete_free_leases().await? => {
                self.create_lease(&free).await
            }
            made => made,
        }
    }

    async fn create_lease(&self, free: &Lease) -> Result<Lease, Error> {
        match with_timeout(self.leases.create(&PostParams::default(), free)).await {
            Err(error) if error.kind() == ApiErrorKind::AlreadyExists => {
                with_timeout(self.leases.get_readable(&free.name_any())).await
            }
            made => made,
        }
    }

    /// Deletes some free Leases, unless they have changed: first those of nodes that were
    /// remediated once, then slots. A quota keeps others from filling the namespace; it must not
    /// keep a machine from being fenced. A bid for a deleted Lease names its UID and fails; waiting
    /// nodes create the slots they need again.
    async fn delete_free_leases(&self) -> Result<bool, Error> {
        let leases = trim::list_trimmed_leases(&self.leases, ListParams::default()).await?;
        let ours = |lease: &&Lease| lease.name_any().starts_with(lease_name::PREFIX);
        let free = |lease: &&Lease| lease::lease_holder(lease).is_none();
        let mut free: Vec<&Lease> = leases.iter().filter(ours).filter(free).collect();
        free.sort_by_key(|lease| !lease.name_any().starts_with(lease_name::REMEDIATION_PREFIX));
        let mut is_room = false;
        for lease in free.into_iter().take(MAX_DELETED_FOR_ROOM) {
            let params = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: lease.uid(),
                    resource_version: lease.resource_version(),
                }),
                ..DeleteParams::default()
            };
            match with_timeout(self.leases.delete(&lease.name_any(), &params)).await {
                Ok(_) => is_room = true,
                Err(error)
                    if matches!(
                        error.kind(),
                        ApiErrorKind::Conflict | ApiErrorKind::NotFound
                    ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(is_room)
    }

    fn classify_lease(lease: &Lease, wanted: &RemediationLeaseRecord) -> RemediationLeaseState {
        let holder = lease::lease_holder(lease);
        let Some(holder) = holder else {
            let is_clean = !lease::has_leftovers(lease);
            return if is_clean {
                RemediationLeaseState::Free
            } else {
                RemediationLeaseState::Leftover
            };
        };
        let held = RemediationLeaseHold::from_lease(&LeaseObject::from_lease(lease));
        let Some(held) = held.filter(|held| held.node == wanted.node) else {
            let by = format!("{holder} holds Lease {}", lease.name_any());
            return RemediationLeaseState::Foreign { by };
        };
        let Some(record) = held.record else {
            return RemediationLeaseState::Held(wanted.clone());
        };
        RemediationLeaseState::Held(RemediationLeaseRecord {
            subject: wanted.subject.clone(),
            control_plane: record.control_plane || wanted.control_plane,
            group: wanted.group.clone().or(record.group),
            since: wanted.since,
            ..record
        })
    }

    /// Called after our own Lease was taken: two quorum reads.
    async fn find_control_plane_conflict(&self, node: &NodeName) -> Result<Option<String>, Error> {
        let role = ListParams::default().labels(label::CONTROL_PLANE);
        let nodes = with_timeout(self.nodes.list_readable_metadata(&role)).await?;
        let members: BTreeSet<NodeName> = nodes
            .items
            .iter()
            .filter_map(|node| NodeName::new(node.name_any()).ok())
            .collect();
        let leases = trim::list_trimmed_leases(&self.leases, ListParams::default()).await?;
        let group = GroupName::control_plane_group();
        let held = leases.iter();
        let held: Vec<_> = held
            .filter_map(|lease| count::observed_hold(lease, &group))
            .collect();
        Ok(find_control_plane_conflict(&held, &members, node))
    }

    async fn record_alone(
        &self,
        held: RemediationLeaseHold,
        wanted: RemediationLeaseRecord,
    ) -> Result<RemediationLeaseHold, Error> {
        let record = RemediationLeaseRecord {
            alone: true,
            ..held.record.clone().unwrap_or(wanted)
        };
        // If this fails, the next call finds the Lease held but not `alone`, and checks again.
        self.apply_record(held.lease_incarnation(), &record).await
    }

    async fn apply_record(
        &self,
        lease: LeaseIncarnation<'_>,
        record: &RemediationLeaseRecord,
    ) -> Result<RemediationLeaseHold, Error> {
        let text =
            serde_json::to_string(record).expect("a record has only names, flags and a time");
        let holder = lease_name::REMEDIATION_HOLDER;
        let body = lease::held_body(lease, holder, &text, record.since);
        let params = PatchParams::apply(holder);
        let patch = Patch::Apply(&body);
        let written = with_timeout(self.leases.patch_readable(lease.name, &params, &patch)).await?;
        RemediationLeaseHold::from_lease(&LeaseObject::from_lease(&written))
            .ok_or_else(|| unreadable_lease(lease.name))
    }

    async fn write_free(&self, lease: LeaseIncarnation<'_>) -> Result<(), Error> {
        let params = patch_params_for(lease_name::REMEDIATION_HOLDER);
        let body = Patch::Merge(lease::free_body(lease, &[], 0));
        with_timeout(self.leases.patch_readable(lease.name, &params, &body)).await?;
        Ok(())
    }
}

impl LockClient {
    /// Whether a remediation holds the Lease of this node.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn is_remediated(&self, node: &NodeName) -> Result<bool, Error> {
        let lease = with_timeout(self.leases.get_readable_opt(&lease_name_of(node))).await?;
        Ok(lease.is_some_and(|lease| lease::lease_holder(&lease).is_some()))
    }
}

/// What a Lease means for a remediation that wants it.
enum RemediationLeaseState {
    Free,
    /// Free, but left-over fields of an earlier holder would conflict with our apply.
    Leftover,
    /// A remediation's for the same node; the record to write over it. Its new time makes it another
    /// version.
    Held(RemediationLeaseRecord),
    Foreign {
        by: String,
    },
}

fn new_record(
    node: &NodeName,
    control_plane: bool,
    group: Option<GroupName>,
    subject: &str,
    now: Timestamp,
) -> RemediationLeaseRecord {
    RemediationLeaseRecord {
        node: node.clone(),
        subject: subject.to_owned(),
        control_plane,
        group,
        since: now,
        alone: false,
    }
}

/// A Lease name that would be too long contains a hash instead.
fn lease_name_of(node: &NodeName) -> String {
    let plain = format!("{}{node}", lease_name::REMEDIATION_PREFIX);
    if plain.len() <= lease_name::MAX_NAME_BYTES {
        return plain;
    }
    let digest = name_digest(node.as_str());
    format!("{}sha256-{digest}", lease_name::REMEDIATION_PREFIX)
}

/// `None` if the Lease is no remediation's, or has no readable record.
pub(super) fn remediation_record(lease: &Lease) -> Option<RemediationLeaseRecord> {
    let ours = lease.name_any().starts_with(lease_name::REMEDIATION_PREFIX);
    let text = lease::annotation_text(lease, annotation::HOLDER).filter(|_| ours)?;
    serde_json::from_str(text).ok()
}

fn build_held_lease(
    lease: &str,
    holder: &str,
    uid: String,
    resource_version: String,
    record: Option<RemediationLeaseRecord>,
) -> Option<RemediationLeaseHold> {
    let in_name = lease.strip_prefix(lease_name::REMEDIATION_PREFIX)?;
    let node = record.as_ref().map(|record| record.node.clone());
    let node = node.or_else(|| NodeName::new(in_name).ok());
    (holder == lease_name::REMEDIATION_HOLDER).then_some(())?;
    Some(RemediationLeaseHold {
        node: node?,
        subject: record.as_ref().map(|record| record.subject.clone()),
        lease: lease.to_owned(),
        uid,
        resource_version,
        alone: record.as_ref().is_some_and(|record| record.alone),
        record,
    })
}

fn incarnation_of(lease: &Lease) -> Result<LeaseIncarnation<'_>, Error> {
    let metadata = &lease.metadata;
    let name = metadata.name.as_deref();
    let version = || {
        Some(LeaseIncarnation {
            name: name?,
            uid: metadata.uid.as_deref()?,
            resource_version: metadata.resource_version.as_deref()?,
        })
    };
    version().ok_or_else(|| unreadable_lease(name.unwrap_or_default()))
}

fn unreadable_lease(name: &str) -> Error {
    let text = format!("{name} was answered without its name, UID or version");
    Error::Unreadable(text)
}

#[cfg(test)]
mod tests;
