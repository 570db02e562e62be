//! Parses what a person writes for an object.

use dogwatch_core::name::{GroupName, NodeName};

use super::{NODE_REBOOT_WORDS, NODE_WORDS, ObjectKind, POLICY_WORDS};
use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;

/// A namespaced object: `KIND/NAMESPACE/NAME` or `KIND/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectArg {
    pub kind: ObjectKind,
    namespace: Option<String>,
    name: String,
}

/// A Node, or a namespaced object. A name without a kind is a Node's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceArg {
    Node(NodeName),
    Object(ObjectArg),
}

impl ResourceArg {
    /// Parses a Node, or an object of one of these kinds.
    pub fn parse_argument(text: &str, kinds: &[ObjectKind]) -> Result<Self, String> {
        let prefix = ObjectKind::split_prefix(text).filter(|(kind, _)| kinds.contains(kind));
        if let Some((kind, name)) = prefix {
            let hint = || {
                let word = kind.as_str();
                format!("write {word}/NAMESPACE/NAME, or {word}/NAME with -n NAMESPACE")
            };
            let object = ObjectArg::parse_name(kind, name).ok_or_else(hint)?;
            return Ok(ResourceArg::Object(object));
        }
        match strip_kind(text, NODE_WORDS) {
            Ok(name) => parse_node_name(name).map(ResourceArg::Node),
            Err(_) => Err(unknown_kind_text(text, kinds)),
        }
    }
}

fn unknown_kind_text(text: &str, kinds: &[ObjectKind]) -> String {
    let forms: Vec<String> = kinds
        .iter()
        .map(|kind| format!("{}/NAMESPACE/NAME", kind.as_str()))
        .collect();
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    let (last, others) = forms.split_last().expect("a command takes some kind");
    let others = [&["NODE", "node/NODE"][..], others].concat().join(", ");
    format!("{text:?} names no object that this command takes: write {others} or {last}")
}

impl ObjectArg {
    fn parse_name(kind: ObjectKind, text: &str) -> Option<Self> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        let is_good = is_object_name(name) && namespace.is_none_or(is_object_name);
        is_good.then(|| Self {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }

    /// Makes the full name with `make`. The namespace is the named one, else `-n`, else that of the
    /// kubeconfig's context.
    pub fn resolve_name<T>(
        &self,
        cluster: &ClusterArgs,
        connected: &ConnectedCluster,
        make: impl FnOnce(String, String) -> T,
    ) -> T {
        let given = cluster.namespace_given.then(|| cluster.namespace.clone());
        let namespace = self.namespace.clone().or(given);
        let here = || connected.fleet.default_namespace().to_owned();
        make(namespace.unwrap_or_else(here), self.name.clone())
    }
}

fn is_object_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    (1..=253).contains(&text.len()) && text.chars().all(allowed)
}

/// Accepts `NAMESPACE/NAME` or the bare name, either with or without the kind of a host.
pub fn parse_host(text: &str) -> Result<ObjectArg, String> {
    let name = match ObjectKind::split_prefix(text) {
        Some((ObjectKind::Host, name)) => name,
        Some((ObjectKind::Machine | ObjectKind::Remediation | ObjectKind::Schedule, _)) | None => {
            text
        }
    };
    let host = ObjectArg::parse_name(ObjectKind::Host, name);
    host.ok_or_else(|| "write NAMESPACE/NAME, or NAME with -n NAMESPACE".to_owned())
}

/// Accepts `node/NAME` or the bare name.
pub fn parse_node(text: &str) -> Result<NodeName, String> {
    parse_node_name(strip_kind(text, NODE_WORDS)?)
}

fn parse_node_name(name: &str) -> Result<NodeName, String> {
    NodeName::new(name).map_err(|error| error.to_string())
}

/// The name in `nodereboot/NAME`; `None`: another kind is written, or none.
pub fn parse_node_reboot(text: &str) -> Option<Result<String, String>> {
    let (word, name) = text.split_once('/')?;
    NODE_REBOOT_WORDS.contains(&word).then(|| {
        let is_good = is_object_name(name);
        let hint = || "write nodereboot/NAME: a NodeReboot has no namespace".to_owned();
        is_good.then(|| name.to_owned()).ok_or_else(hint)
    })
}

/// Accepts `rebootpolicy/NAME` or the bare name.
pub fn parse_policy(text: &str) -> Result<String, String> {
    let name = GroupName::new(strip_kind(text, POLICY_WORDS)?);
    name.map(|name| name.to_string())
        .map_err(|error| error.to_string())
}

fn strip_kind<'a>(text: &'a str, words: &[&str]) -> Result<&'a str, String> {
    match text.split_once('/') {
        None => Ok(text),
        Some((word, name)) if words.contains(&word) => Ok(name),
        Some((word, _)) => Err(format!(
            "{word:?} is not a {}: write {}/NAME",
            words[0], words[0]
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: ObjectKind, namespace: Option<&str>, name: &str) -> ObjectArg {
        ObjectArg {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_node_is_named_with_or_without_its_kind() {
        for text in ["n1", "node/n1", "nodes/n1", "no/n1"] {
            assert_eq!(parse_node(text).unwrap().as_str(), "n1", "{text}");
        }
        assert!(parse_node("node/").is_err());
        assert!(parse_policy("rebootpolicy/workers").is_ok());
        assert!(parse_policy("node/workers").is_err());
    }

    #[test]
    fn a_node_reboot_is_named_by_its_kind_and_has_no_namespace() {
        for text in ["nodereboot/a", "nodereboots/a", "nr/a"] {
            assert_eq!(parse_node_reboot(text), Some(Ok("a".into())), "{text}");
        }
        for text in ["nr/", "nr/a/b", "nr/A"] {
            assert!(matches!(parse_node_reboot(text), Some(Err(_))), "{text}");
        }
        assert_eq!(parse_node_reboot("node/a"), None);
        assert_eq!(parse_node_reboot("nr"), None);
    }

    #[test]
    fn a_host_is_named_with_or_without_its_kind_and_its_namespace() {
        for (text, namespace, name) in [
            ("h1", None, "h1"),
            ("metal/h1", Some("metal"), "h1"),
            ("host/h1", None, "h1"),
            ("host/metal/h1", Some("metal"), "h1"),
            ("bmh/metal/h1", Some("metal"), "h1"),
            ("host", None, "host"),
        ] {
            let host = object(ObjectKind::Host, namespace, name);
            assert_eq!(parse_host(text), Ok(host), "{text}");
        }
        for text in [
            "",
            "/",
            "metal/",
            "/h1",
            "a/b/c",
            "host/a/b/c",
            "metal/H1",
            "a b",
        ] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_object_is_named_by_its_kind_with_or_without_its_namespace() {
        for (text, kind, namespace, name) in [
            ("machine/ns/m1", ObjectKind::Machine, Some("ns"), "m1"),
            ("machines/m1", ObjectKind::Machine, None, "m1"),
            (
                "remediation/ns/r1",
                ObjectKind::Remediation,
                Some("ns"),
                "r1",
            ),
            ("powerremediation/r1", ObjectKind::Remediation, None, "r1"),
            ("prem/ns/r1", ObjectKind::Remediation, Some("ns"), "r1"),
            ("schedule/monthly", ObjectKind::Schedule, None, "monthly"),
            (
                "rbs/metal3/monthly",
                ObjectKind::Schedule,
                Some("metal3"),
                "monthly",
            ),
            (
                "rebootschedules/a/host",
                ObjectKind::Schedule,
                Some("a"),
                "host",
            ),
            ("host/metal/h1", ObjectKind::Host, Some("metal"), "h1"),
            (
                "baremetalhost/metal/h1",
                ObjectKind::Host,
                Some("metal"),
                "h1",
            ),
        ] {
            let expected = ResourceArg::Object(object(kind, namespace, name));
            assert_eq!(
                ResourceArg::parse_argument(text, &ObjectKind::ALL),
                Ok(expected),
                "{text}"
            );
        }
        for text in ["h1", "node/h1", "schedule"] {
            let parsed = ResourceArg::parse_argument(text, &ObjectKind::ALL);
            assert!(matches!(parsed, Ok(ResourceArg::Node(_))), "{text}");
        }
        for text in [
            "machine/",
            "machine/a/b/c",
            "remediation//x",
            "machine/A",
            "schedule/",
            "schedule//a",
            "schedule/A",
            "schedule/a/b/c",
            "pod/a",
            "metal/h1",
            "host/a/b/c",
        ] {
            let said = ResourceArg::parse_argument(text, &ObjectKind::ALL).unwrap_err();
            assert!(said.contains("NAMESPACE/NAME"), "{text}: {said}");
        }
    }
}
