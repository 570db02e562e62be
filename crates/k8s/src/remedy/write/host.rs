//! Writes of hosts: our keys, and what is kept there.

use dogwatch_api::annotation::{CONFIRMED_OFF, NODE_BACKUP, REMEDIATION};
use dogwatch_core::power::Host;
use dogwatch_core::remedy::{Key, KeyOwner, Record};
use kube::api::Patch;
use serde::Serialize;

use super::{Right, WriteError};
use crate::host::convert;
use crate::remedy::client::{Annotations, RemedyClient, annotating, params, send, stand};

const PATCH: Right = Right::new("patch", "baremetalhosts.metal3.io");

/// Each answers with the host as it stands then.
///
/// # Errors
/// [`WriteError`]: only after [`WriteError::Changed`], [`WriteError::Foreign`] and
/// [`WriteError::Forbidden`] is it certain that nothing was written.
impl RemedyClient {
    /// Puts our key on the host, and the record with it. A person's word that stands there was for another key:
    /// it goes, lest it be taken for one that is put there again with the same value.
    pub async fn add_key(
        &self,
        host: &Host,
        key: &KeyOwner,
        record: &Record,
    ) -> Result<Host, WriteError> {
        let (name, value) = (key.key(), key.value());
        let standing = host.annotations.get(&name);
        let is_foreign = standing.is_some_and(|standing| *standing != value);
        if is_foreign || *key == KeyOwner::Unnamed {
            return Err(foreign(host, &name));
        }
        let is_new = standing.is_none();
        let mut wanted = vec![
            (name, Some(value)),
            (REMEDIATION.to_owned(), Some(text(record))),
        ];
        if is_new && host.annotations.contains_key(CONFIRMED_OFF) {
            wanted.push((CONFIRMED_OFF.to_owned(), None));
        }
        self.annotate_host(host, wanted).await
    }

    /// Removes a key of ours, and with it a person's word that the host is off: it was for this key. One
    /// that is not there is removed. A key that only begins as ours do is somebody else's.
    pub async fn remove_key(
        &self,
        host: &Host,
        key: &str,
        record: Option<&Record>,
    ) -> Result<Host, WriteError> {
        let there = host.annotations.get(key);
        if there.is_some_and(|value| Key::read(key, value).is_none()) {
            return Err(foreign(host, key));
        }
        let gone = [key, CONFIRMED_OFF];
        let gone = gone
            .iter()
            .filter(|name| host.annotations.contains_key(**name));
        let mut wanted: Annotations = gone.map(|name| ((*name).to_owned(), None)).collect();
        wanted.extend(record.map(|record| (REMEDIATION.to_owned(), Some(text(record)))));
        self.annotate_host(host, wanted).await
    }

    /// Writes the record: a step was seen.
    pub async fn write_record(&self, host: &Host, record: &Record) -> Result<Host, WriteError> {
        let wanted = vec![(REMEDIATION.to_owned(), Some(text(record)))];
        self.annotate_host(host, wanted).await
    }

    /// Removes what an older version kept there.
    pub async fn remove_old_backup(&self, host: &Host) -> Result<Host, WriteError> {
        let wanted = vec![(NODE_BACKUP.to_owned(), None)];
        self.annotate_host(host, wanted).await
    }

    /// What stands so already is not sent: the host is as it was seen.
    async fn annotate_host(&self, host: &Host, wanted: Annotations) -> Result<Host, WriteError> {
        let is_so =
            |(name, value): &(String, Option<String>)| host.annotations.get(name) == value.as_ref();
        if wanted.iter().all(is_so) {
            return Ok(host.clone());
        }
        let about = format!("host {}", host.name);
        let body = Patch::Merge(annotating(&host.uid, &host.resource_version, &wanted));
        let (hosts, params) = (self.hosts(&host.name.namespace), params());
        let call = hosts.patch(&host.name.name, &params, &body);
        let answer = send(PATCH, &about, call).await?;
        stand(&answer, &about, &wanted)?;
        Ok(convert(&answer))
    }
}

fn foreign(host: &Host, key: &str) -> WriteError {
    WriteError::Foreign(format!("annotation {key} of host {}", host.name))
}

fn text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("texts, numbers and times serialise")
}
