//! Parses the forms of the lock API, in both of their encodings.

use bytes::Bytes;
use dogwatch_core::name::NodeName;
use futures::stream;

use super::reply::{LockReply, RequestOutcome};
use crate::lock::service::WaitMode;

/// The longest label of a DNS name. Source: RFC 1035, 2.3.4.
const MAX_DNS_LABEL_BYTES: usize = 63;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockForm {
    pub(super) host: String,
    pub(super) wait: WaitMode,
}

/// Fields: `hostname`, `wait`.
pub(super) async fn parse_lock_form(
    content_type: Option<&str>,
    body: Bytes,
) -> Result<LockForm, LockReply> {
    let mut fields = FormFields::read_fields(content_type, body).await?;
    let host = parse_hostname(fields.take_field("hostname")?)?;
    let wait = parse_wait(fields.take_field("wait")?.as_deref())?;
    fields.reject_unknown_fields("hostname and wait")?;
    Ok(LockForm { host, wait })
}

/// Field: `hostname`.
pub(super) async fn parse_unlock_form(
    content_type: Option<&str>,
    body: Bytes,
) -> Result<String, LockReply> {
    let mut fields = FormFields::read_fields(content_type, body).await?;
    let host = parse_hostname(fields.take_field("hostname")?)?;
    fields.reject_unknown_fields("hostname")?;
    Ok(host)
}

fn parse_hostname(text: Option<String>) -> Result<String, LockReply> {
    let text = text.ok_or_else(|| malformed_reply("the field hostname is missing"))?;
    let name = NodeName::new(text.to_ascii_lowercase()).map_err(|bad| {
        malformed_reply(format!("hostname {:?} is not valid: {}", bad.text, bad.why))
    })?;
    if name
        .as_str()
        .split('.')
        .any(|label| label.len() > MAX_DNS_LABEL_BYTES)
    {
        let why = "a label of it is longer than 63 bytes";
        return Err(malformed_reply(format!(
            "hostname {} is not valid: {why}",
            quote_shortened(&text)
        )));
    }
    Ok(name.into())
}

fn parse_wait(text: Option<&str>) -> Result<WaitMode, LockReply> {
    match text {
        None => Ok(WaitMode::Soon),
        Some("true") => Ok(WaitMode::Always),
        Some("false") => Ok(WaitMode::No),
        Some(other) => Err(malformed_reply(format!(
            "wait must be true or false, not {}",
            quote_shortened(other)
        ))),
    }
}

struct FormFields(Vec<(String, String)>);

impl FormFields {
    async fn read_fields(content_type: Option<&str>, body: Bytes) -> Result<Self, LockReply> {
        let kind = content_type.unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let pairs = form_urlencoded::parse(&body);
            return Ok(Self(pairs.into_owned().collect()));
        }
        if essence.eq_ignore_ascii_case("multipart/form-data") {
            return read_multipart(kind, body).await.map(Self);
        }
        let line = format!(
            "send a form: application/x-www-form-urlencoded or multipart/form-data, not {}",
            content_type.map_or("a body without a content type".to_owned(), quote_shortened)
        );
        Err(LockReply::new(RequestOutcome::UnknownType, line))
    }

    fn take_field(&mut self, name: &str) -> Result<Option<String>, LockReply> {
        let mut values = self.0.extract_if(.., |(field, _)| field == name);
        let value = values.next().map(|(_, value)| value);
        match values.next() {
            None => Ok(value),
            Some(_) => Err(malformed_reply(format!("the field {name} appears twice"))),
        }
    }

    /// A misspelled `wait` is refused: if it were ignored, the call would wait where the caller did
    /// not want to.
    fn reject_unknown_fields(self, known: &str) -> Result<(), LockReply> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(malformed_reply(format!(
                "unknown field {}: the fields are {known}",
                quote_shortened(name)
            ))),
        }
    }
}

async fn read_multipart(
    content_type: &str,
    body: Bytes,
) -> Result<Vec<(String, String)>, LockReply> {
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| malformed_reply("the content type multipart/form-data has no boundary"))?;
    let body = stream::iter([Ok::<_, std::convert::Infallible>(body)]);
    let mut parts = multer::Multipart::new(body, boundary);
    let mut fields = Vec::new();
    while let Some(part) = parts
        .next_field()
        .await
        .map_err(|e| unreadable_form_reply(&e))?
    {
        let name = part.name().map(str::to_owned);
        let name = name.ok_or_else(|| malformed_reply("a part of the form has no name"))?;
        fields.push((
            name,
            part.text().await.map_err(|e| unreadable_form_reply(&e))?,
        ));
    }
    Ok(fields)
}

fn unreadable_form_reply(error: &multer::Error) -> LockReply {
    malformed_reply(format!("the form cannot be read: {error}"))
}

fn malformed_reply(line: impl AsRef<str>) -> LockReply {
    LockReply::new(RequestOutcome::Malformed, line)
}

/// A client's text, shortened and on one line.
fn quote_shortened(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests;
