//! Implements `dogwatch audit`: recounts the promises from an API server's audit log alone.

use std::path::PathBuf;

use dogwatch_core::verify::PowerRecount;
use dogwatch_core::verify::audit::{AuditLineError, read_audit_line};

use super::recount::{UnreadableLines, finish_recount, read_lines_of_files};
use crate::exit::CommandFailure;

#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// Audit logs of kube-apiserver: one Event a line, nodes and leases at level RequestResponse
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub fn run(args: &AuditArgs) -> Result<(), CommandFailure> {
    let (mut writes, mut unreadable) = (Vec::new(), UnreadableLines::default());
    read_lines_of_files(&args.files, |file, line, bytes| {
        // Half a line may end within a character.
        let text = String::from_utf8_lossy(bytes);
        match read_audit_line(file, line, &text) {
            Ok(write) => writes.extend(write),
            Err(error @ AuditLineError::Unreadable { .. }) => {
                unreadable.add_line(args.files.get(file), &error.to_string());
            }
            Err(error @ (AuditLineError::TooLong { .. } | AuditLineError::NoResponse { .. })) => {
                return Err(error.to_string());
            }
        }
        Ok(())
    })?;
    finish_recount(&args.files, writes, PowerRecount::default(), &unreadable)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::CapturedOutput;

    fn node_line(version: u32) -> Vec<u8> {
        let line = json!({
            "stage": "ResponseComplete", "verb": "patch", "user": { "username": "ann" },
            "objectRef": { "resource": "nodes", "name": "n1" }, "responseStatus": { "code": 200 },
            "responseObject": { "metadata": {
                "name": "n1", "uid": "u1", "resourceVersion": version.to_string(),
            } },
            "stageTimestamp": "2026-11-25T12:00:00Z",
        });
        format!("{line}\n").into_bytes()
    }

    async fn audit(lines: &[&[u8]]) -> (Result<(), CommandFailure>, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.log");
        std::fs::write(&file, lines.concat()).unwrap();
        let args = AuditArgs { files: vec![file] };
        let output = CapturedOutput::default();
        let end = output.capture(async { run(&args) }).await;
        (end, output.to_text())
    }

    #[tokio::test]
    async fn half_a_line_of_a_killed_api_server_is_counted_and_the_others_are_judged() {
        let half = [&b"{\"user\":{\"username\":\"J\xc3"[..], &node_line(2)[..]].concat();
        let (end, said) = audit(&[&node_line(1), &half, &node_line(3)]).await;
        assert!(end.is_ok(), "{end:?}");
        assert!(said.contains("not judged: 1; the first: "), "{said}");
        assert!(said.contains("audit.log: line 2 is no JSON"), "{said}");
        assert!(said.contains("\n2 writes judged: "), "{said}");
    }

    #[tokio::test]
    async fn a_file_of_another_kind_is_a_failure_that_names_its_first_line() {
        let (end, _) = audit(&[b"I1125 12:00:00 server.go:1\n", b"I1125\n"]).await;
        let error = format!("{:?}", end.unwrap_err());
        assert!(error.contains("line 1 is no JSON object"), "{error}");
        let (end, _) = audit(&[b"{}\n"]).await;
        assert!(end.is_err());
    }
}
