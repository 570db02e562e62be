//! Asks the API server who a caller is and what the caller may do.
//!
//! **For:** the lock API, which acts for others with Dogwatch's rights: it sends the bearer token
//! to the API server (TokenReview), and what the token's owner asks for as well
//! (SubjectAccessReview).
//! **Promises:** nothing is cached: a revoked token or right is refused at the next request.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, with_timeout};

const AUTHENTICATED_GROUP: &str = "system:authenticated";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiCaller {
    pub name: String,
    /// Tells this user from an earlier one of the same name, where the authenticator gives one.
    pub uid: Option<String>,
    pub groups: Vec<String>,
    /// Further attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl ApiCaller {
    /// The owner of a client certificate: its common name and its organizations, as the API server
    /// itself reads them. Names that Kubernetes reserves are refused: a CA that signs for hosts
    /// must not be able to sign for a kubelet, a ServiceAccount or an administrator.
    ///
    /// # Errors
    /// The reserved name.
    pub fn from_certificate(
        common_name: impl Into<String>,
        organizations: Vec<String>,
    ) -> Result<Self, CertificateRefused> {
        let name = common_name.into();
        if name.starts_with(RESERVED_PREFIX) {
            return Err(CertificateRefused::User(name));
        }
        let mut groups = organizations;
        if let Some(group) = groups
            .iter()
            .find(|group| group.starts_with(RESERVED_PREFIX))
        {
            return Err(CertificateRefused::Group(group.clone()));
        }
        groups.push(AUTHENTICATED_GROUP.to_owned());
        Ok(Self {
            name,
            groups,
            ..Self::default()
        })
    }
}

impl fmt::Display for ApiCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {:?}", self.name)
    }
}

/// Kubernetes' own components, ServiceAccounts and built-in groups have this prefix.
const RESERVED_PREFIX: &str = "system:";

/// Why a client certificate is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateRefused {
    /// `system:admin`, `system:node:…`, `system:serviceaccount:…`.
    #[error("a client certificate may not name a user of Kubernetes itself ({0:?})")]
    User(String),
    /// `system:masters`: the API server grants this group everything, so no right would be checked.
    #[error("a client certificate may not name a group of Kubernetes itself ({0:?})")]
    Group(String),
}

/// Sends access reviews to the API server. Needs `create` on `tokenreviews.authentication.k8s.io`
/// and on `subjectaccessreviews.authorization.k8s.io` (the ClusterRole `system:auth-delegator`).
#[derive(Clone)]
pub struct AccessClient {
    client: Client,
    audiences: Vec<String>,
}

impl AccessClient {
    /// `audiences`: only tokens that were issued for one of them are accepted. A token for the API
    /// server itself or for another service is refused here, and a token of ours is refused there.
    pub fn new(client: Client, audiences: Vec<String>) -> Self {
        Self { client, audiences }
    }

    /// `None` if no user owns the token, or if it was not issued for these audiences.
    pub async fn find_token_owner(&self, token: &str) -> Result<Option<ApiCaller>, Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: Some(self.audiences.clone()),
            },
            ..TokenReview::default()
        };
        let status = self.create_review(review).await?.status.unwrap_or_default();
        // An authenticator that does not support audiences returns none, and has checked none.
        let checked = status.audiences.unwrap_or_default();
        let ours = checked
            .iter()
            .any(|audience| self.audiences.contains(audience));
        let user = status
            .user
            .filter(|_| status.authenticated == Some(true) && ours);
        Ok(user.and_then(caller_of_user))
    }

    /// Whether the caller may `lock` this host: verb `lock` on `rebootlocks.dogwatch.dev`, with the
    /// host as resource name. Source: specification §2.7.
    pub async fn can_lock_host(&self, caller: &ApiCaller, host: &str) -> Result<bool, Error> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(caller.name.clone()),
                uid: caller.uid.clone(),
                groups: Some(caller.groups.clone()),
                extra: Some(caller.extra.clone()),
                resource_attributes: Some(ResourceAttributes {
                    group: Some("dogwatch.dev".to_owned()),
                    resource: Some("rebootlocks".to_owned()),
                    verb: Some("lock".to_owned()),
                    name: Some(host.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let status = self.create_review(review).await?.status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }

    async fn create_review<K>(&self, review: K) -> Result<K, Error>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>,
        K: Clone + fmt::Debug + Serialize + DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        with_timeout(api.create(&PostParams::default(), &review)).await
    }
}

/// `None` for a user without a name: the API server would take an empty name for our own.
fn caller_of_user(user: UserInfo) -> Option<ApiCaller> {
    Some(ApiCaller {
        name: user.username.filter(|name| !name.is_empty())?,
        uid: user.uid,
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    })
}
