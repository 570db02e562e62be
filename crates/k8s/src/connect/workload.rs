//! Connects by a kubeconfig that somebody else wrote, without touching the disk.

use dogwatch_core::name::GroupName;
use http::uri::Scheme;
use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::build_connection;

/// Cluster API's kubeconfigs have 6 KiB.
const MAX_KUBECONFIG_BYTES: usize = 64 * 1024;

/// Why a kubeconfig is refused, as text after "the kubeconfig". It never contains a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KubeconfigRefusal(String);

impl KubeconfigRefusal {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// A connection to a kubeconfig's current context.
#[derive(Clone)]
pub struct ContextConnection {
    pub client: Client,
    /// The context's namespace, if it names one.
    pub namespace: Option<String>,
}

/// Connects to the current context of this kubeconfig, and sends nothing. It has to contain all
/// that is needed: whoever wrote it must not make this process read a file, run a program or trust
/// a server that nobody vouches for.
///
/// # Errors
/// [`KubeconfigRefusal`].
pub async fn connect_by_kubeconfig_text(
    text: &[u8],
) -> Result<ContextConnection, KubeconfigRefusal> {
    let (mut config, namespace) = load_contained_config(text).await?;
    // kube takes it from the environment.
    config.proxy_url = None;
    let connection = build_connection(config);
    let connection = connection.map_err(|_| {
        // The cause may quote a key.
        KubeconfigRefusal::new("has certificates or keys that cannot be parsed")
    })?;
    Ok(ContextConnection {
        client: connection.client,
        namespace,
    })
}

/// The configuration, and the namespace that its current context names.
async fn load_contained_config(text: &[u8]) -> Result<(Config, Option<String>), KubeconfigRefusal> {
    if text.len() > MAX_KUBECONFIG_BYTES {
        return Err(KubeconfigRefusal::new("is larger than 64 KiB"));
    }
    let text = std::str::from_utf8(text).map_err(|_| KubeconfigRefusal::new("is not text"))?;
    // The cause may quote a credential.
    let read = Kubeconfig::from_yaml(text)
        .map_err(|_| KubeconfigRefusal::new("is not a kubeconfig in YAML"))?;
    let clusters = read.clusters.iter().filter_map(|it| it.cluster.as_ref());
    clusters.into_iter().try_for_each(check_cluster)?;
    let users = read
        .auth_infos
        .iter()
        .filter_map(|it| it.auth_info.as_ref());
    users.into_iter().try_for_each(check_user)?;
    let namespace = find_context_namespace(&read)?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    let config = config.map_err(|_| {
        KubeconfigRefusal::new(
            "has no current context with a cluster and a user, or data that is not base64",
        )
    })?;
    if config.cluster_url.scheme() != Some(&Scheme::HTTPS) || config.root_cert.is_none() {
        return Err(KubeconfigRefusal::new("names no server by https"));
    }
    Ok((config, namespace))
}

/// It becomes part of request paths, so that it has to be a namespace's name.
fn find_context_namespace(kubeconfig: &Kubeconfig) -> Result<Option<String>, KubeconfigRefusal> {
    let mut contexts = kubeconfig.contexts.iter();
    let current = contexts.find(|it| Some(&it.name) == kubeconfig.current_context.as_ref());
    let namespace = current
        .and_then(|current| current.context.as_ref())
        .and_then(|context| context.namespace.clone())
        .filter(|namespace| !namespace.is_empty());
    // A namespace is a DNS label, as a group's name is.
    if namespace
        .as_deref()
        .is_some_and(|name| GroupName::new(name).is_err())
    {
        return Err(KubeconfigRefusal::new(
            "names a namespace that is no DNS label",
        ));
    }
    Ok(namespace)
}

fn check_cluster(cluster: &Cluster) -> Result<(), KubeconfigRefusal> {
    let server = cluster.server.as_deref().unwrap_or_default();
    let authority = cluster.certificate_authority_data.as_deref();
    let refused = [
        (
            cluster.certificate_authority.is_some(),
            "names a file (certificate-authority)",
        ),
        (
            cluster.insecure_skip_tls_verify == Some(true),
            "does not verify the server (insecure-skip-tls-verify)",
        ),
        (cluster.proxy_url.is_some(), "names a proxy (proxy-url)"),
        (!server.starts_with("https://"), "names no server by https"),
        (
            authority.is_none_or(str::is_empty),
            "has no certificate-authority-data",
        ),
    ];
    first_refusal(&refused)
}

fn check_user(user: &AuthInfo) -> Result<(), KubeconfigRefusal> {
    let refused = [
        (user.exec.is_some(), "runs a program (exec)"),
        (
            user.auth_provider.is_some(),
            "uses a plugin (auth-provider)",
        ),
        (user.token_file.is_some(), "names a file (tokenFile)"),
        (
            user.client_certificate.is_some(),
            "names a file (client-certificate)",
        ),
        (user.client_key.is_some(), "names a file (client-key)"),
        (
            user.username.is_some() || user.password.is_some(),
            "uses a password, which no API server accepts",
        ),
        (
            user.impersonate.is_some(),
            "acts as another user (as): give the account its own rights",
        ),
    ];
    first_refusal(&refused)
}

fn first_refusal(refused: &[(bool, &str)]) -> Result<(), KubeconfigRefusal> {
    let first = refused.iter().find(|(is_refused, _)| *is_refused);
    first.map_or(Ok(()), |(_, why)| Err(KubeconfigRefusal::new(*why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CA: &str = "certificate-authority-data: LS0tLS1CRUdJTg==";

    /// A kubeconfig with these lines of its cluster and of its user.
    fn kubeconfig(server: &str, cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: '{server}', {cluster}}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\n"
        )
    }

    #[tokio::test]
    async fn a_kubeconfig_that_would_touch_the_disk_or_trust_anybody_is_refused() {
        let server = "https://10.0.0.1:6443";
        let file = std::env::temp_dir().join("dogwatch-no-such-file");
        let file = file.display();
        for (text, why) in [
            (kubeconfig("http://10.0.0.1", CA, "token: t"), "https"),
            (
                kubeconfig(server, "tls-server-name: x", "token: t"),
                "certificate-authority-data",
            ),
            (
                kubeconfig(
                    server,
                    &format!("certificate-authority: {file}"),
                    "token: t",
                ),
                "certificate-authority",
            ),
            (
                kubeconfig(
                    server,
                    &format!("{CA}, insecure-skip-tls-verify: true"),
                    "token: t",
                ),
                "insecure-skip-tls-verify",
            ),
            (
                kubeconfig(server, &format!("{CA}, proxy-url: 'http://x'"), "token: t"),
                "proxy-url",
            ),
            (
                kubeconfig(server, CA, &format!("tokenFile: {file}")),
                "tokenFile",
            ),
            (
                kubeconfig(server, CA, &format!("client-certificate: {file}")),
                "client-certificate",
            ),
            (
                kubeconfig(server, CA, &format!("client-key: {file}")),
                "client-key",
            ),
            (
                kubeconfig(
                    server,
                    CA,
                    "exec: {apiVersion: client.authentication.k8s.io/v1, command: id}",
                ),
                "exec",
            ),
            (
                kubeconfig(server, CA, "auth-provider: {name: gcp}"),
                "auth-provider",
            ),
            (
                kubeconfig(server, CA, "username: a, password: secret-word"),
                "password",
            ),
            (kubeconfig(server, CA, "token: t, as: admin"), "as"),
            ("no: [kubeconfig".to_owned(), "YAML"),
            ("x".repeat(65 * 1024), "64 KiB"),
        ] {
            let refused = load_contained_config(text.as_bytes()).await;
            let said = refused.err().map(|refusal| refusal.to_string());
            assert!(
                said.as_ref().is_some_and(|said| said.contains(why)),
                "{why}: {said:?}"
            );
            assert!(!said.unwrap().contains("secret-word"));
        }
    }

    #[test]
    fn the_namespace_of_the_current_context_is_read_where_it_names_one() {
        for (context, expected) in [
            ("user: u", None),
            ("user: u, namespace: ''", None),
            ("user: u, namespace: dogs", Some("dogs")),
            ("user: u, namespace: a/b", None),
        ] {
            let text = kubeconfig("https://10.0.0.1", CA, "token: t")
                .replace("user: u}", &format!("{context}}}"))
                .replace(
                    "contexts: [",
                    "contexts: [{name: x, context: {cluster: c, user: u, namespace: x}}, ",
                );
            let read = Kubeconfig::from_yaml(&text).unwrap();
            let found = find_context_namespace(&read);
            assert_eq!(found.is_err(), context.contains('/'), "{context}");
            assert_eq!(found.ok().flatten().as_deref(), expected, "{context}");
        }
    }

    /// A second user or cluster that is not in use is refused too: a later edit may select it.
    #[tokio::test]
    async fn no_part_of_a_kubeconfig_may_run_a_program() {
        let text = kubeconfig("https://10.0.0.1", CA, "token: t").replace(
            "users: [",
            "users: [{name: x, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: id}}}, ",
        );
        let refused = load_contained_config(text.as_bytes()).await;
        assert!(refused.is_err_and(|refusal| refusal.to_string().contains("exec")));
    }
}
