//! `dogwatch migrate kured`, including the real API server's acceptance of its output; and `kubectl
//! dogwatch`.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use dogwatch_core::kured::KURED_FLAGS;
use dogwatch_testbed::shared_control_plane;
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../docs/migrate-from-kured.md");

fn kured(args: &[&str]) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": "kured", "namespace": "kube-system" },
        "spec": {
            "selector": { "matchLabels": { "name": "kured" } },
            "template": {
                "metadata": { "labels": { "name": "kured" } },
                "spec": {
                    "nodeSelector": { "kubernetes.io/os": "linux" },
                    "volumes": [{ "name": "sentinel", "hostPath": { "path": "/var/run", "type": "Directory" } }],
                    "containers": [{
                        "name": "kured", "image": "ghcr.io/kubereboot/kured:1.23.0",
                        "command": ["/usr/bin/kured"], "args": args,
                        "env": [{ "name": "KURED_NODE_ID", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } }],
                        "volumeMounts": [{ "mountPath": "/sentinel", "name": "sentinel", "readOnly": true }],
                    }],
                },
            },
        },
    })
}

fn dogwatch(kubeconfig: Option<&Path>, args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dogwatch"));
    command.env_clear().args(args);
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = streams.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that does not read its input closes the pipe.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn migrated(args: &[&str]) -> String {
    let file = ["migrate", "kured", "-f", "-"];
    printed(&dogwatch(None, &file, &kured(args).to_string()))
}

const FULL: [&str; 16] = [
    "--reboot-sentinel=/sentinel/reboot-required",
    "--concurrency=2",
    "--reboot-days=mon,tue,fri",
    "--start-time=22:00",
    "--end-time=04:00",
    "--time-zone=Europe/Berlin",
    "--drain-timeout=45m",
    "--force-reboot=true",
    "--drain-pod-selector=app!=db",
    "--prometheus-url=http://prometheus.monitoring.svc:9090",
    "--alert-filter-regexp=^(RebootRequired|Watchdog)$",
    "--alert-firing-only=true",
    "--blocking-pod-selector=runtime=long,cost in (high, higher)",
    "--blocking-pod-selector=!movable",
    "--lock-ttl=30m",
    "--notify-url=slack://s3cret@channel",
];

#[tokio::test]
async fn the_real_api_server_takes_every_policy_that_is_printed() {
    let control_plane = shared_control_plane().await;
    let crds = printed(&dogwatch(None, &["crds"], ""));
    let kinds = ["rebootpolicies.dogwatch.dev"];
    control_plane
        .install_manifests(&crds, &kinds)
        .await
        .unwrap();

    let lines: [&[&str]; 8] = [
        &[],
        &FULL,
        &["--reboot-days=sat,sun"],
        &["--start-time=9am", "--end-time=5pm"],
        &[
            "--start-time=23:00",
            "--end-time=1:30",
            "--alert-filter-match-only",
            "--prometheus-url=https://a:b@prom/x",
        ],
        &[
            "--blocking-pod-selector=cpu>4",
            "--blocking-pod-selector=app",
            "--time-zone=Nowhere/Land",
        ],
        &[
            "--start-time=3:00",
            "--end-time=3:00",
            "--drain-pod-selector=a=b,c=d",
        ],
        &[
            "--reboot-sentinel-command=sh -c 'exit 1'",
            "--reboot-method=signal",
            "--period=5m",
        ],
    ];
    for args in lines {
        let policy = migrated(args);
        let strictly = ["apply", "--validate=strict", "-f", "-"];
        let taken = control_plane.run_kubectl(&strictly, &policy).await;
        assert!(taken.is_ok(), "{args:?}: {taken:?}\n{policy}");
        let back = control_plane
            .run_kubectl(&["get", "rebootpolicy", "kured", "-o", "json"], "")
            .await
            .unwrap();
        let back: Value = serde_json::from_str(&back).unwrap();
        let sent: Value = serde_saphyr::from_str(&policy).unwrap();
        assert_eq!(back["spec"], sent["spec"], "{args:?}");
        control_plane
            .run_kubectl(&["delete", "rebootpolicy", "kured"], "")
            .await
            .unwrap();
    }
}

#[test]
fn the_policy_says_what_kured_was_told_and_no_setting_or_secret_slips() {
    let text = migrated(&FULL);
    let policy: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(
        policy["spec"],
        json!({
            "nodeSelector": { "matchLabels": { "kubernetes.io/os": "linux" } },
            "maxUnavailable": 2,
            "paused": { "reason": "kured is still running" },
            "windows": [
                { "days": ["Mon", "Tue", "Fri"], "start": "00:00", "end": "04:00", "timeZone": "Europe/Berlin" },
                { "days": ["Mon", "Tue", "Fri"], "start": "22:00", "end": "24:00", "timeZone": "Europe/Berlin" },
            ],
            "drain": {
                "timeout": "45m", "onTimeout": "force",
                "exclude": { "matchExpressions": [{ "key": "app", "operator": "In", "values": ["db"] }] },
            },
            "gates": [
                { "pods": { "selector": { "matchLabels": { "runtime": "long" },
                    "matchExpressions": [{ "key": "cost", "operator": "In", "values": ["high", "higher"] }] } } },
                { "pods": { "selector": { "matchExpressions": [{ "key": "movable", "operator": "DoesNotExist" }] } } },
                { "prometheus": { "url": "http://prometheus.monitoring.svc:9090",
                    "alerts": { "ignore": "^(RebootRequired|Watchdog)$", "firingOnly": true } } },
            ],
        })
    );
    assert!(
        text.contains("\"--sentinel=/run/reboot-required\""),
        "{text}"
    );
    assert!(text.contains("--lock-ttl=30m\n#     no equal: "), "{text}");
    let begins = "a reboot begins from 00:00 to 03:15 and from 22:00 to 23:15 only";
    assert!(text.contains(begins), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    for arg in &FULL[..15] {
        let name = arg.split('=').next().unwrap();
        assert!(text.contains(&format!("#   {name}")), "{name}: {text}");
    }
}

#[test]
fn what_is_printed_never_acts_beside_kured_and_says_whom_it_takes() {
    let text = migrated(&[]);
    let policy: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(policy["spec"]["paused"]["reason"], "kured is still running");
    assert!(text.contains("# This policy is PAUSED"), "{text}");
    let unsaid = migrated(&["--time-zone=Nowhere/Land", "--start-time=9am"]);
    let policy: Value = serde_saphyr::from_str(&unsaid).unwrap();
    let reason = policy["spec"]["paused"]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("kured is still running; the window of kured was not taken over"),
        "{reason}"
    );
    let mut everywhere = kured(&[]);
    everywhere["spec"]["template"]["spec"]["nodeSelector"] = Value::Null;
    let output = dogwatch(
        None,
        &["migrate", "kured", "-f", "-"],
        &everywhere.to_string(),
    );
    let text = printed(&output);
    assert!(
        text.contains("the policy has no nodeSelector: it applies to every node")
            && text.contains("the first by name"),
        "{text}"
    );
    // The page lists the same steps as the output.
    assert!(
        PAGE.contains("What is printed is `paused`"),
        "docs/migrate-from-kured.md"
    );
}

#[tokio::test]
async fn a_kured_is_found_in_the_cluster_and_one_that_runs_beside_us_fails_the_check() {
    let control_plane = shared_control_plane().await;
    let kubeconfig = Some(control_plane.admin_kubeconfig());
    let check = ["migrate", "kured", "--check"];
    assert!(printed(&dogwatch(kubeconfig, &check, "")).contains("kured is not"));
    let none = dogwatch(kubeconfig, &["migrate", "kured"], "");
    assert_eq!(none.status.code(), Some(3), "{none:?}");

    let mut daemon = kured(&["--concurrency=4"]);
    daemon["metadata"]["annotations"] = json!({ "weave.works/kured-node-lock": "{\"nodeID\":\"n7\",\"created\":\"2026-01-01T00:00:00Z\"}" });
    control_plane
        .run_kubectl(&["apply", "-f", "-"], &daemon.to_string())
        .await
        .unwrap();
    for args in [
        &["migrate", "kured"][..],
        &["migrate", "kured", "-n", "kube-system"],
    ] {
        let output = dogwatch(kubeconfig, args, "");
        assert!(printed(&output).contains("maxUnavailable: 4"), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("n7 holds"),
            "{output:?}"
        );
    }
    let both = dogwatch(kubeconfig, &check, "");
    assert_eq!(both.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&both.stderr).contains("kube-system/kured"),
        "{both:?}"
    );
    control_plane
        .run_kubectl(&["delete", "-n", "kube-system", "daemonset", "kured"], "")
        .await
        .unwrap();
}

#[test]
fn a_file_with_many_objects_is_searched_and_one_without_kured_is_no_success() {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "kured" } }, kured(&["--frob=1"]) ] });
    let text = format!(
        "# Source: chart\n---\napiVersion: v1\nkind: Namespace\nmetadata: {{ name: x }}\n---\n{list}\n"
    );
    let output = dogwatch(
        None,
        &[
            "migrate", "kured", "-f", "-", "-o", "json", "--name", "workers",
        ],
        &text,
    );
    let whole: Value = serde_json::from_str(&printed(&output)).unwrap();
    assert_eq!(whole["policy"]["metadata"]["name"], "workers");
    let settings = whole["settings"].as_array().unwrap();
    assert!(
        settings
            .iter()
            .any(|row| row["setting"] == "--frob" && row["fate"] == "NOT UNDERSTOOD"),
        "{whole}"
    );
    for (text, code) in [("kind: Namespace", 3), ("{[", 1), ("", 3)] {
        let output = dogwatch(None, &["migrate", "kured", "-f", "-"], text);
        assert_eq!(output.status.code(), Some(code), "{text:?}: {output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains('→'),
            "{output:?}"
        );
    }
    assert_eq!(
        dogwatch(None, &["migrate", "kured", "--name", "remedy"], "")
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn every_flag_of_kured_is_on_the_page_with_its_fate() {
    let missing: Vec<&str> = KURED_FLAGS
        .iter()
        .filter(|flag| {
            let row = format!(
                "| `--{}` | {} | {} |",
                flag.name,
                flag.outcome.as_str(),
                flag.instead
            );
            !PAGE.contains(&row)
        })
        .map(|flag| flag.name)
        .collect();
    assert_eq!(
        missing, [""; 0],
        "write the rows of `FLAGS` into docs/migrate-from-kured.md"
    );
}

/// A folder with the program under the names that kubectl looks for.
fn plugin() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["kubectl-dogwatch", "kubectl_complete-dogwatch"] {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dogwatch"), folder.path().join(name))
            .unwrap();
    }
    folder
}

async fn kubectl(folder: &Path, args: &[&str]) -> Output {
    let control_plane = shared_control_plane().await;
    Command::new(control_plane.kubectl_path())
        .env_clear()
        .env("PATH", folder)
        .env("KUBECONFIG", control_plane.admin_kubeconfig())
        .args(args)
        .output()
        .unwrap()
}

#[tokio::test]
async fn kubectl_runs_the_program_as_its_plugin_and_completes_its_words() {
    let folder = plugin();
    let help = printed(&kubectl(folder.path(), &["dogwatch", "--help"]).await);
    assert!(help.contains("Usage: kubectl dogwatch "), "{help}");
    let help = printed(&kubectl(folder.path(), &["dogwatch", "rollout-restart", "--help"]).await);
    assert!(
        help.contains("Usage: kubectl dogwatch rollout-restart "),
        "{help}"
    );
    let listed = printed(&kubectl(folder.path(), &["plugin", "list"]).await);
    assert!(listed.contains("kubectl-dogwatch"), "{listed}");
    let words = printed(&kubectl(folder.path(), &["__complete", "dogwatch", "roll"]).await);
    assert!(words.contains("rollout-restart"), "{words}");
    let words = printed(
        &kubectl(
            folder.path(),
            &["__complete", "dogwatch", "status", "-o", "j"],
        )
        .await,
    );
    assert!(words.starts_with("json"), "{words}");
    let code = kubectl(
        folder.path(),
        &["dogwatch", "rollout-restart", "deployment/nobody"],
    )
    .await;
    assert_eq!(code.status.code(), Some(3), "{code:?}");
}

/// Runs a shell; `None` if it is not installed.
fn shell(program: &str, script: &str) -> Option<Output> {
    let folder = Path::new(env!("CARGO_BIN_EXE_dogwatch")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let mut command = Command::new(program);
    let output = command
        .env_clear()
        .env("PATH", path)
        .env("TERM", "dumb")
        .arg("-c")
        .arg(script)
        .output();
    match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        output => Some(output.unwrap()),
    }
}

#[test]
fn each_shell_completes_what_is_typed() {
    let bash = "source <(dogwatch completions bash) && COMP_WORDS=(dogwatch roll) COMP_CWORD=1 \
                && _dogwatch dogwatch roll dogwatch && echo \"${COMPREPLY[@]}\"";
    let zsh = "autoload -U compinit && compinit -D -u && dogwatch completions zsh > /dev/null && \
               source <(dogwatch completions zsh) && whence -w _dogwatch && functions _dogwatch_commands";
    let fish = "dogwatch completions fish | source; complete -C 'dogwatch roll'";
    for (program, script) in [("bash", bash), ("zsh", zsh), ("fish", fish)] {
        let Some(output) = shell(program, script) else {
            // testbed/debian-packages.txt lists it; without it, only the other shells are tested.
            eprintln!("{program} is not installed here");
            continue;
        };
        assert!(
            printed(&output).contains("rollout-restart"),
            "{program}: {output:?}"
        );
    }
}
