//! The forms of the lock API, in both of their encodings.

use bytes::Bytes;
use dogwatch_core::name::NodeName;
use futures::stream;

use super::answer::{Reply, Verdict};
use crate::lock::service::Wait;

/// The longest label of a DNS name. Source: RFC 1035, 2.3.4.
const LONGEST_LABEL: usize = 63;

/// What a request for the lock says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockForm {
    pub(super) host: String,
    pub(super) wait: Wait,
}

/// Reads the form of a lock (`hostname`, `wait`).
pub(super) async fn lock_form(content_type: Option<&str>, body: Bytes) -> Result<LockForm, Reply> {
    let mut fields = Fields::read(content_type, body).await?;
    let host = hostname(fields.take("hostname")?)?;
    let wait = wait(fields.take("wait")?.as_deref())?;
    fields.nothing_else("hostname and wait")?;
    Ok(LockForm { host, wait })
}

/// Reads the form of an unlock (`hostname`).
pub(super) async fn unlock_form(content_type: Option<&str>, body: Bytes) -> Result<String, Reply> {
    let mut fields = Fields::read(content_type, body).await?;
    let host = hostname(fields.take("hostname")?)?;
    fields.nothing_else("hostname")?;
    Ok(host)
}

fn hostname(text: Option<String>) -> Result<String, Reply> {
    let text = text.ok_or_else(|| malformed("the field hostname is missing"))?;
    let name = NodeName::new(text.to_ascii_lowercase())
        .map_err(|bad| malformed(format!("hostname {:?} is not valid: {}", bad.text, bad.why)))?;
    if name
        .as_str()
        .split('.')
        .any(|label| label.len() > LONGEST_LABEL)
    {
        let why = "a label of it is longer than 63 bytes";
        return Err(malformed(format!(
            "hostname {} is not valid: {why}",
            quoted(&text)
        )));
    }
    Ok(name.into())
}

fn wait(text: Option<&str>) -> Result<Wait, Reply> {
    match text {
        None => Ok(Wait::Soon),
        Some("true") => Ok(Wait::Always),
        Some("false") => Ok(Wait::No),
        Some(other) => Err(malformed(format!(
            "wait must be true or false, not {}",
            quoted(other)
        ))),
    }
}

struct Fields(Vec<(String, String)>);

impl Fields {
    async fn read(content_type: Option<&str>, body: Bytes) -> Result<Self, Reply> {
        let kind = content_type.unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let pairs = form_urlencoded::parse(&body);
            return Ok(Self(pairs.into_owned().collect()));
        }
        if essence.eq_ignore_ascii_case("multipart/form-data") {
            return multipart(kind, body).await.map(Self);
        }
        let line = format!(
            "send a form: application/x-www-form-urlencoded or multipart/form-data, not {}",
            content_type.map_or("a body without a type".to_owned(), quoted)
        );
        Err(Reply::new(Verdict::UnknownType, line))
    }

    fn take(&mut self, name: &str) -> Result<Option<String>, Reply> {
        let mut values = self.0.extract_if(.., |(field, _)| field == name);
        let value = values.next().map(|(_, value)| value);
        match values.next() {
            None => Ok(value),
            Some(_) => Err(malformed(format!("the field {name} is there twice"))),
        }
    }

    /// A misspelled `wait` that is passed over would wait where the caller did not want to.
    fn nothing_else(self, known: &str) -> Result<(), Reply> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(malformed(format!(
                "unknown field {}: there is {known}",
                quoted(name)
            ))),
        }
    }
}

async fn multipart(content_type: &str, body: Bytes) -> Result<Vec<(String, String)>, Reply> {
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| malformed("the content type multipart/form-data has no boundary"))?;
    let body = stream::iter([Ok::<_, std::convert::Infallible>(body)]);
    let mut parts = multer::Multipart::new(body, boundary);
    let mut fields = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(|e| broken(&e))? {
        let name = part.name().map(str::to_owned);
        let name = name.ok_or_else(|| malformed("a part of the form has no name"))?;
        fields.push((name, part.text().await.map_err(|e| broken(&e))?));
    }
    Ok(fields)
}

fn broken(error: &multer::Error) -> Reply {
    malformed(format!("the form cannot be read: {error}"))
}

fn malformed(line: impl AsRef<str>) -> Reply {
    Reply::new(Verdict::Malformed, line)
}

/// What somebody sent, short and on one line.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests;
