//! Who somebody is and what they may do, as the API server says it.
//!
//! For whoever serves requests of others in Dogwatch's name: a bearer token is shown to the API
//! server (TokenReview), and what its owner asks for is put to it too (SubjectAccessReview). Nothing
//! is remembered: a token or a right that was taken away is gone with the next request.

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

use crate::error::{Error, ask};

/// The group of everybody whose name is known.
const AUTHENTICATED: &str = "system:authenticated";

/// Somebody, as the API server knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user's name.
    pub name: String,
    /// What tells this user from another one of the same name, where that is known.
    pub uid: Option<String>,
    /// The user's groups.
    pub groups: Vec<String>,
    /// What else the authenticator said.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Caller {
    /// The owner of a client certificate: its common name and its organizations, as the API server
    /// itself takes them.
    pub fn of_certificate(common_name: impl Into<String>, organizations: Vec<String>) -> Self {
        let mut groups = organizations;
        groups.push(AUTHENTICATED.to_owned());
        Self {
            name: common_name.into(),
            groups,
            ..Self::default()
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {:?}", self.name)
    }
}

/// Asks the API server about others. Needs `create` on `tokenreviews.authentication.k8s.io` and on
/// `subjectaccessreviews.authorization.k8s.io` (the ClusterRole `system:auth-delegator`).
#[derive(Clone)]
pub struct AccessClient {
    client: Client,
}

impl AccessClient {
    /// Asks with this client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Whose token it is; nothing if it is nobody's, or not for this API server.
    pub async fn owner(&self, token: &str) -> Result<Option<Caller>, Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let status = self.create(review).await?.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        Ok(user.and_then(caller))
    }

    /// Whether they may `lock` this host: verb `lock` on `rebootlocks.dogwatch.dev`, named as the
    /// host. Source: specification §2.7.
    pub async fn may_lock(&self, caller: &Caller, host: &str) -> Result<bool, Error> {
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
        let status = self.create(review).await?.status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }

    async fn create<K>(&self, review: K) -> Result<K, Error>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>,
        K: Clone + fmt::Debug + Serialize + DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        ask(api.create(&PostParams::default(), &review)).await
    }
}

/// Nobody for a user without a name, which the API server could only take for the one who asks.
fn caller(user: UserInfo) -> Option<Caller> {
    Some(Caller {
        name: user.username.filter(|name| !name.is_empty())?,
        uid: user.uid,
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    })
}
