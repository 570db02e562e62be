//! Backups of deleted Nodes: one ConfigMap per host in Dogwatch's namespace, which only the
//! controller writes. Source: specification §4.1.

use std::sync::Arc;

use dogwatch_api::label;
use dogwatch_core::power::{HostConsumer, HostName, HostSnapshot};
use dogwatch_core::remediation::{NodeBackup, Remediation, StoredBackup};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::{RemediationClient, patch_params, patch_precondition, send_write};
use super::write::{RemediationWriteError, RequiredRight};
use crate::error::{ApiErrorKind, Error, with_timeout};
use crate::paged::{PagedObjects, list_paged};

const CREATE_RIGHT: RequiredRight = RequiredRight::new("create", "configmaps");
const PATCH_RIGHT: RequiredRight = RequiredRight::new("patch", "configmaps");
const DELETE_RIGHT: RequiredRight = RequiredRight::new("delete", "configmaps");

/// Its name in error messages.
pub(super) const FULL_NAME: &str = "configmaps";
const PREFIX: &str = "node-backup-";
/// Holds the host, in JSON.
const HOST_KEY: &str = "host";
/// Holds the backup of its Node, in JSON.
const NODE_KEY: &str = "node";
/// Holds the resourceVersion that was overwritten. The API server gives an object no new version if
/// nothing in it changes, and a deletion of the older version has to fail.
const REPLACED_KEY: &str = "replacedVersion";

#[derive(Serialize, Deserialize)]
struct HostData {
    namespace: String,
    name: String,
    uid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    consumer: Option<ConsumerData>,
}

#[derive(Serialize, Deserialize)]
struct ConsumerData {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

/// # Errors
/// [`RemediationWriteError`]: only [`RemediationWriteError::Changed`] and
/// [`RemediationWriteError::Forbidden`] guarantee that nothing was written.
impl RemediationClient {
    /// Writes the backup of the host's Node in place of the one that was read, or over an
    /// unreadable one. Returns the stored backup.
    pub async fn write_backup(
        &self,
        host: &HostSnapshot,
        backup: &NodeBackup,
        over: Option<&StoredBackup>,
    ) -> Result<StoredBackup, RemediationWriteError> {
        let about = describe_backup(&host.uid);
        let data = backup_data(host, backup);
        let answer = match over {
            Some(over) => self.overwrite_backup(over, &data).await?,
            None => match self.create_backup(host, &data).await {
                Ok(made) => made,
                Err(RemediationWriteError::Api(error))
                    if error.kind() == ApiErrorKind::AlreadyExists =>
                {
                    self.replace_unreadable(host, &data).await?
                }
                Err(error) => return Err(error),
            },
        };
        let kept = parse_backup(&answer).filter(|kept| kept.backup == *backup);
        kept.ok_or(RemediationWriteError::Dropped(about))
    }

    /// Deletes the backup, because the Node is restored or the backup is not wanted any more.
    /// Succeeds if it is gone already.
    pub async fn delete_backup(&self, stored: &StoredBackup) -> Result<(), RemediationWriteError> {
        let about = describe_backup(&stored.host_uid);
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(stored.uid.clone()),
            resource_version: Some(stored.resource_version.clone()),
        });
        let backups = self.backup_api();
        let name = backup_name(&stored.host_uid);
        match with_timeout(backups.delete(&name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(()),
            Err(error) => Err(DELETE_RIGHT.classify_error(&about, error)),
        }
    }

    async fn create_backup(
        &self,
        host: &HostSnapshot,
        data: &Value,
    ) -> Result<ConfigMap, RemediationWriteError> {
        let object = json!({
            "metadata": { "name": backup_name(&host.uid), "labels": { label::NODE_BACKUP: "true" } },
            "data": data,
        });
        let object: ConfigMap = serde_json::from_value(object).expect("it is a ConfigMap");
        let (backups, about) = (self.backup_api(), describe_backup(&host.uid));
        let params = PostParams {
            field_manager: patch_params().field_manager,
            ..PostParams::default()
        };
        send_write(CREATE_RIGHT, &about, backups.create(&params, &object)).await
    }

    async fn overwrite_backup(
        &self,
        over: &StoredBackup,
        data: &Value,
    ) -> Result<ConfigMap, RemediationWriteError> {
        let mut metadata = patch_precondition(&over.uid, &over.resource_version);
        metadata["labels"] = json!({ label::NODE_BACKUP: "true" });
        let mut data = data.clone();
        data[REPLACED_KEY] = json!(over.resource_version);
        let body = Patch::Merge(json!({ "metadata": metadata, "data": data }));
        let (backups, params) = (self.backup_api(), patch_params());
        let name = backup_name(&over.host_uid);
        let call = backups.patch(&name, &params, &body);
        send_write(PATCH_RIGHT, &describe_backup(&over.host_uid), call).await
    }

    /// A ConfigMap exists that the watch has not shown: if it is unreadable, nobody needs it.
    async fn replace_unreadable(
        &self,
        host: &HostSnapshot,
        data: &Value,
    ) -> Result<ConfigMap, RemediationWriteError> {
        let about = describe_backup(&host.uid);
        let there = with_timeout(self.backup_api().get(&backup_name(&host.uid))).await;
        let there = there.map_err(|error| {
            RequiredRight::new("get", "configmaps").classify_error(&about, error)
        })?;
        let is_labelled = there.labels().contains_key(label::NODE_BACKUP);
        if is_labelled && parse_backup(&there).is_some() {
            return Err(RemediationWriteError::object_changed(about));
        }
        let over = StoredBackup {
            host: host.name.clone(),
            host_uid: host.uid.clone(),
            consumer: None,
            backup: NodeBackup::default(),
            uid: there.uid().unwrap_or_default(),
            resource_version: there.resource_version().unwrap_or_default(),
        };
        self.overwrite_backup(&over, data).await
    }

    /// The backup that is stored for the host of this remediation.
    pub(super) async fn read_stored_backup(
        &self,
        case: &Remediation,
    ) -> Result<Option<StoredBackup>, Error> {
        let Ok(host) = &case.host else {
            return Ok(None);
        };
        let name = backup_name(&host.uid);
        let object = with_timeout(self.backup_api().get_opt(&name)).await?;
        Ok(object.as_ref().and_then(parse_backup))
    }

    fn backup_api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// The host's UID and its backup; `None`: it cannot be read.
pub(super) type BackupEntry = (String, Option<Arc<StoredBackup>>);

/// The backups of a namespace, as input of a watch.
pub(super) fn backup_source(
    client: Client,
    namespace: &str,
) -> PagedObjects<ConfigMap, BackupEntry> {
    let find = |object: &ConfigMap| {
        (
            host_uid_of(&object.name_any()),
            parse_backup(object).map(Arc::new),
        )
    };
    PagedObjects {
        api: Api::namespaced(client, namespace),
        keep: Arc::new(find),
    }
}

fn host_uid_of(name: &str) -> String {
    name.strip_prefix(PREFIX).unwrap_or(name).to_owned()
}

pub(super) async fn list_backups(
    client: &Client,
    namespace: &str,
) -> Result<Vec<Arc<StoredBackup>>, Error> {
    let backups: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let params = ListParams::default().labels(label::NODE_BACKUP);
    let found = with_timeout(list_paged(&backups, params, |object| {
        parse_backup(object).map(Arc::new)
    }))
    .await?;
    Ok(found.items.into_iter().flatten().collect())
}

fn backup_name(host_uid: &str) -> String {
    format!("{PREFIX}{host_uid}")
}

fn describe_backup(host_uid: &str) -> String {
    format!("configmap {}", backup_name(host_uid))
}

fn backup_data(host: &HostSnapshot, backup: &NodeBackup) -> Value {
    let consumer = host.consumer.as_ref().map(|it| ConsumerData {
        group: it.group.clone(),
        kind: it.kind.clone(),
        namespace: it.namespace.clone(),
        name: it.name.clone(),
    });
    let host = HostData {
        namespace: host.name.namespace.clone(),
        name: host.name.name.clone(),
        uid: host.uid.clone(),
        consumer,
    };
    let text = |value: Result<String, _>| value.expect("texts and flags serialise");
    json!({ HOST_KEY: text(serde_json::to_string(&host)), NODE_KEY: text(serde_json::to_string(backup)) })
}

/// The ConfigMap's name must match its host, so that no host has two backups.
fn parse_backup(object: &ConfigMap) -> Option<StoredBackup> {
    let data = object.data.as_ref()?;
    let host: HostData = serde_json::from_str(data.get(HOST_KEY)?).ok()?;
    let backup = serde_json::from_str(data.get(NODE_KEY)?).ok()?;
    let consumer = host.consumer.map(|it| HostConsumer {
        group: it.group,
        kind: it.kind,
        namespace: it.namespace,
        name: it.name,
    });
    let kept = StoredBackup {
        host: HostName::new(host.namespace, host.name),
        host_uid: host.uid,
        consumer,
        backup,
        uid: object.uid()?,
        resource_version: object.resource_version()?,
    };
    (object.name_any() == backup_name(&kept.host_uid)).then_some(kept)
}
