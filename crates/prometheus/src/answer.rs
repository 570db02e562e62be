//! Parses the answer of `/api/v1/query`. Source: Prometheus' "HTTP API" page, and the fields that
//! Thanos and VictoriaMetrics add for incomplete answers.

use std::collections::BTreeMap;

use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::query_error::QueryError;
use crate::reason_text::clip_text;

/// The labels of one series.
pub(crate) type SeriesLabels = BTreeMap<String, String>;

/// All series that a query returned, by labels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueryResults {
    found: Vec<SeriesLabels>,
    /// Every value is 0: usually a comparison that was written with `bool`.
    pub(crate) all_zero: bool,
}

impl QueryResults {
    pub(crate) fn iter_labels(&self) -> impl Iterator<Item = &SeriesLabels> {
        self.found.iter()
    }
}

/// Whether our token was sent, which helps to fix a 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenSent {
    Yes,
    NoneThere,
    OtherOrigin,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueryAnswer {
    status: QueryStatus,
    data: Option<QueryData>,
    #[serde(default)]
    error_type: String,
    #[serde(default)]
    error: String,
    /// "Parts of the answer may be missing", among others. Hints of style come as `infos`.
    #[serde(default)]
    warnings: Option<Vec<String>>,
    /// VictoriaMetrics: some of its storage did not answer.
    #[serde(default)]
    is_partial: bool,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum QueryStatus {
    Success,
    Error,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum QueryData {
    Vector(Vec<QuerySeries>),
    Matrix(Vec<QuerySeries>),
    Scalar(IgnoredAny),
    String(IgnoredAny),
}

#[derive(Deserialize)]
struct QuerySeries {
    metric: SeriesLabels,
    value: Option<(IgnoredAny, String)>,
}

/// Only a complete `success` counts as an answer.
pub(crate) fn parse_answer(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    token: TokenSent,
) -> Result<QueryResults, QueryError> {
    if status.is_redirection() {
        return Err(QueryError::Redirect(redirect_target(headers)));
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(QueryError::NotAllowed { status, token });
    }
    match serde_json::from_slice::<QueryAnswer>(body) {
        Ok(answer) if answer.status == QueryStatus::Error => Err(refusal_error(&answer)),
        Ok(answer) if status == StatusCode::OK => results_of(answer),
        Err(_) if status == StatusCode::OK => {
            Err(QueryError::NotPrometheus(content_type_of(headers)))
        }
        Ok(_) | Err(_) => Err(QueryError::Status { status }),
    }
}

fn refusal_error(answer: &QueryAnswer) -> QueryError {
    let text = clip_text(&answer.error);
    match answer.error_type.as_str() {
        "bad_data" => QueryError::BadQuery(text),
        kind => QueryError::Refused {
            kind: clip_text(kind),
            text,
        },
    }
}

fn results_of(answer: QueryAnswer) -> Result<QueryResults, QueryError> {
    if let Some(warning) = answer.warnings.as_ref().and_then(|all| all.first()) {
        return Err(QueryError::Warned(clip_text(warning)));
    }
    if answer.is_partial {
        return Err(QueryError::Partial);
    }
    match answer.data {
        Some(QueryData::Vector(found) | QueryData::Matrix(found)) => Ok(collect_series(found)),
        Some(QueryData::Scalar(_)) => Err(QueryError::NeverEmpty("a scalar")),
        Some(QueryData::String(_)) => Err(QueryError::NeverEmpty("a string")),
        None => Err(QueryError::NoData),
    }
}

fn collect_series(found: Vec<QuerySeries>) -> QueryResults {
    let is_zero = |series: &QuerySeries| {
        let value = series.value.as_ref();
        value.is_some_and(|(_, value)| value == "0")
    };
    QueryResults {
        all_zero: !found.is_empty() && found.iter().all(is_zero),
        found: found.into_iter().map(|series| series.metric).collect(),
    }
}

/// The target of a redirect, without its query, which may contain a login's secret state.
fn redirect_target(headers: &HeaderMap) -> Option<String> {
    let uri: Uri = headers.get(LOCATION)?.to_str().ok()?.parse().ok()?;
    let host = uri.host()?;
    let port = uri.port().map(|port| format!(":{port}"));
    let port = port.unwrap_or_default();
    Some(clip_text(&format!("{}://{host}{port}", uri.scheme_str()?)))
}

/// The content type without its parameters.
fn content_type_of(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(clip_text(text.split(';').next()?.trim()))
}

#[cfg(test)]
mod tests;
