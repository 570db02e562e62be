//! One request in, one answer out.

use serde_json::json;

use super::access;
use super::audit::AuditEntry;
use super::discovery;
use super::kinds::Subresource;
use super::request::{Request, Response};
use super::route::{PathWords, Target, Verb, verb};
use super::status::{ApiError, Result};
use super::store::Store;
use super::verbs::{binding, create, delete, eviction, list, patch, read, update, watching};
use super::watch::Watch;

/// What comes of a request.
#[derive(Debug)]
pub enum Reply {
    /// An answer, whole.
    Response(Response),
    /// A watch that has begun.
    Watch(Watch),
}

impl Reply {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Response(response) => response.code,
            Self::Watch(_) => 200,
        }
    }

    /// The answer. None for a watch.
    pub fn response(self) -> Option<Response> {
        match self {
            Self::Response(response) => Some(response),
            Self::Watch(_) => None,
        }
    }
}

impl From<ApiError> for Response {
    fn from(error: ApiError) -> Self {
        let body = error.to_status().to_string();
        Self {
            retry_after: error.retry_after(),
            ..Self::with_code(error.code, body)
        }
    }
}

impl Store {
    /// Serves one request: the whole server without time to wait and without a wire.
    pub fn handle(&mut self, request: &Request) -> Reply {
        let words = PathWords::parse(&request.path);
        let verb = words.as_ref().and_then(|words| verb(request, words));
        let reply = match (&words, verb) {
            (Some(words), Some(verb)) => self.serve(request, words, verb),
            (Some(_), None) => Err(ApiError::method_not_allowed()),
            (None, _) => discovery::answer(&self.registry, request).map(Reply::Response),
        };
        let reply = reply.unwrap_or_else(|error| Reply::Response(error.into()));
        self.note(request, words, verb, reply.code());
        reply
    }

    fn serve(&mut self, request: &Request, words: &PathWords, verb: Verb) -> Result<Reply> {
        if !self.registry.serves(&words.group_version) {
            return Ok(Reply::Response(discovery::nothing_there()));
        }
        let target = words
            .resolve(&self.registry)
            .ok_or_else(ApiError::no_such_path)?;
        if let Some(refusal) = access::check(&self.denials, &request.user, verb, &target) {
            return Err(refusal);
        }
        let response = match verb {
            Verb::Watch => {
                return watching::watch(self, request, &target)
                    .map(Reply::Watch)
                    .or_else(watching::in_stream);
            }
            Verb::Get
                if matches!(
                    target.subresource,
                    Some(Subresource::Eviction | Subresource::Binding)
                ) =>
            {
                return Err(ApiError::method_not_allowed());
            }
            Verb::Get => read::get(self, request, &target)?,
            Verb::List => list::list(self, request, &target)?,
            Verb::Create => self.serve_create(request, &target)?,
            Verb::Update => update::update(self, request, &target)?,
            Verb::Patch => patch::patch(self, request, &target)?,
            Verb::Delete => delete::delete(self, request, &target)?,
            Verb::DeleteCollection => delete::delete_collection(self, request, &target)?,
        };
        Ok(Reply::Response(response))
    }

    fn serve_create(&mut self, request: &Request, target: &Target) -> Result<Response> {
        match target.subresource {
            None if target.name.is_empty() => create::create(self, request, target),
            Some(Subresource::Eviction) => eviction::evict(self, request, target),
            Some(Subresource::Binding) => binding::bind(self, request, target),
            None | Some(Subresource::Status) => Err(ApiError::method_not_allowed()),
        }
    }

    fn note(&mut self, request: &Request, words: Option<PathWords>, verb: Option<Verb>, code: u16) {
        let time = self.now();
        self.audit.note(|| {
            let words = words.unwrap_or_else(|| PathWords {
                resource: request.path.clone(),
                ..PathWords::default()
            });
            AuditEntry {
                time,
                user: request.user.clone(),
                verb,
                resource: words.resource,
                subresource: words.subresource,
                namespace: words.namespace,
                name: words.name,
                code,
            }
        });
    }
}

/// The body of a success that has nothing to show.
pub(crate) fn success(code: u16) -> Response {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code });
    Response::with_code(code, status.to_string())
}
