//! Dispatch: one request in, one answer out.

use serde_json::json;

use super::access;
use super::audit::RequestAuditEntry;
use super::discovery;
use super::kinds::Subresource;
use super::request::{ApiRequest, ApiResponse};
use super::reviews;
use super::route::{ApiRequestTarget, ApiVerb, ResourcePath, verb_of_request};
use super::status::{ApiError, ApiResult};
use super::store::ObjectStore;
use super::verbs::{binding, create, delete, eviction, list, patch, read, update, watching};
use super::watch::OpenWatch;

#[derive(Debug)]
pub enum ApiReply {
    Response(ApiResponse),
    Watch(OpenWatch),
}

impl ApiReply {
    pub fn status_code(&self) -> u16 {
        match self {
            Self::Response(response) => response.code,
            Self::Watch(_) => 200,
        }
    }

    /// The response. None for a watch.
    pub fn into_response(self) -> Option<ApiResponse> {
        match self {
            Self::Response(response) => Some(response),
            Self::Watch(_) => None,
        }
    }
}

impl From<ApiError> for ApiResponse {
    fn from(error: ApiError) -> Self {
        let body = error.to_status().to_string();
        Self {
            retry_after: error.retry_after(),
            ..Self::with_code(error.code, body)
        }
    }
}

impl ObjectStore {
    /// Serves one request: the whole server, synchronously and without a network.
    pub fn handle_request(&mut self, request: &ApiRequest) -> ApiReply {
        if let Some(answer) = reviews::answer_review(self, request) {
            let response = answer.unwrap_or_else(ApiResponse::from);
            self.record_audit(request, None, Some(ApiVerb::Create), response.code);
            return ApiReply::Response(response);
        }
        let words = ResourcePath::parse(&request.path);
        let verb = words
            .as_ref()
            .and_then(|words| verb_of_request(request, words));
        let reply = match (&words, verb) {
            (Some(words), Some(verb)) => self.serve_resource(request, words, verb),
            (Some(_), None) => Err(ApiError::method_not_allowed()),
            (None, _) => {
                discovery::answer_discovery(&self.registry, request).map(ApiReply::Response)
            }
        };
        let mut reply = reply.unwrap_or_else(|error| ApiReply::Response(error.into()));
        let warnings = std::mem::take(&mut self.warnings);
        if let ApiReply::Response(response) = &mut reply {
            response.warnings = warnings;
        }
        self.record_audit(request, words, verb, reply.status_code());
        reply
    }

    fn serve_resource(
        &mut self,
        request: &ApiRequest,
        words: &ResourcePath,
        verb: ApiVerb,
    ) -> ApiResult<ApiReply> {
        if !self.registry.serves_version(&words.group_version) {
            return Ok(ApiReply::Response(discovery::path_not_found()));
        }
        let target = words
            .resolve_target(&self.registry)
            .ok_or_else(ApiError::no_such_path)?;
        if let Some(refusal) = access::check_access(&self.denials, &request.user, verb, &target) {
            return Err(refusal);
        }
        let response = match verb {
            ApiVerb::Watch => {
                return watching::start_watch(self, request, &target)
                    .map(ApiReply::Watch)
                    .or_else(watching::expired_as_stream);
            }
            ApiVerb::Get
                if matches!(
                    target.subresource,
                    Some(Subresource::Eviction | Subresource::Binding)
                ) =>
            {
                return Err(ApiError::method_not_allowed());
            }
            ApiVerb::Get => read::get_object(self, request, &target)?,
            ApiVerb::List => list::list_objects(self, request, &target)?,
            ApiVerb::Create => self.serve_create(request, &target)?,
            ApiVerb::Update => update::update_object(self, request, &target)?,
            ApiVerb::Patch => patch::patch_object(self, request, &target)?,
            ApiVerb::Delete => delete::delete_target(self, request, &target)?,
            ApiVerb::DeleteCollection => delete::delete_collection(self, request, &target)?,
        };
        Ok(ApiReply::Response(response))
    }

    fn serve_create(
        &mut self,
        request: &ApiRequest,
        target: &ApiRequestTarget,
    ) -> ApiResult<ApiResponse> {
        match target.subresource {
            None if target.name.is_empty() => create::create_object(self, request, target),
            Some(Subresource::Eviction) => eviction::evict_pod(self, request, target),
            Some(Subresource::Binding) => binding::bind_pod(self, request, target),
            None | Some(Subresource::Status) => Err(ApiError::method_not_allowed()),
        }
    }

    fn record_audit(
        &mut self,
        request: &ApiRequest,
        words: Option<ResourcePath>,
        verb: Option<ApiVerb>,
        code: u16,
    ) {
        let time = self.now();
        self.audit.record_request(|| {
            let words = words.unwrap_or_else(|| ResourcePath {
                resource: request.path.clone(),
                ..ResourcePath::default()
            });
            RequestAuditEntry {
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

/// The body of a success without an object: a Status.
pub(crate) fn success_status(code: u16) -> ApiResponse {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code });
    ApiResponse::with_code(code, status.to_string())
}
