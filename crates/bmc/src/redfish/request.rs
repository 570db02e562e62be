//! The HTTP requests that the driver makes.

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_MATCH};
use http::{HeaderValue, Method, Request};
use serde_json::{Value, json};

use super::login::RequestAuth;
use super::transport::LastRequest;
use crate::{BmcFault, Credentials, FaultClass};

/// A request without its authentication. It has no `Debug`, because the body of a login contains
/// the password.
pub(super) struct RedfishRequest {
    pub(super) method: Method,
    pub(super) path: String,
    body: Option<Value>,
    if_match: Option<String>,
    is_last: bool,
}

impl RedfishRequest {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
            if_match: None,
            is_last: false,
        }
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self {
            method: Method::DELETE,
            ..Self::get(path)
        }
    }

    /// Creates a session (DSP0266 §13.3.4).
    pub(super) fn create_session(path: impl Into<String>, credentials: &Credentials) -> Self {
        let password = credentials.password.reveal();
        let body = json!({"UserName": credentials.username, "Password": password});
        Self {
            method: Method::POST,
            body: Some(body),
            ..Self::get(path)
        }
    }

    pub(super) fn power_reset(target: impl Into<String>, reset_type: &str) -> Self {
        Self {
            method: Method::POST,
            body: Some(json!({"ResetType": reset_type})),
            ..Self::get(target)
        }
    }

    /// Makes the request valid only for this version of the document.
    pub(super) fn with_if_match(self, etag: String) -> Self {
        Self {
            if_match: Some(etag),
            ..self
        }
    }

    /// `is_last`: no other request follows soon.
    pub(super) fn with_last(self, is_last: bool) -> Self {
        Self { is_last, ..self }
    }

    /// `GET /redfish/v1/Systems/1`, for messages.
    pub(super) fn method_and_path(&self, path: &str) -> String {
        format!("{} {path}", self.method)
    }

    /// Builds the HTTP request to this path.
    ///
    /// # Errors
    /// A value contains characters that HTTP does not allow.
    pub(super) fn build_http_request(
        &self,
        path: &str,
        pass: Option<&RequestAuth>,
    ) -> Result<Request<Bytes>, BmcFault> {
        let mut request = Request::builder()
            .method(&self.method)
            .uri(path)
            .header(ACCEPT, "application/json")
            .header("OData-Version", "4.0");
        if let Some(pass) = pass {
            let (name, value) = match pass {
                RequestAuth::Basic { header } => (AUTHORIZATION.as_str(), header),
                RequestAuth::Token { value, .. } => ("X-Auth-Token", value),
            };
            request = request.header(name, sensitive_header(value.reveal())?);
        }
        if let Some(etag) = &self.if_match {
            request = request.header(IF_MATCH, etag);
        }
        if self.is_last {
            request = request.extension(LastRequest);
        }
        let body = match &self.body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        request.body(body).map_err(|_| unsendable_fault())
    }
}

/// A header that `Debug` does not show.
fn sensitive_header(value: &str) -> Result<HeaderValue, BmcFault> {
    let mut value = HeaderValue::from_str(value).map_err(|_| unsendable_fault())?;
    value.set_sensitive(true);
    Ok(value)
}

fn unsendable_fault() -> BmcFault {
    BmcFault::without_effect(
        FaultClass::Contradiction,
        "a path, version or token from the BMC is not valid in an HTTP request",
    )
}
