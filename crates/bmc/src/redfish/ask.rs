//! One request of the driver.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_MATCH};
use http::{HeaderValue, Method, Request};
use serde_json::{Value, json};

use super::exchange::Last;
use super::login::Pass;
use crate::{Class, Credentials, Fault};

/// What is asked, but for who asks. It has no `Debug`: a login's body is the password.
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) path: String,
    body: Option<Value>,
    if_match: Option<String>,
    is_last: bool,
}

impl Ask {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
            if_match: None,
            is_last: false,
        }
    }

    /// Ends a session.
    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self {
            method: Method::DELETE,
            ..Self::get(path)
        }
    }

    /// Makes a session (DSP0266 §13.3.4).
    pub(super) fn login(path: impl Into<String>, credentials: &Credentials) -> Self {
        let password = credentials.password.reveal();
        let body = json!({"UserName": credentials.username, "Password": password});
        Self {
            method: Method::POST,
            body: Some(body),
            ..Self::get(path)
        }
    }

    /// Changes the power.
    pub(super) fn reset(target: impl Into<String>, reset_type: &str) -> Self {
        Self {
            method: Method::POST,
            body: Some(json!({"ResetType": reset_type})),
            ..Self::get(target)
        }
    }

    /// The same, for this version of the document alone.
    pub(super) fn if_match(self, etag: String) -> Self {
        Self {
            if_match: Some(etag),
            ..self
        }
    }

    /// The same; `is_last`: nothing is asked for long after it.
    pub(super) fn last(self, is_last: bool) -> Self {
        Self { is_last, ..self }
    }

    /// `GET /redfish/v1/Systems/1`, for sentences.
    pub(super) fn words(&self, path: &str) -> String {
        format!("{} {path}", self.method)
    }

    /// As it goes out, to this path.
    ///
    /// # Errors
    /// Something in it cannot stand in a request.
    pub(super) fn request(&self, path: &str, pass: Option<&Pass>) -> Result<Request<Bytes>, Fault> {
        let mut request = Request::builder()
            .method(&self.method)
            .uri(path)
            .header(ACCEPT, "application/json")
            .header("OData-Version", "4.0");
        if let Some(pass) = pass {
            let (name, value) = match pass {
                Pass::Basic { header } => (AUTHORIZATION.as_str(), header),
                Pass::Token { value, .. } => ("X-Auth-Token", value),
            };
            request = request.header(name, hidden(value.reveal())?);
        }
        if let Some(etag) = &self.if_match {
            request = request.header(IF_MATCH, etag);
        }
        if self.is_last {
            request = request.extension(Last);
        }
        let body = match &self.body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        request.body(body).map_err(|_| unsendable())
    }
}

/// A header that `Debug` does not show.
fn hidden(value: &str) -> Result<HeaderValue, Fault> {
    let mut value = HeaderValue::from_str(value).map_err(|_| unsendable())?;
    value.set_sensitive(true);
    Ok(value)
}

fn unsendable() -> Fault {
    Fault::harmless(
        Class::Contradiction,
        "a path, version or token of the BMC's cannot stand in a request",
    )
}
