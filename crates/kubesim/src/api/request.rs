//! Requests and responses of the server, without HTTP's types.

use bytes::Bytes;
use http::Method;

/// Query parameters, decoded, in the order of the request.
#[derive(Debug, Clone, Default)]
pub struct QueryParameters(Vec<(String, String)>);

impl QueryParameters {
    /// Parses a query string, without the question mark.
    pub fn parse(source: &str) -> Self {
        let pairs = source.split('&').filter(|pair| !pair.is_empty());
        let decode = |text: &str| percent_decode(&text.replace('+', " "));
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decode(name), decode(value)))
                .collect(),
        )
    }

    /// The first value of a parameter; empty when it is absent.
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// Whether a parameter is true, in any spelling that Go accepts.
    pub fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), "true" | "1" | "True" | "TRUE" | "t" | "T")
    }

    fn set_parameter(&mut self, name: &str, value: String) {
        self.0.retain(|(key, _)| key != name);
        self.0.push((name.to_owned(), value));
    }

    pub fn has_parameter(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }
}

/// Decodes `%XX`.
pub(crate) fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        let hex = (bytes[index] == b'%')
            .then(|| bytes.get(index + 1..index + 3))
            .flatten();
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            out.push(byte);
            index += 3;
        } else {
            out.push(bytes[index]);
            index += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[derive(Debug, Clone)]
pub struct ApiRequest {
    pub method: Method,
    /// Without the query string.
    pub path: String,
    pub query: QueryParameters,
    pub accept: String,
    pub content_type: String,
    /// `User-Agent`: the field manager when no parameter names one.
    pub user_agent: String,
    pub user: String,
    pub body: Bytes,
}

impl ApiRequest {
    /// A request with this method, target (path and query) and body, and default headers.
    pub fn new(user: &str, method: Method, target: &str, body: impl Into<Bytes>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method,
            path: path.to_owned(),
            query: QueryParameters::parse(query),
            accept: "application/json".into(),
            content_type: "application/json".into(),
            user_agent: user.to_owned(),
            user: user.to_owned(),
            body: body.into(),
        }
    }

    #[must_use]
    pub fn with_content_type(mut self, content_type: &str) -> Self {
        content_type.clone_into(&mut self.content_type);
        self
    }

    #[must_use]
    pub fn with_accept(mut self, accept: &str) -> Self {
        accept.clone_into(&mut self.accept);
        self
    }

    /// The same list, at exactly this revision.
    pub(crate) fn at_revision(mut self, revision: u64) -> Self {
        self.query
            .set_parameter("resourceVersion", revision.to_string());
        self.query
            .set_parameter("resourceVersionMatch", "Exact".into());
        self
    }

    /// The field manager of a write other than an apply.
    pub(crate) fn field_manager(&self) -> &str {
        match self.query.get("fieldManager") {
            "" => self.user_agent.split('/').next().unwrap_or_default(),
            manager => manager,
        }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun") == "All"
    }
}

/// A complete response; watches are [`OpenWatch`](super::OpenWatch).
#[derive(Debug, Clone)]
pub struct ApiResponse {
    pub code: u16,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    pub body: Bytes,
    /// Nearly always JSON.
    pub content_type: &'static str,
    /// What the `Warning` headers say.
    pub warnings: Vec<String>,
}

impl ApiResponse {
    pub fn ok(body: impl Into<Bytes>) -> Self {
        Self::with_code(200, body)
    }

    pub fn with_code(code: u16, body: impl Into<Bytes>) -> Self {
        Self {
            code,
            retry_after: None,
            body: body.into(),
            content_type: "application/json",
            warnings: Vec::new(),
        }
    }

    pub fn body_json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}
