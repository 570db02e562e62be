//! Remediation is never printed without the policies that guard it.

use super::*;

#[test]
fn remediation_alone_comes_with_the_policies_that_guard_it() {
    let only = |part: ManifestPart| {
        let args = ManifestsArgs {
            only: vec![part],
            ..args()
        };
        let objects = objects("kube-dogs", &args);
        [LOCKS, CONFIRMATIONS].map(|name| action(&objects, name).is_some())
    };
    assert_eq!(only(ManifestPart::Remediation), [false, true]);
    assert_eq!(only(ManifestPart::Power), [false, false]);
    let old = ClusterInstallation {
        kubernetes: Some((1, 29)),
        ..installed()
    };
    let args = ManifestsArgs {
        only: vec![ManifestPart::Remediation],
        ..args()
    };
    let refused = update(&args, &old).unwrap_err();
    assert!(refused.contains("1.30 or later"), "{refused}");
}
