//! A control plane whose history is recounted when its test ends, by the commands that users have.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use dogwatch_testbed::ControlPlane;

/// Below the control plane's folder.
const DECISION_LOGS: &str = "decision-logs";

/// Recounts the audit log by `dogwatch audit`, and the decision logs of the test's controllers by
/// `dogwatch verify-trace`, unless the test has failed already.
pub struct RecountedPlane(pub ControlPlane);

impl Deref for RecountedPlane {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.0
    }
}

impl Drop for RecountedPlane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let folder = self.0.folder();
        recount("audit", &[folder.join("audit.log")]);
        let logs = std::fs::read_dir(folder.join(DECISION_LOGS));
        let logs = logs.into_iter().flatten().flatten();
        let mut logs: Vec<PathBuf> = logs.map(|entry| entry.path()).collect();
        logs.sort();
        if !logs.is_empty() {
            recount("verify-trace", &logs);
        }
    }
}

/// A new file for the decision log of a controller that uses this kubeconfig, which is in the control
/// plane's folder.
pub fn new_decision_log(kubeconfig: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let folder = kubeconfig.with_file_name(DECISION_LOGS);
    std::fs::create_dir_all(&folder).unwrap();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    folder.join(format!("controller-{number:03}.ndjson"))
}

fn recount(command: &str, files: &[PathBuf]) {
    let output = Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .arg(command)
        .args(files.iter().map(|file| -> &OsStr { file.as_ref() }))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    eprintln!("dogwatch {command}: {said}");
    // Many tests move no node.
    let nothing_to_judge = failed.contains("tell of no write");
    assert!(
        output.status.success() || nothing_to_judge,
        "dogwatch {command}: {failed}"
    );
}
