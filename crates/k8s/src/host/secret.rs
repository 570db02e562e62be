//! Reads the Secret with a BMC's user and password.

use std::fmt;

use dogwatch_core::name::NodeName;
use dogwatch_core::power::PowerReason;
use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::{Api, Client, ResourceExt as _};

use crate::error::{ApiErrorKind, Error, with_timeout};

/// `Debug` shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct BmcSecret {
    /// `username`, without surrounding white space.
    pub username: String,
    /// `password`, without surrounding white space.
    pub password: String,
    /// `ca.crt`, PEM: the CA that the BMC's certificate must be signed by.
    pub ca: Option<Vec<u8>>,
    /// UID and resourceVersion: equal only for the same, unchanged Secret.
    pub version: String,
}

impl fmt::Debug for BmcSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub enum BmcSecretError {
    /// A person has to repair the Secret.
    Missing {
        /// `SecretNotFound`, `SecretIncomplete` or `SecretForbidden`.
        reason: PowerReason,
        /// What is wrong and what to do, without secret content.
        message: String,
    },
    /// It could not be read now; a retry may work.
    Transient(Error),
}

pub(super) async fn read_bmc_secret(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<BmcSecret, BmcSecretError> {
    // The name becomes part of a URL path. Secret names follow the same rule as Node names.
    if NodeName::new(name).is_err() {
        let message = "credentialsName is not a valid name of a Secret: correct it".to_owned();
        return Err(missing_secret(PowerReason::SecretNotFound, message));
    }
    let secrets: Api<SecretObject> = Api::namespaced(client.clone(), namespace);
    match with_timeout(secrets.get(name)).await {
        Ok(object) => parse_secret(&object),
        Err(error) => Err(secret_error(error, namespace, name)),
    }
}

fn secret_error(error: Error, namespace: &str, name: &str) -> BmcSecretError {
    match (error.kind(), &error) {
        (ApiErrorKind::NotFound, _) => missing_secret(
            PowerReason::SecretNotFound,
            format!("there is no Secret {namespace}/{name}: create it, with username and password"),
        ),
        // 401 is a temporary problem of our own token.
        (ApiErrorKind::Forbidden, Error::Answer(status)) if status.code == 403 => missing_secret(
            PowerReason::SecretForbidden,
            format!(
                "the controller may not read Secret {namespace}/{name}: give it a Role in {namespace}, as \
                 deploy/hosts does"
            ),
        ),
        (_, _) => BmcSecretError::Transient(error),
    }
}

fn parse_secret(object: &SecretObject) -> Result<BmcSecret, BmcSecretError> {
    let said = |key: &str| {
        let bytes = &object.data.as_ref()?.get(key)?.0;
        let text = std::str::from_utf8(bytes).ok()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let (username, password) = (said("username"), said("password"));
    let lacks: Vec<&str> = [("username", &username), ("password", &password)]
        .into_iter()
        .filter_map(|(key, value)| value.is_none().then_some(key))
        .collect();
    let (Some(username), Some(password)) = (username, password) else {
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let message = format!(
            "Secret {namespace}/{name} has no {}, or the value is empty or not text: correct it",
            lacks.join(" and no ")
        );
        return Err(missing_secret(PowerReason::SecretIncomplete, message));
    };
    let ca = object.data.as_ref().and_then(|data| data.get("ca.crt"));
    let (uid, version) = (
        object.uid().unwrap_or_default(),
        object.resource_version().unwrap_or_default(),
    );
    Ok(BmcSecret {
        username,
        password,
        ca: ca.map(|bytes| bytes.0.clone()).filter(|ca| !ca.is_empty()),
        version: format!("{uid}/{version}"),
    })
}

fn missing_secret(reason: PowerReason, message: String) -> BmcSecretError {
    BmcSecretError::Missing { reason, message }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kube::client::Body;
    use serde_json::json;
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn read(data: &serde_json::Value) -> Result<BmcSecret, BmcSecretError> {
        let object = json!({ "metadata": { "namespace": "site", "name": "bmc", "uid": "u",
            "resourceVersion": "3" }, "data": data });
        parse_secret(&serde_json::from_value(object).unwrap())
    }

    const ADMIN: &str = "IGFkbWluCg=="; // " admin\n"
    const PASSWORD: &str = "aHVudGVyMgo="; // "hunter2\n"
    const BLANK: &str = "IAo=";
    const BYTES: &str = "//8=";

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, some: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(some);
            Ok(some.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_secret_that_cannot_be_parsed_is_in_no_log_and_in_no_error() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish()
            .with(filter_fn(|metadata| {
                dogwatch_runtime::log::is_target_shown(metadata.target())
            }));
        let _guard = tracing::subscriber::set_default(subscriber);
        for body in [
            r#"{"kind": "Secret", "data": "hunter2"}"#,
            r#"{"kind": "Secret", "data": {"password": "hunter2"#,
            r#"{"kind": "Secret", "metadata": "hunter2"}"#,
        ] {
            let answer = move |_: http::Request<Body>| async move {
                http::Response::builder().body(Body::from(body.as_bytes().to_vec()))
            };
            let client = Client::new(tower::service_fn(answer), "default");
            let Err(BmcSecretError::Transient(error)) =
                super::read_bmc_secret(&client, "site", "bmc").await
            else {
                panic!("{body} is no Secret");
            };
            let words = error.error_chain();
            assert!(!words.contains("hunter2"), "{words}");
        }
        tracing::warn!("what is ours is shown");
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("what is ours is shown"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn user_and_password_are_read_without_white_space_around_them_and_not_shown() {
        let secret = read(&json!({ "username": ADMIN, "password": PASSWORD })).unwrap();
        assert_eq!((&*secret.username, &*secret.password), ("admin", "hunter2"));
        assert_eq!((secret.ca.as_ref(), &*secret.version), (None, "u/3"));
        let shown = format!("{secret:?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("admin"),
            "{shown}"
        );
    }

    #[test]
    fn half_a_secret_is_none_and_the_missing_half_is_named() {
        for (data, lacks) in [
            (json!(null), "no username and no password"),
            (json!({}), "no username and no password"),
            (json!({ "username": ADMIN }), "no password"),
            (json!({ "password": PASSWORD }), "no username"),
            (json!({ "username": ADMIN, "password": "" }), "no password"),
            (
                json!({ "username": ADMIN, "password": BLANK }),
                "no password",
            ),
            (
                json!({ "username": BYTES, "password": PASSWORD }),
                "no username",
            ),
        ] {
            let Err(BmcSecretError::Missing { reason, message }) = read(&data) else {
                panic!("{data}");
            };
            assert_eq!(reason, PowerReason::SecretIncomplete);
            assert!(
                message.contains(lacks) && !message.contains("hunter2"),
                "{message}"
            );
        }
    }
}
