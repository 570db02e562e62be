//! `dogwatch manifests`: the kustomize base in one piece, for those who have no kustomize.

use std::io::Write as _;

use clap::builder::NonEmptyStringValueParser;
use dogwatch_api::DEFAULT_NAMESPACE;
use dogwatch_core::name::GroupName;

use super::crds::CRDS;
use crate::args::Cluster;
use crate::exit::{Exit, Failure};
use crate::output;

/// `deploy/base`, in the order in which it is to be applied.
const BASE: [&str; 4] = [
    CRDS[0],
    include_str!("../../../../deploy/base/namespace.yaml"),
    include_str!("../../../../deploy/base/rbac.yaml"),
    include_str!("../../../../deploy/base/daemonset.yaml"),
];

/// The image in the base, without its tag.
const IMAGE: &str = "dogwatch-coordinator";

/// What differs from the base.
#[derive(Debug, clap::Args)]
pub struct ManifestsArgs {
    /// The coordinator's image
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    image: Option<String>,
}

/// Prints them.
pub fn run(cluster: &Cluster, args: &ManifestsArgs) -> Result<(), Failure> {
    // A namespace is a DNS label, by the same rule as a group.
    GroupName::new(cluster.namespace.as_str()).map_err(|error| {
        Failure::new(
            Exit::Usage,
            format!("namespace {:?}: {}", cluster.namespace, error.why),
        )
    })?;
    let mut out = output::stdout();
    out.write_all(manifests(&cluster.namespace, args.image.as_deref()).as_bytes())?;
    Ok(out.flush()?)
}

/// All documents. The comments stay: whoever reviews them wants to know why a right is asked for.
fn manifests(namespace: &str, image: Option<&str>) -> String {
    let lines = BASE.join("---\n");
    let replaced = lines.lines().map(|line| replaced(line, namespace, image));
    replaced.map(|line| line + "\n").collect()
}

fn replaced(line: &str, namespace: &str, image: Option<&str>) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    match (line.trim_start().split_once(": "), image) {
        (Some((key @ ("namespace" | "name"), DEFAULT_NAMESPACE)), _) => {
            format!("{indent}{key}: {namespace}")
        }
        (Some(("image", there)), Some(image)) if there.starts_with(IMAGE) => {
            format!("{indent}image: {image}")
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn objects(namespace: &str, image: Option<&str>) -> Vec<Value> {
        serde_saphyr::from_multiple(&manifests(namespace, image)).unwrap()
    }

    fn of<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
        objects
            .iter()
            .filter(|object| object["kind"] == kind)
            .collect()
    }

    #[test]
    fn everything_stands_in_the_namespace_that_was_asked_for() {
        let objects = objects("kube-dogs", None);
        assert_eq!(
            of(&objects, "Namespace")[0]["metadata"]["name"],
            "kube-dogs"
        );
        let namespaces: Vec<&str> = objects
            .iter()
            .filter_map(|object| object["metadata"]["namespace"].as_str())
            .collect();
        assert_eq!(
            namespaces,
            [
                "kube-dogs",
                "kube-dogs",
                "kube-dogs",
                "default",
                "default",
                "kube-dogs"
            ]
        );
        for kind in ["RoleBinding", "ClusterRoleBinding"] {
            for binding in of(&objects, kind) {
                assert_eq!(
                    binding["subjects"][0]["namespace"], "kube-dogs",
                    "{binding}"
                );
                assert_eq!(binding["subjects"][0]["name"], "dogwatch-coordinator");
            }
        }
        assert!(!manifests("kube-dogs", None).contains("namespace: dogwatch\n"));
    }

    #[test]
    fn the_image_is_that_of_this_version_unless_another_is_named() {
        let image = |image| {
            let objects = objects("dogwatch", image);
            of(&objects, "DaemonSet")[0]["spec"]["template"]["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            image(None),
            format!("dogwatch-coordinator:{}", env!("CARGO_PKG_VERSION"))
        );
        assert_eq!(image(Some("here/c:1")), "here/c:1");
    }

    #[test]
    fn the_coordinator_is_found_by_the_name_and_label_that_explain_looks_for() {
        let objects = objects("dogwatch", None);
        let set = of(&objects, "DaemonSet")[0];
        assert_eq!(set["metadata"]["name"], dogwatch_api::COORDINATOR);
        let label = &set["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"];
        assert_eq!(label, dogwatch_api::COORDINATOR);
    }

    #[test]
    fn the_coordinator_understands_the_flags_it_is_given() {
        use clap::Parser as _;
        let objects = objects("dogwatch", None);
        let container = &of(&objects, "DaemonSet")[0]["spec"]["template"]["spec"]["containers"][0];
        let flags = container["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|flag| flag.as_str().unwrap());
        let words = ["dogwatch-coordinator", "--node-name", "n1"]
            .into_iter()
            .chain(flags);
        let args = dogwatch_coordinator::args::Args::try_parse_from(words).unwrap();
        assert_eq!(args.host_root.to_str(), Some("/host"));
        assert_eq!(
            args.listen.to_string(),
            format!(":{}", container["ports"][0]["containerPort"])
        );
        let mount = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
        let sentinel = args.sentinel[0].strip_prefix("/").unwrap();
        assert!(
            args.host_root.join(sentinel).starts_with(mount),
            "{sentinel:?} is seen below {mount}"
        );
    }
}
