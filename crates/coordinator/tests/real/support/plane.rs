//! A control plane for one test at a time.
//!
//! The budget counts every Node of a group, so two tests must not share a control plane at the same
//! time; and one costs seconds to start and 300 MB, so it is handed on from test to test.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use dogwatch_testbed::ControlPlane;
use tokio::sync::{Semaphore, SemaphorePermit};

/// As many control planes as cores of a small machine.
const AT_ONCE: usize = 2;
static PERMITS: Semaphore = Semaphore::const_new(AT_ONCE);
static IDLE: Mutex<Vec<ControlPlane>> = Mutex::new(Vec::new());

/// Somebody who may do nothing, until a test gives him a right.
pub const STRANGER: &str = "stranger-token";
/// The coordinators' account, with the rights that are shipped.
pub const ACCOUNT: &str = "dogwatch-coordinator";
/// Its name in the audit log.
pub const USER: &str = "system:serviceaccount:dogwatch:dogwatch-coordinator";
const POLICIES: &str = "crd/rebootpolicies.dogwatch.dev";
const SHIPPED: [&str; 3] = [
    include_str!("../../../../../deploy/crds/rebootpolicies.yaml"),
    include_str!("../../../../../deploy/base/namespace.yaml"),
    include_str!("../../../../../deploy/base/rbac.yaml"),
];

/// A control plane on loan. Given back, it fails the test if a coordinator was refused in it.
pub struct Plane {
    lent: Option<ControlPlane>,
    /// What stood in the audit log before this test.
    before: usize,
    /// An API server that has just started refuses what it will allow once it has read the roles.
    had_outage: AtomicBool,
    _permit: SemaphorePermit<'static>,
}

impl Plane {
    /// One that nobody uses now, or a new one.
    pub async fn borrow() -> Self {
        let permit = PERMITS.acquire().await.expect("never closed");
        let idle = IDLE.lock().expect("nobody panics with it locked").pop();
        let plane = if let Some(plane) = idle {
            plane
        } else {
            start().await
        };
        Self {
            before: audit_log(&plane).len(),
            lent: Some(plane),
            had_outage: AtomicBool::new(false),
            _permit: permit,
        }
    }

    /// The API server goes away.
    pub fn stop_api(&self) {
        self.had_outage.store(true, Ordering::Relaxed);
        self.deref().stop_api();
    }

    /// The stranger's kubeconfig.
    pub fn stranger(&self) -> PathBuf {
        self.kubeconfig_for(STRANGER).expect("a folder to write to")
    }
}

async fn start() -> ControlPlane {
    let builder = ControlPlane::builder().user(STRANGER, "stranger", &[]);
    let plane = builder
        .start()
        .await
        .expect("the real control plane starts");
    // What `deploy/base` has, but for the DaemonSet: its pods run here as processes.
    for manifest in SHIPPED {
        let applied = plane.run_kubectl(&["apply", "-f", "-"], manifest).await;
        applied.expect("a manifest that is accepted");
    }
    // A coordinator looks for the kind when it starts, and then every 5 minutes.
    let established = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        POLICIES,
    ];
    let established = plane.run_kubectl(&established, "").await;
    established.expect("a kind that is accepted");
    plane
}

impl Deref for Plane {
    type Target = ControlPlane;
    fn deref(&self) -> &ControlPlane {
        self.lent.as_ref().expect("given back only when dropped")
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // After a failed test nobody knows what state it is in.
        if let Some(plane) = self.lent.take()
            && !std::thread::panicking()
        {
            let log = audit_log(&plane);
            let refused = refused(&log[self.before..]);
            IDLE.lock()
                .expect("nobody panics with it locked")
                .push(plane);
            let excused = self.had_outage.load(Ordering::Relaxed);
            assert!(
                excused || refused.is_empty(),
                "the shipped rights are not enough: {refused:#?}"
            );
        }
    }
}

fn audit_log(plane: &ControlPlane) -> String {
    fs::read_to_string(plane.folder().join("audit.log")).expect("an audit log")
}

/// What a coordinator was refused for want of a right.
fn refused(log: &str) -> Vec<&str> {
    let ours = |line: &&str| line.contains(USER) && line.contains(r#""code":403"#);
    log.lines().filter(ours).collect()
}
