//! What is kept of deleted Nodes: a ConfigMap for each host in Dogwatch's namespace, where nobody but the
//! controller writes. Source: specification §4.1.

use std::sync::Arc;

use dogwatch_api::label;
use dogwatch_core::power::{Consumer, Host, HostName};
use dogwatch_core::remedy::{Backup, KeptBackup};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::client::{RemedyClient, params, precondition, send};
use super::write::{Right, WriteError};
use crate::error::{Error, Kind, ask};
use crate::paged::{Paged, list};

const CREATE: Right = Right::new("create", "configmaps");
const PATCH: Right = Right::new("patch", "configmaps");
const DELETE: Right = Right::new("delete", "configmaps");

/// As it is named in troubles.
pub(super) const FULL_NAME: &str = "configmaps";
const PREFIX: &str = "node-backup-";
/// The host, in JSON.
const HOST: &str = "host";
/// What was on its Node, in JSON.
const NODE: &str = "node";

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
/// [`WriteError`]: only after [`WriteError::Changed`] and [`WriteError::Forbidden`] is it certain that
/// nothing was written.
impl RemedyClient {
    /// Keeps what is on the host's Node, in place of what was seen there. It answers with what stands then.
    /// One that cannot be read is written over.
    pub async fn keep_backup(
        &self,
        host: &Host,
        backup: &Backup,
        over: Option<&KeptBackup>,
    ) -> Result<KeptBackup, WriteError> {
        let about = about(&host.uid);
        let data = data(host, backup);
        let answer = match over {
            Some(over) => self.write_over(over, &data).await?,
            None => match self.create(host, &data).await {
                Ok(made) => made,
                Err(WriteError::Api(error)) if error.kind() == Kind::AlreadyExists => {
                    self.mend(host, &data).await?
                }
                Err(error) => return Err(error),
            },
        };
        let kept = kept(&answer).filter(|kept| kept.backup == *backup);
        kept.ok_or(WriteError::Dropped(about))
    }

    /// It came back, or is not wanted any more. One that is gone is dropped.
    pub async fn drop_backup(&self, stored: &KeptBackup) -> Result<(), WriteError> {
        let about = about(&stored.host_uid);
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(stored.uid.clone()),
            resource_version: Some(stored.resource_version.clone()),
        });
        let backups = self.backups();
        let name = name(&stored.host_uid);
        match ask(backups.delete(&name, &params)).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            Err(error) => Err(DELETE.refused(&about, error)),
        }
    }

    async fn create(&self, host: &Host, data: &Value) -> Result<ConfigMap, WriteError> {
        let object = json!({
            "metadata": { "name": name(&host.uid), "labels": { label::NODE_BACKUP: "true" } },
            "data": data,
        });
        let object: ConfigMap = serde_json::from_value(object).expect("it is a ConfigMap");
        let (backups, about) = (self.backups(), about(&host.uid));
        let params = PostParams {
            field_manager: params().field_manager,
            ..PostParams::default()
        };
        send(CREATE, &about, backups.create(&params, &object)).await
    }

    async fn write_over(&self, over: &KeptBackup, data: &Value) -> Result<ConfigMap, WriteError> {
        let mut metadata = precondition(&over.uid, &over.resource_version);
        metadata["labels"] = json!({ label::NODE_BACKUP: "true" });
        let body = Patch::Merge(json!({ "metadata": metadata, "data": data }));
        let (backups, params) = (self.backups(), params());
        let name = name(&over.host_uid);
        let call = backups.patch(&name, &params, &body);
        send(PATCH, &about(&over.host_uid), call).await
    }

    /// There is one that no watch has shown: if it cannot be read, nobody needs it.
    async fn mend(&self, host: &Host, data: &Value) -> Result<ConfigMap, WriteError> {
        let about = about(&host.uid);
        let there = ask(self.backups().get(&name(&host.uid))).await;
        let there =
            there.map_err(|error| Right::new("get", "configmaps").refused(&about, error))?;
        let is_labelled = there.labels().contains_key(label::NODE_BACKUP);
        if is_labelled && kept(&there).is_some() {
            return Err(WriteError::Changed(about));
        }
        let over = KeptBackup {
            host: host.name.clone(),
            host_uid: host.uid.clone(),
            consumer: None,
            backup: Backup::default(),
            uid: there.uid().unwrap_or_default(),
            resource_version: there.resource_version().unwrap_or_default(),
        };
        self.write_over(&over, data).await
    }

    fn backups(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// The host's UID, and what is kept for it; `None`: it cannot be read.
pub(super) type Found = (String, Option<Arc<KeptBackup>>);

/// Those of a namespace, as a watch takes them in.
pub(super) fn source(client: Client, namespace: &str) -> Paged<ConfigMap, Found> {
    let find = |object: &ConfigMap| (host_of(&object.name_any()), kept(object).map(Arc::new));
    Paged {
        api: Api::namespaced(client, namespace),
        keep: Arc::new(find),
    }
}

fn host_of(name: &str) -> String {
    name.strip_prefix(PREFIX).unwrap_or(name).to_owned()
}

/// All of them.
pub(super) async fn all(client: &Client, namespace: &str) -> Result<Vec<Arc<KeptBackup>>, Error> {
    let backups: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let params = ListParams::default().labels(label::NODE_BACKUP);
    let found = ask(list(&backups, params, |object| kept(object).map(Arc::new))).await?;
    Ok(found.items.into_iter().flatten().collect())
}

fn name(host_uid: &str) -> String {
    format!("{PREFIX}{host_uid}")
}

fn about(host_uid: &str) -> String {
    format!("configmap {}", name(host_uid))
}

fn data(host: &Host, backup: &Backup) -> Value {
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
    json!({ HOST: text(serde_json::to_string(&host)), NODE: text(serde_json::to_string(backup)) })
}

/// Its name has to be its host's, lest one host have two.
fn kept(object: &ConfigMap) -> Option<KeptBackup> {
    let data = object.data.as_ref()?;
    let host: HostData = serde_json::from_str(data.get(HOST)?).ok()?;
    let backup = serde_json::from_str(data.get(NODE)?).ok()?;
    let consumer = host.consumer.map(|it| Consumer {
        group: it.group,
        kind: it.kind,
        namespace: it.namespace,
        name: it.name,
    });
    let kept = KeptBackup {
        host: HostName::new(host.namespace, host.name),
        host_uid: host.uid,
        consumer,
        backup,
        uid: object.uid()?,
        resource_version: object.resource_version()?,
    };
    (object.name_any() == name(&kept.host_uid)).then_some(kept)
}
