//! The requests that the API server received, from its own audit log.

use std::{fs, io, path::Path};

use serde::Deserialize;

use crate::Error;

/// Logs every request's metadata once per stage, without RequestReceived: later stages contain all
/// that it does. Writes of nodes and Leases are logged with the object that they made, so that
/// `dogwatch audit` can recount the promises.
pub(crate) const AUDIT_POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [
    {"level": "RequestResponse", "verbs": ["create", "update", "patch", "delete"],
     "resources": [{"group": "", "resources": ["nodes", "nodes/status"]},
                   {"group": "coordination.k8s.io", "resources": ["leases"]}]},
    {"level": "Metadata"}
  ]
}"#;

/// A request in the API server's audit log. Fields that do not apply are empty, or 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// `ResponseComplete`; a watch also has a `ResponseStarted` when it is opened; `Panic` should
    /// never occur.
    pub stage: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    pub user: String,
    /// The User-Agent header, which tells clients that share a token apart.
    pub user_agent: String,
    /// Plural, as in RBAC.
    pub resource: String,
    /// `status`, `eviction`, …
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// The HTTP status code.
    pub code: u16,
    pub uri: String,
    /// When the request arrived, RFC 3339 with microseconds.
    pub received: String,
    /// When this stage was reached, as `received`: of a `ResponseComplete`, when the answer was sent.
    pub reached: String,
}

impl AuditEntry {
    /// Whether it stands for a request: each has one such entry. A watch that is open has only begun.
    pub fn is_request(&self) -> bool {
        match self.verb.as_str() {
            "watch" => self.stage == "ResponseStarted",
            _ => self.stage == "ResponseComplete",
        }
    }
}

/// A position in the audit log; tests read the entries after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditMark(pub(crate) u64);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditEvent {
    stage: String,
    verb: String,
    user: AuditUser,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: AuditObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(rename = "requestURI")]
    request_uri: String,
    request_received_timestamp: String,
    stage_timestamp: String,
}

#[derive(Deserialize)]
struct AuditUser {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AuditObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

impl From<AuditEvent> for AuditEntry {
    fn from(event: AuditEvent) -> Self {
        Self {
            stage: event.stage,
            verb: event.verb,
            user: event.user.username,
            user_agent: event.user_agent,
            resource: event.object_ref.resource,
            subresource: event.object_ref.subresource,
            namespace: event.object_ref.namespace,
            name: event.object_ref.name,
            code: event.response_status.code,
            uri: event.request_uri,
            received: event.request_received_timestamp,
            reached: event.stage_timestamp,
        }
    }
}

/// The entries after `mark`, in the order of the answers. Leaves out a last line that is still
/// being written.
pub(crate) fn read_entries(log: &Path, mark: AuditMark) -> Result<Vec<AuditEntry>, Error> {
    let text = read_text(log)?;
    let from = usize::try_from(mark.0)
        .expect("a log fits memory")
        .min(text.len());
    text[from..]
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| Ok(serde_json::from_str::<AuditEvent>(line)?.into()))
        .collect()
}

/// The complete lines after `mark`, as the API server wrote them.
pub(crate) fn read_lines(log: &Path, mark: AuditMark) -> Result<Vec<String>, Error> {
    let text = read_text(log)?;
    let from = usize::try_from(mark.0)
        .expect("a log fits memory")
        .min(text.len());
    let lines = text[from..].split_inclusive('\n');
    let complete = lines.filter(|line| line.ends_with('\n'));
    Ok(complete.map(str::to_owned).collect())
}

/// The position after the last complete line.
pub(crate) fn end_mark(log: &Path) -> Result<AuditMark, Error> {
    let text = read_text(log)?;
    Ok(AuditMark(
        text.rfind('\n').map_or(0, |last| last as u64 + 1),
    ))
}

fn read_text(log: &Path) -> Result<String, Error> {
    match fs::read_to_string(log) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Error::io_error("read", log)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/a/pods/p/eviction","verb":"create","user":{"username":"u"},"userAgent":"dogwatch","objectRef":{"resource":"pods","namespace":"a","name":"p","subresource":"eviction"},"responseStatus":{"metadata":{},"code":429},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:00.002000Z"}"#;

    #[test]
    fn a_line_that_is_still_being_written_is_left_for_the_next_reading() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        assert_eq!(read_entries(&log, AuditMark(0)).unwrap(), []);

        fs::write(&log, format!("{LINE}\n{}", &LINE[..40])).unwrap();
        let entries = read_entries(&log, AuditMark(0)).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(
            (entries[0].subresource.as_str(), entries[0].code),
            ("eviction", 429)
        );

        let mark = end_mark(&log).unwrap();
        fs::write(&log, format!("{LINE}\n{LINE}\n")).unwrap();
        assert_eq!(read_entries(&log, mark).unwrap().len(), 1);
    }
}
