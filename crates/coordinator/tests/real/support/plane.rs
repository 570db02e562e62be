//! A control plane for one test at a time.
//!
//! The budget counts every Node of a group, so two tests must not share a control plane at the same
//! time. A control plane takes seconds to start and 300 MB, so it is passed on from test to test.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use dogwatch_testbed::ControlPlane;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::policies;

/// As many control planes as cores of a small machine.
const AT_ONCE: usize = 2;
static PERMITS: Semaphore = Semaphore::const_new(AT_ONCE);
static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

/// An idle control plane for the next test, and whether the policies are in force there.
struct Idle {
    plane: ControlPlane,
    policies: bool,
}

/// An account without rights, until a test gives it one.
pub const STRANGER: &str = "stranger-token";
/// The coordinators' account, with the shipped rights.
pub const ACCOUNT: &str = "dogwatch-coordinator";
/// The account's name in the audit log.
pub const USER: &str = "system:serviceaccount:dogwatch:dogwatch-coordinator";
const POLICIES: &str = "crd/rebootpolicies.dogwatch.dev";
const SHIPPED: [&str; 6] = [
    include_str!("../../../../../deploy/crds/rebootpolicies.yaml"),
    include_str!("../../../../../deploy/base/namespace.yaml"),
    include_str!("../../../../../deploy/base/rbac.yaml"),
    include_str!("../../../../../deploy/base/controller-rbac.yaml"),
    include_str!("../../../../../deploy/power/rbac.yaml"),
    include_str!("../../../../../deploy/delete-pods/rbac.yaml"),
];

/// A borrowed control plane. On return, the test fails if a coordinator was refused: neither a
/// missing right nor an admission policy may block it.
pub struct Plane {
    lent: Option<ControlPlane>,
    policies: bool,
    /// Length of the audit log before this test.
    before: usize,
    /// The test expects refusals; or the API server has just started, and refuses requests until it
    /// has read the roles.
    excused: AtomicBool,
    _permit: SemaphorePermit<'static>,
}

impl Plane {
    /// Borrows an idle control plane, or starts one: with the admission policies of
    /// `deploy/policies-deny` in force, or without any.
    pub async fn borrow(policies: bool) -> Self {
        let permit = PERMITS.acquire().await.expect("never closed");
        let plane = match idle(policies) {
            Some(plane) => plane,
            None => start(policies).await,
        };
        Self {
            before: audit_log(&plane).len(),
            lent: Some(plane),
            policies,
            excused: AtomicBool::new(false),
            _permit: permit,
        }
    }

    /// Allows refusals of the coordinator in this test.
    pub fn expect_refusals(&self) {
        self.excused.store(true, Ordering::Relaxed);
    }

    pub fn stop_api(&self) {
        self.excused.store(true, Ordering::Relaxed);
        self.deref().stop_api();
    }

    pub fn stranger(&self) -> PathBuf {
        self.kubeconfig_for(STRANGER).expect("a folder to write to")
    }
}

/// An idle control plane of this kind. Idle ones of the other kind are stopped, because each takes
/// 300 MB.
fn idle(policies: bool) -> Option<ControlPlane> {
    let mut idle = IDLE.lock().expect("nobody panics with it locked");
    let place = idle.iter().position(|idle| idle.policies == policies);
    if place.is_none() {
        idle.pop();
    }
    place.map(|place| idle.swap_remove(place).plane)
}

async fn start(policies: bool) -> ControlPlane {
    let builder = ControlPlane::builder().with_user(STRANGER, "stranger", &[]);
    let plane = builder
        .start()
        .await
        .expect("the real control plane starts");
    // Everything of `deploy/base` except the DaemonSet: its pods run here as processes.
    for manifest in SHIPPED {
        let applied = plane.run_kubectl(&["apply", "-f", "-"], manifest).await;
        applied.expect("a manifest that is accepted");
    }
    let rights = plane.wait_until_rights_are_in_force().await;
    rights.expect("the API server goes by its roles");
    // A coordinator looks for the kind when it starts, and then every 5 minutes.
    let established = [
        "wait",
        "--for=condition=Established",
        "--timeout=180s",
        POLICIES,
    ];
    let established = plane.run_kubectl(&established, "").await;
    established.expect("a kind that is accepted");
    if policies {
        policies::install(&plane).await;
    }
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
        // After a failed test the state of the control plane is unknown.
        if let Some(plane) = self.lent.take()
            && !std::thread::panicking()
        {
            let log = audit_log(&plane);
            let refused = refused(&log[self.before..]);
            let policies = self.policies;
            IDLE.lock()
                .expect("nobody panics with it locked")
                .push(Idle { plane, policies });
            let excused = self.excused.load(Ordering::Relaxed);
            assert!(
                excused || refused.is_empty(),
                "the shipped rights do not cover these requests: {refused:#?}"
            );
        }
    }
}

fn audit_log(plane: &ControlPlane) -> String {
    fs::read_to_string(plane.folder().join("audit.log")).expect("an audit log")
}

/// The requests of a coordinator that were refused, by a missing right or by a policy.
fn refused(log: &str) -> Vec<&str> {
    let ours = |line: &&str| line.contains(USER) && line.contains(r#""code":403"#);
    log.lines().filter(ours).collect()
}
