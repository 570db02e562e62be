//! The answer of `/api/v1/query`. Source: Prometheus' "HTTP API" page, Thanos' and VictoriaMetrics'
//! additions to it for answers that are not whole.

use std::collections::BTreeMap;

use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::trouble::Trouble;
use crate::words::clip;

/// The labels of one series.
pub(crate) type Labels = BTreeMap<String, String>;

/// Everything that a query has found, by labels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Results {
    found: Vec<Labels>,
    /// Every value is 0: mostly a comparison that was written with `bool`.
    pub(crate) all_zero: bool,
}

impl Results {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Labels> {
        self.found.iter()
    }
}

/// Whether our token went along, for whoever has to mend a 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenSent {
    Yes,
    NoneThere,
    OtherOrigin,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: Status,
    data: Option<Data>,
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
enum Status {
    Success,
    Error,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data {
    Vector(Vec<Series>),
    Matrix(Vec<Series>),
    Scalar(IgnoredAny),
    String(IgnoredAny),
}

#[derive(Deserialize)]
struct Series {
    metric: Labels,
    value: Option<(IgnoredAny, String)>,
}

/// What was found. Only a whole `success` counts as an answer.
pub(crate) fn read(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    token: TokenSent,
) -> Result<Results, Trouble> {
    if status.is_redirection() {
        return Err(Trouble::Redirect(target(headers)));
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(Trouble::NotAllowed { status, token });
    }
    match serde_json::from_slice::<Answer>(body) {
        Ok(answer) if answer.status == Status::Error => Err(refused(&answer)),
        Ok(answer) if status == StatusCode::OK => results(answer),
        Err(_) if status == StatusCode::OK => Err(Trouble::NotPrometheus(kind(headers))),
        Ok(_) | Err(_) => Err(Trouble::Status { status }),
    }
}

fn refused(answer: &Answer) -> Trouble {
    let text = clip(&answer.error);
    match answer.error_type.as_str() {
        "bad_data" => Trouble::BadQuery(text),
        kind => Trouble::Refused {
            kind: clip(kind),
            text,
        },
    }
}

fn results(answer: Answer) -> Result<Results, Trouble> {
    if let Some(warning) = answer.warnings.as_ref().and_then(|all| all.first()) {
        return Err(Trouble::Warned(clip(warning)));
    }
    if answer.is_partial {
        return Err(Trouble::Partial);
    }
    match answer.data {
        Some(Data::Vector(found) | Data::Matrix(found)) => Ok(of(found)),
        Some(Data::Scalar(_)) => Err(Trouble::NeverEmpty("a scalar")),
        Some(Data::String(_)) => Err(Trouble::NeverEmpty("a string")),
        None => Err(Trouble::NoData),
    }
}

fn of(found: Vec<Series>) -> Results {
    let is_zero = |series: &Series| {
        let value = series.value.as_ref();
        value.is_some_and(|(_, value)| value == "0")
    };
    Results {
        all_zero: !found.is_empty() && found.iter().all(is_zero),
        found: found.into_iter().map(|series| series.metric).collect(),
    }
}

/// Where a redirect leads, without what may be secret in it: a login's state is in the query.
fn target(headers: &HeaderMap) -> Option<String> {
    let uri: Uri = headers.get(LOCATION)?.to_str().ok()?.parse().ok()?;
    let host = uri.host()?;
    let port = uri.port().map(|port| format!(":{port}"));
    let port = port.unwrap_or_default();
    Some(clip(&format!("{}://{host}{port}", uri.scheme_str()?)))
}

/// The content type without its parameters.
fn kind(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(clip(text.split(';').next()?.trim()))
}

#[cfg(test)]
mod tests;
