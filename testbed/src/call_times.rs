//! How long the API server took for each kind of request, by its audit log.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use crate::error::Error;

/// The times of each kind of request, as `patch leases` or `patch baremetalhosts/status`. Watches
/// are left out: they end when they like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTimes(BTreeMap<String, Vec<Duration>>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredRequest {
    stage: String,
    verb: String,
    #[serde(default)]
    object_ref: RequestedObject,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RequestedObject {
    resource: String,
    subresource: String,
}

impl CallTimes {
    /// Reads lines of an audit log.
    pub(crate) fn of_lines(lines: &[String]) -> Result<Self, Error> {
        let mut kinds: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
        for line in lines {
            let request: AnsweredRequest = serde_json::from_str(line)?;
            if request.stage != "ResponseComplete" || request.verb == "watch" {
                continue;
            }
            let RequestedObject {
                resource,
                subresource,
            } = request.object_ref;
            let separator = if subresource.is_empty() { "" } else { "/" };
            let kind = format!("{} {resource}{separator}{subresource}", request.verb);
            let taken = request
                .stage_timestamp
                .duration_since(request.request_received_timestamp);
            let taken = taken.try_into().unwrap_or_default();
            kinds.entry(kind).or_default().push(taken);
        }
        for taken in kinds.values_mut() {
            taken.sort();
        }
        Ok(Self(kinds))
    }
}

/// A line for each kind: how many, the median and the 99th percentile.
impl fmt::Display for CallTimes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, taken) in &self.0 {
            let at = |part: usize| taken[(taken.len() - 1) * part / 100];
            let (count, median, late) = (taken.len(), at(50), at(99));
            writeln!(out, "  {kind}: {count}, p50 {median:.1?}, p99 {late:.1?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_by_verb_and_subresource() {
        let line = |stage: &str, verb: &str, end: &str| {
            format!(
                r#"{{"stage":"{stage}","verb":"{verb}","objectRef":{{"resource":"nodes","subresource":"status"}},
                "requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:00.{end}Z"}}"#
            )
        };
        let lines = [
            line("ResponseComplete", "patch", "020000"),
            line("ResponseComplete", "patch", "010000"),
            line("ResponseComplete", "watch", "900000"),
            line("ResponseStarted", "patch", "900000"),
        ];
        let times = CallTimes::of_lines(&lines).expect("lines of an audit log");
        assert_eq!(
            times.to_string(),
            "  patch nodes/status: 2, p50 10.0ms, p99 10.0ms\n"
        );
    }
}
