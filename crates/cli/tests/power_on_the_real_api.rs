//! `dogwatch power` from the person to the machine: the real API server, the shipped rights, a real
//! power controller, the real Redfish driver, and a simulated BMC with a machine behind it.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use dogwatch_kubesim::clock::{ClusterClock, TokioClock};
use dogwatch_kubesim::machine::{MachineSpec, MachineState, SimMachine};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_sim::bmc::{BmcSpec, SimBmc, http_server};
use dogwatch_testbed::ControlPlane;
use serde_json::{Value, json};

const PASSWORD: &str = "sekret16";

fn dogwatch(kubeconfig: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(!format!("{stdout}{stderr}").contains(PASSWORD), "{args:?}");
    (output.status.code().unwrap(), stdout, stderr)
}

const MANIFESTS: [&str; 4] = [
    "manifests",
    "--image=none",
    "--controller-image=none",
    "--without-policies",
];

async fn install(plane: &ControlPlane) {
    for (words, kinds) in [
        (&MANIFESTS[..], &[][..]),
        (&["crds", "--hosts"], &["baremetalhosts.metal3.io"]),
    ] {
        let (code, yaml, errors) = dogwatch(plane.admin_kubeconfig(), words);
        assert_eq!(code, 0, "{errors}");
        plane.install_manifests(&yaml, kinds).await.unwrap();
    }
}

/// An account with the shipped roles for people.
async fn operator(plane: &ControlPlane) -> PathBuf {
    let run = async |words: &[&str]| {
        plane.run_kubectl(words, "").await.unwrap();
    };
    run(&["create", "serviceaccount", "ann"]).await;
    let account = "--serviceaccount=default:ann";
    for role in ["dogwatch-viewer", "dogwatch-operator"] {
        let named = format!("--clusterrole={role}");
        run(&["create", "clusterrolebinding", role, &named, account]).await;
        let named = format!("--role={role}");
        let words = ["create", "rolebinding", role, &named, account];
        run(&[&words[..], &["--namespace=dogwatch"]].concat()).await;
    }
    plane.kubeconfig_of("default", "ann").await.unwrap()
}

/// A running machine, and its BMC on a port until the test's process ends.
fn bmc() -> (SimMachine, String) {
    let (told, tells) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let clock: Arc<dyn ClusterClock> =
                Arc::new(TokioClock::starting_at(jiff::Timestamp::now()));
            let machine = SimMachine::running_first_boot(MachineSpec::new(
                "h1",
                SimulationSeed(1),
                Arc::clone(&clock),
            ));
            let bmc = SimBmc::for_machine(
                BmcSpec::new("h1", SimulationSeed(1), clock),
                machine.clone(),
            );
            let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .unwrap();
            let at = listener.local_addr().unwrap();
            let address = format!("redfish+http://{at}{}", bmc.system_path());
            told.send((machine, address)).unwrap();
            http_server::serve_bmc(listener, bmc).await;
        });
    });
    tells.recv().unwrap()
}

async fn host(plane: &ControlPlane, address: &str) {
    let objects = json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "metal" } },
        { "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "bmc", "namespace": "metal" },
          "stringData": { "username": "admin", "password": PASSWORD } },
        { "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
          "metadata": { "name": "h1", "namespace": "metal" },
          "spec": { "online": true, "bmc": { "address": address, "credentialsName": "bmc" } } },
    ]});
    let create = ["create", "-f", "-"];
    plane
        .run_kubectl(&create, &objects.to_string())
        .await
        .unwrap();
}

/// The power controller as a process, killed on drop.
struct Controller(std::process::Child);

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn controller(plane: &ControlPlane) -> Controller {
    let flags = [
        "controller",
        "--components=power",
        "--listen=off",
        "--power-confirm-interval=1s",
        "--power-settle=5s",
        "--soft-power-off-timeout=30s",
    ];
    let child = Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .env_clear()
        .env("KUBECONFIG", plane.admin_kubeconfig())
        .env("DOGWATCH_PROBE_LISTEN", "off")
        .args(flags)
        .stderr(Stdio::null())
        .spawn();
    Controller(child.unwrap())
}

#[tokio::test]
async fn what_a_person_asks_of_a_host_is_done_by_the_controller_and_followed_to_the_end() {
    let plane = ControlPlane::builder().with_controllers([]).start();
    let plane = plane.await.unwrap();
    install(&plane).await;
    let ann = operator(&plane).await;
    let (machine, address) = bmc();
    host(&plane, &address).await;

    let (code, text, errors) = dogwatch(plane.admin_kubeconfig(), &["check", "hosts", "metal/h1"]);
    assert_eq!(code, 0, "{text}{errors}");
    let (code, text, _) = dogwatch(&ann, &["check", "hosts"]);
    assert_eq!(code, 1, "the shipped roles read no Secret: {text}");
    let (code, text, _) = dogwatch(&ann, &["explain", "host/metal/h1"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("no power controller has checked it"),
        "{text}"
    );

    let _controller = controller(&plane);
    let asked = |words: &[&str], last: &str| {
        let mut args = vec!["power"];
        args.extend(words);
        args.extend(["metal/h1", "--wait", "--timeout", "3m"]);
        let (code, text, errors) = dogwatch(&ann, &args);
        assert_eq!(code, 0, "{args:?}\n{text}{errors}");
        assert_eq!(text.lines().last(), Some(last), "{args:?}\n{text}{errors}");
    };
    let cuts = || machine.transition_log().count_power_offs();
    asked(&["on"], "host/metal/h1 is on");
    assert_eq!(cuts(), 0);
    asked(&["cycle"], "host/metal/h1 was off and is on again");
    assert_eq!(cuts(), 1);
    let hold = ["hold", "--hard", "--key=repair"];
    asked(&hold, "host/metal/h1 is kept off and confirmed off");
    assert_eq!((cuts(), machine.power_state()), (2, MachineState::Off));

    let (_, json, _) = dogwatch(&ann, &["status", "hosts", "-o", "json"]);
    let row = serde_json::from_str::<Value>(&json).unwrap()["hosts"][0].clone();
    assert_eq!(
        (&row["power"], &row["heldOffBy"]),
        (&json!("Off"), &json!(["repair"]))
    );
    let (_, text, errors) = dogwatch(&ann, &["explain", "host/metal/h1"]);
    assert_eq!(errors, "", "the shipped roles show everything");
    assert!(
        text.contains("confirmed since") && text.contains("after the request of repair"),
        "{text}"
    );
    let (code, _, errors) = dogwatch(&ann, &["power", "cycle", "metal/h1"]);
    assert_eq!(code, 1, "{errors}");

    asked(&["release", "--key=repair"], "host/metal/h1 is on");
    asked(&["off"], "host/metal/h1 is confirmed off");
    assert_eq!((cuts(), machine.power_state()), (3, MachineState::Off));
    asked(&["on"], "host/metal/h1 is on");
    let (code, text, errors) = dogwatch(&ann, &["check", "hosts", "--from-status"]);
    assert_eq!(code, 0, "{text}{errors}");
}
