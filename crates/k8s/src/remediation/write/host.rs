//! Writes to hosts: our keys, and our annotations.

use dogwatch_api::annotation::{CONFIRMED_OFF, NODE_BACKUP, REMEDIATION};
use dogwatch_core::power::HostSnapshot;
use dogwatch_core::remediation::{KeyOwner, RemediationKey, RemediationRecord};
use kube::api::Patch;
use serde::Serialize;

use super::{RemediationWriteError, RequiredRight};
use crate::host::convert_host;
use crate::remediation::client::{
    AnnotationChanges, RemediationClient, annotation_patch, check_annotations_written,
    patch_params, send_write,
};

const PATCH_RIGHT: RequiredRight = RequiredRight::new("patch", "baremetalhosts.metal3.io");

/// Each method returns the host as written.
///
/// # Errors
/// [`RemediationWriteError`]: only [`RemediationWriteError::Changed`],
/// [`RemediationWriteError::Foreign`] and [`RemediationWriteError::Forbidden`] guarantee that
/// nothing was written.
impl RemediationClient {
    /// Adds our key and the record to the host. Removes an existing confirmation by a person: it
    /// was for another key, and must not count for a new key of the same value.
    pub async fn add_key(
        &self,
        host: &HostSnapshot,
        key: &KeyOwner,
        record: &RemediationRecord,
    ) -> Result<HostSnapshot, RemediationWriteError> {
        let (name, value) = (key.annotation_name(), key.annotation_value());
        let standing = host.annotations.get(&name);
        let is_foreign = standing.is_some_and(|standing| *standing != value);
        if is_foreign || *key == KeyOwner::Foreign {
            return Err(foreign_error(host, &name));
        }
        let is_new = standing.is_none();
        let mut wanted = vec![
            (name, Some(value)),
            (REMEDIATION.to_owned(), Some(json_text(record))),
        ];
        if is_new && host.annotations.contains_key(CONFIRMED_OFF) {
            wanted.push((CONFIRMED_OFF.to_owned(), None));
        }
        self.annotate_host(host, wanted).await
    }

    /// Removes our key, and with it a person's confirmation that the host is off, which was for
    /// this key. Succeeds if the key is gone already. A key that only has our prefix is somebody
    /// else's.
    pub async fn remove_key(
        &self,
        host: &HostSnapshot,
        key: &str,
        record: Option<&RemediationRecord>,
    ) -> Result<HostSnapshot, RemediationWriteError> {
        let there = host.annotations.get(key);
        if there.is_some_and(|value| RemediationKey::parse_annotation(key, value).is_none()) {
            return Err(foreign_error(host, key));
        }
        let gone = [key, CONFIRMED_OFF];
        let gone = gone
            .iter()
            .filter(|name| host.annotations.contains_key(**name));
        let mut wanted: AnnotationChanges = gone.map(|name| ((*name).to_owned(), None)).collect();
        wanted.extend(record.map(|record| (REMEDIATION.to_owned(), Some(json_text(record)))));
        self.annotate_host(host, wanted).await
    }

    /// Records that a step was observed.
    pub async fn write_record(
        &self,
        host: &HostSnapshot,
        record: &RemediationRecord,
    ) -> Result<HostSnapshot, RemediationWriteError> {
        let wanted = vec![(REMEDIATION.to_owned(), Some(json_text(record)))];
        self.annotate_host(host, wanted).await
    }

    /// Removes the backup that an older version kept on the host.
    pub async fn remove_old_backup(
        &self,
        host: &HostSnapshot,
    ) -> Result<HostSnapshot, RemediationWriteError> {
        let wanted = vec![(NODE_BACKUP.to_owned(), None)];
        self.annotate_host(host, wanted).await
    }

    /// Nothing is sent if all annotations have their values already.
    async fn annotate_host(
        &self,
        host: &HostSnapshot,
        wanted: AnnotationChanges,
    ) -> Result<HostSnapshot, RemediationWriteError> {
        let is_so =
            |(name, value): &(String, Option<String>)| host.annotations.get(name) == value.as_ref();
        if wanted.iter().all(is_so) {
            return Ok(host.clone());
        }
        let about = format!("host {}", host.name);
        let body = Patch::Merge(annotation_patch(&host.uid, &host.resource_version, &wanted));
        let (hosts, params) = (self.host_api(&host.name.namespace), patch_params());
        let call = hosts.patch(&host.name.name, &params, &body);
        let answer = send_write(PATCH_RIGHT, &about, call).await?;
        check_annotations_written(&answer, &about, &wanted)?;
        Ok(convert_host(&answer))
    }
}

fn foreign_error(host: &HostSnapshot, key: &str) -> RemediationWriteError {
    RemediationWriteError::Foreign(format!("annotation {key} of host {}", host.name))
}

fn json_text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("texts, numbers and times serialise")
}
