//! The Lease that shows that a replica of the lock API runs, and who waits there.
//!
//! A run id names its process (`api/PROCESS/N`). While the process runs, it renews its Lease. If
//! the Lease is missing or was not renewed for long, others may remove the locks of that process
//! that no host was told about. The Lease's label and one annotation let a releasing holder find
//! the waiters with a list that it makes anyway.

use std::collections::BTreeMap;

use dogwatch_api::{CONTROLLER, annotation, label, lease as lease_name};
use dogwatch_core::lock::api_lock::{self, WaitingHost};
use dogwatch_core::lock::{HolderId, LockWaiter};
use dogwatch_core::name::GroupName;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::trim;
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::field_manager::{patch_params_for, post_params_for};
use crate::readable_dates::ReadableApi as _;

/// The Lease's own claim of how many seconds after its last renewal it is stale. Readers decide by
/// their own observations, not by these times.
const PRESENCE_DURATION_SECONDS: i32 = 60;

/// A host that waits at a lock API, as the replica publishes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocalWaiter {
    /// The holder that would bid.
    pub holder: HolderId,
    pub since: Timestamp,
    /// A control-plane node: it comes last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_plane: bool,
    /// Its zone, if its policy uses zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// The presence Lease of one process.
#[derive(Clone)]
pub struct PresenceLease {
    leases: Api<Lease>,
    process: String,
}

impl PresenceLease {
    /// `process` consists of letters, digits and dashes; `namespace` is where Dogwatch runs.
    pub fn new(client: Client, namespace: &str, process: &str) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            process: process.to_owned(),
        }
    }

    /// Renews the Lease, or creates it, and publishes the waiters: the first few of each group for
    /// releasing holders, and `hosts` with their reasons for people.
    pub async fn renew_presence(
        &self,
        waiting: &BTreeMap<GroupName, Vec<LocalWaiter>>,
        hosts: &[WaitingHost],
        now: Timestamp,
    ) -> Result<(), Error> {
        let name = lease_name::presence_name(&self.process);
        let marks = waiting_annotation(waiting);
        let body = json!({
            "metadata": {
                "labels": { label::REBOOT: marks.as_ref().map(|_| label::WAITING) },
                "annotations": {
                    annotation::WAITING: marks,
                    annotation::WAITING_HOSTS: api_lock::render_waiting_hosts(hosts),
                },
            },
            "spec": { "renewTime": MicroTime(now) },
        });
        let params = patch_params_for(CONTROLLER);
        let patched = with_timeout(self.leases.patch_readable(
            &name,
            &params,
            &Patch::Merge(&body),
        ))
        .await;
        match patched {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ApiErrorKind::NotFound => {
                self.create_presence(name, waiting, hosts, now).await
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes the Lease: the healer then cleans up what this process has left.
    pub async fn delete_presence(&self) -> Result<(), Error> {
        let name = lease_name::presence_name(&self.process);
        match with_timeout(self.leases.delete(&name, &DeleteParams::default())).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn create_presence(
        &self,
        name: String,
        waiting: &BTreeMap<GroupName, Vec<LocalWaiter>>,
        hosts: &[WaitingHost],
        now: Timestamp,
    ) -> Result<(), Error> {
        let marks = waiting_annotation(waiting);
        let labels = marks
            .as_ref()
            .map(|_| BTreeMap::from([(label::REBOOT.to_owned(), label::WAITING.to_owned())]));
        let texts = [
            (annotation::WAITING, marks),
            (
                annotation::WAITING_HOSTS,
                api_lock::render_waiting_hosts(hosts),
            ),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(key, text)| Some((key.to_owned(), text?)));
        let annotations = Some(texts.collect());
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name),
                labels,
                annotations,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.process.clone()),
                lease_duration_seconds: Some(PRESENCE_DURATION_SECONDS),
                acquire_time: Some(MicroTime(now)),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        };
        let params = post_params_for(CONTROLLER);
        with_timeout(self.leases.create(&params, &lease))
            .await
            .map(|_| ())
    }
}

/// `None` if nobody waits.
fn waiting_annotation(waiting: &BTreeMap<GroupName, Vec<LocalWaiter>>) -> Option<String> {
    let waiting: BTreeMap<&str, &Vec<LocalWaiter>> = waiting
        .iter()
        .filter(|(_, hosts)| !hosts.is_empty())
        .map(|(group, hosts)| (group.as_str(), hosts))
        .collect();
    let text = || serde_json::to_string(&waiting).expect("names and times serialise");
    (!waiting.is_empty()).then(text)
}

/// The waiters of the group at the other replicas of the lock API.
pub(super) async fn list_remote_waiters(
    leases: &Api<Lease>,
    group: &GroupName,
    not_at: Option<&str>,
) -> Result<Vec<LockWaiter>, Error> {
    let waiting = ListParams::default().labels(&format!("{}={}", label::REBOOT, label::WAITING));
    let list = trim::list_trimmed_leases(leases, waiting).await?;
    let left_out = not_at.map(lease_name::presence_name);
    Ok(list
        .iter()
        .filter(|lease| left_out.as_deref() != Some(lease.name_any().as_str()))
        .flat_map(|lease| waiters_of_group(lease, group))
        .collect())
}

fn waiters_of_group(lease: &Lease, group: &GroupName) -> Vec<LockWaiter> {
    let told = waiters_by_group(lease).into_iter();
    told.filter(|(of, _)| of == group)
        .map(|(_, waiter)| waiter)
        .collect()
}

/// All hosts that wait at this replica, with their reasons.
pub(crate) fn parse_waiting_hosts<K: Resource>(lease: &K) -> Vec<WaitingHost> {
    let text = lease.meta().annotations.as_ref();
    let text = text.and_then(|all| all.get(annotation::WAITING_HOSTS));
    text.map(|text| api_lock::parse_waiting_hosts(text))
        .unwrap_or_default()
}

/// All waiters in a replica's Lease, by group. Unreadable content gives none: the lock is safe and
/// live without this hint.
pub(crate) fn waiters_by_group<K: Resource>(lease: &K) -> Vec<(GroupName, LockWaiter)> {
    let annotations = lease.meta().annotations.as_ref();
    annotations.map(parse_group_waiters).unwrap_or_default()
}

pub(crate) fn parse_group_waiters(
    annotations: &BTreeMap<String, String>,
) -> Vec<(GroupName, LockWaiter)> {
    let text = annotations.get(annotation::WAITING);
    let all =
        text.and_then(|text| serde_json::from_str::<BTreeMap<String, Vec<LocalWaiter>>>(text).ok());
    let waiter = |host: LocalWaiter| LockWaiter {
        holder: host.holder,
        control_plane: host.control_plane,
        zone: host.zone,
        since: Some(host.since),
    };
    let groups = all.unwrap_or_default().into_iter();
    let known = groups.filter_map(|(group, hosts)| Some((GroupName::new(group).ok()?, hosts)));
    known
        .flat_map(|(group, hosts)| {
            hosts
                .into_iter()
                .map(move |host| (group.clone(), waiter(host)))
        })
        .collect()
}
