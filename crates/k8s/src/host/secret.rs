//! The Secret with a BMC's user and password.

use std::fmt;

use dogwatch_core::name::NodeName;
use dogwatch_core::power::reason;
use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::{Api, Client, ResourceExt as _};

use crate::error::{Error, Kind, ask};

/// What a Secret holds. `Debug` shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// `username`, without white space around it.
    pub username: String,
    /// `password`, without white space around it.
    pub password: String,
    /// `ca.crt`, PEM: whom the BMC's certificate must be from.
    pub ca: Option<Vec<u8>>,
    /// UID and resourceVersion: equal only while it is the same Secret, unchanged.
    pub version: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Why there are no credentials.
#[derive(Debug)]
pub enum SecretTrouble {
    /// A person has to do something.
    Missing {
        /// `SecretNotFound`, `SecretIncomplete` or `SecretForbidden`.
        reason: &'static str,
        /// What is wrong and what to do, without any secret.
        message: String,
    },
    /// It could not be read now; that passes.
    NotNow(Error),
}

pub(super) async fn read(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Secret, SecretTrouble> {
    // The name becomes a part of a path; a Secret is called as a Node can be.
    if NodeName::new(name).is_err() {
        let message = "what credentialsName says is no name of a Secret: correct it".to_owned();
        return Err(missing(reason::NO_SECRET, message));
    }
    let secrets: Api<SecretObject> = Api::namespaced(client.clone(), namespace);
    match ask(secrets.get(name)).await {
        Ok(object) => taken(&object),
        Err(error) => Err(refused(error, namespace, name)),
    }
}

fn refused(error: Error, namespace: &str, name: &str) -> SecretTrouble {
    match (error.kind(), &error) {
        (Kind::NotFound, _) => missing(
            reason::NO_SECRET,
            format!("there is no Secret {namespace}/{name}: make it, with username and password"),
        ),
        // 401 is our own token's trouble, which passes.
        (Kind::Forbidden, Error::Answer(status)) if status.code == 403 => missing(
            reason::SECRET_FORBIDDEN,
            format!(
                "the controller may not read Secret {namespace}/{name}: give it a Role in {namespace}, as \
                 deploy/hosts does"
            ),
        ),
        (_, _) => SecretTrouble::NotNow(error),
    }
}

fn taken(object: &SecretObject) -> Result<Secret, SecretTrouble> {
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
            "Secret {namespace}/{name} has no {}, or it is empty or no text: correct it",
            lacks.join(" and no ")
        );
        return Err(missing(reason::BAD_SECRET, message));
    };
    let ca = object.data.as_ref().and_then(|data| data.get("ca.crt"));
    let (uid, version) = (
        object.uid().unwrap_or_default(),
        object.resource_version().unwrap_or_default(),
    );
    Ok(Secret {
        username,
        password,
        ca: ca.map(|bytes| bytes.0.clone()).filter(|ca| !ca.is_empty()),
        version: format!("{uid}/{version}"),
    })
}

fn missing(reason: &'static str, message: String) -> SecretTrouble {
    SecretTrouble::Missing { reason, message }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kube::client::Body;
    use serde_json::json;
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn read(data: &serde_json::Value) -> Result<Secret, SecretTrouble> {
        let object = json!({ "metadata": { "namespace": "site", "name": "bmc", "uid": "u",
            "resourceVersion": "3" }, "data": data });
        taken(&serde_json::from_value(object).unwrap())
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
                dogwatch_process::log::is_shown(metadata.target())
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
            let Err(SecretTrouble::NotNow(error)) = super::read(&client, "site", "bmc").await
            else {
                panic!("{body} is no Secret");
            };
            let words = error.in_words();
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
            let Err(SecretTrouble::Missing { reason, message }) = read(&data) else {
                panic!("{data}");
            };
            assert_eq!(reason, reason::BAD_SECRET);
            assert!(
                message.contains(lacks) && !message.contains("hunter2"),
                "{message}"
            );
        }
    }
}
