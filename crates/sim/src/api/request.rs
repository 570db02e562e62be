//! A request as the server sees it, free of HTTP's types.

use bytes::Bytes;
use http::Method;

/// The parameters behind the question mark, decoded, in their order.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands behind the question mark.
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

    /// The first value of a parameter; empty when it is not there.
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// Whether a parameter says yes.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), "true" | "1" | "True" | "TRUE" | "t" | "T")
    }

    /// Whether the parameter is there at all.
    pub fn has(&self, name: &str) -> bool {
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

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    /// GET, POST, …
    pub method: Method,
    /// Without the question mark.
    pub path: String,
    /// The parameters.
    pub query: Query,
    /// `Accept`.
    pub accept: String,
    /// `Content-Type`.
    pub content_type: String,
    /// `User-Agent`; names the field manager when no parameter does.
    pub user_agent: String,
    /// Who asks.
    pub user: String,
    /// The body.
    pub body: Bytes,
}

impl Request {
    /// A request of `user` with nothing but a method, a path (with its parameters) and a body.
    pub fn new(user: &str, method: Method, target: &str, body: impl Into<Bytes>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method,
            path: path.to_owned(),
            query: Query::parse(query),
            accept: "application/json".into(),
            content_type: "application/json".into(),
            user_agent: user.to_owned(),
            user: user.to_owned(),
            body: body.into(),
        }
    }

    /// The same with another content type.
    #[must_use]
    pub fn content_type(mut self, content_type: &str) -> Self {
        content_type.clone_into(&mut self.content_type);
        self
    }

    /// The same that asks for another form of the answer.
    #[must_use]
    pub fn accept(mut self, accept: &str) -> Self {
        accept.clone_into(&mut self.accept);
        self
    }

    /// The field manager of a write that is no apply.
    pub(crate) fn manager(&self) -> &str {
        match self.query.get("fieldManager") {
            "" => self.user_agent.split('/').next().unwrap_or_default(),
            manager => manager,
        }
    }

    /// Whether nothing may come of it.
    pub(crate) fn dry_run(&self) -> bool {
        self.query.get("dryRun") == "All"
    }
}

/// One answer that is not a watch.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP status code.
    pub code: u16,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// The body.
    pub body: Bytes,
    /// JSON nearly always.
    pub content_type: &'static str,
}

impl Response {
    /// 200 with this body.
    pub fn ok(body: impl Into<Bytes>) -> Self {
        Self::with_code(200, body)
    }

    /// Any code with this body.
    pub fn with_code(code: u16, body: impl Into<Bytes>) -> Self {
        Self {
            code,
            retry_after: None,
            body: body.into(),
            content_type: "application/json",
        }
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}
