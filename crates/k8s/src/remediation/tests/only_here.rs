//! Tests that no other code deletes a Node or taints it out of service.

use std::fs;
use std::path::{Path, PathBuf};

/// All files that delete objects, and what each deletes.
const DELETING: [(&str, &str); 10] = [
    ("drain/call.rs", "pods, with their UID"),
    ("fleet/node_reboots.rs", "NodeReboots, with their UID"),
    ("fleet/pause.rs", "policies that pause"),
    ("healer/mod.rs", "presences of processes that are gone"),
    ("lock/presence.rs", "a process' own presence"),
    (
        "lock/remediation.rs",
        "free Leases where a quota leaves no room",
    ),
    ("markers/lease.rs", "a Lease of medik8s' that we took"),
    ("node_reboot/client.rs", "NodeReboots that have ended"),
    ("remediation/backup.rs", "what is kept of a deleted Node"),
    (
        "remediation/write/release.rs",
        "a Node with a release permit",
    ),
];

/// All files that name the taint: the release adds it, the Node's writes remove it, and two files
/// read it.
const TAINTING: [&str; 5] = [
    "node/mod.rs",
    "node/view.rs",
    "remediation/observe/leftovers.rs",
    "remediation/write/node.rs",
    "remediation/write/release.rs",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The files of this crate, without tests, that contain one of these words.
fn with(words: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    sources(&root, &mut all);
    let mut found: Vec<String> = all
        .iter()
        .filter(|path| !path.components().any(|part| part.as_os_str() == "tests"))
        .filter(|path| {
            let text = fs::read_to_string(path).unwrap();
            words.iter().any(|word| text.contains(word))
        })
        .map(|path| {
            path.strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/")
        })
        .collect();
    found.sort();
    found
}

/// Only this crate speaks to a real API server (cargo-deny checks that), and in it only these files
/// delete.
#[test]
fn a_node_is_deleted_by_the_release_alone() {
    let deleting = with(&[
        ".delete(",
        "::delete(",
        ".delete_collection(",
        "::delete_collection(",
        "Method::DELETE",
        "\"DELETE\"",
    ]);
    let known: Vec<&str> = DELETING.iter().map(|(file, _)| *file).collect();
    assert_eq!(deleting, known, "say here what a new one deletes");
    for (file, _) in DELETING
        .iter()
        .filter(|(file, _)| !file.starts_with("remediation/"))
    {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let text = fs::read_to_string(root.join(file)).unwrap();
        let deletes = text.lines().filter(|line| line.contains("delete("));
        for line in deletes {
            assert!(!line.contains("node"), "{file}: {line}");
        }
    }
}

#[test]
fn a_node_is_tainted_out_of_service_by_the_release_alone() {
    let found = with(&["OUT_OF_SERVICE", "out-of-service"]);
    let found: Vec<&String> = found
        .iter()
        .filter(|file| !file.ends_with("tests.rs"))
        .collect();
    assert_eq!(
        found, TAINTING,
        "the taint is set by a release, and by nothing else"
    );
}

/// Only the decision can create the permit: its fields are private.
#[test]
fn the_release_demands_a_clearance() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let text = fs::read_to_string(root.join("remediation/write/release.rs")).unwrap();
    let public: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("pub async fn"))
        .collect();
    assert_eq!(public.len(), 1, "{public:?}");
    assert!(
        text.contains("release: &WorkloadRelease,"),
        "what it is given"
    );
}
