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
    /// itself takes them. Names that Kubernetes keeps for itself are refused: an authority that signs for
    /// hosts shall not be able to sign for a kubelet, a ServiceAccount or an administrator.
    ///
    /// # Errors
    /// The reserved name.
    pub fn of_certificate(
        common_name: impl Into<String>,
        organizations: Vec<String>,
    ) -> Result<Self, CertificateRefused> {
        let name = common_name.into();
        if name.starts_with(RESERVED) {
            return Err(CertificateRefused::User(name));
        }
        let mut groups = organizations;
        if let Some(group) = groups.iter().find(|group| group.starts_with(RESERVED)) {
            return Err(CertificateRefused::Group(group.clone()));
        }
        groups.push(AUTHENTICATED.to_owned());
        Ok(Self {
            name,
            groups,
            ..Self::default()
        })
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {:?}", self.name)
    }
}

/// What begins so is Kubernetes' own: its components, its ServiceAccounts, its built-in groups.
const RESERVED: &str = "system:";

/// Why a client certificate speaks for nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateRefused {
    /// `system:admin`, `system:node:…`, `system:serviceaccount:…`.
    #[error("a client certificate may not name a user of Kubernetes itself ({0:?})")]
    User(String),
    /// `system:masters`, which no right is ever asked of.
    #[error("a client certificate may not name a group of Kubernetes itself ({0:?})")]
    Group(String),
}

/// Asks the API server about others. Needs `create` on `tokenreviews.authentication.k8s.io` and on
/// `subjectaccessreviews.authorization.k8s.io` (the ClusterRole `system:auth-delegator`).
#[derive(Clone)]
pub struct AccessClient {
    client: Client,
    audiences: Vec<String>,
}

impl AccessClient {
    /// Asks with this client, for tokens that were made for one of these audiences: one that was made for
    /// the API server itself, or for another service, is worth nothing here, and one of ours nothing there.
    pub fn new(client: Client, audiences: Vec<String>) -> Self {
        Self { client, audiences }
    }

    /// Whose token it is; nothing if it is nobody's, or was not made for these audiences.
    pub async fn owner(&self, token: &str) -> Result<Option<Caller>, Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                audiences: Some(self.audiences.clone()),
            },
            ..TokenReview::default()
        };
        let status = self.create(review).await?.status.unwrap_or_default();
        // An authenticator that knows of no audiences names none, and has checked none.
        let checked = status.audiences.unwrap_or_default();
        let ours = checked
            .iter()
            .any(|audience| self.audiences.contains(audience));
        let user = status
            .user
            .filter(|_| status.authenticated == Some(true) && ours);
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
