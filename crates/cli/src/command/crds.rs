//! Implements `dogwatch crds`, which prints the CRDs that Dogwatch adds to a cluster.

use std::io::Write as _;

use dogwatch_api::{
    bare_metal_host, node_reboot, power_remediation, power_remediation_template, reboot_policy,
    reboot_schedule,
};

use crate::exit::CommandFailure;
use crate::output;

/// The files of `deploy/crds`, one document each.
pub(super) const CRD_MANIFESTS: [&str; 5] = [
    node_reboot::CRD_MANIFEST,
    power_remediation::CRD_MANIFEST,
    power_remediation_template::CRD_MANIFEST,
    reboot_policy::CRD_MANIFEST,
    reboot_schedule::CRD_MANIFEST,
];

#[derive(Debug, clap::Args)]
pub struct CrdsArgs {
    /// Print only BareMetalHost, for a cluster without metal3; metal3's own CRD must stay where it
    /// is installed
    #[arg(long)]
    hosts: bool,
}

pub fn run(args: &CrdsArgs) -> Result<(), CommandFailure> {
    let mut out = output::buffered_stdout();
    let printed = if args.hosts {
        bare_metal_host::CRD_MANIFEST.to_owned()
    } else {
        CRD_MANIFESTS.join("---\n")
    };
    out.write_all(printed.as_bytes())?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_is_printed_is_what_this_version_understands() {
        let printed: Vec<Value> =
            serde_saphyr::from_multiple(&CRD_MANIFESTS.join("---\n")).unwrap();
        assert_eq!(
            printed,
            [
                node_reboot::node_reboot_crd(),
                power_remediation::remediation_crd(),
                power_remediation_template::template_crd(),
                reboot_policy::policy_crd(),
                reboot_schedule::schedule_crd(),
            ]
        );
        let hosts: Value = serde_saphyr::from_str(bare_metal_host::CRD_MANIFEST).unwrap();
        assert_eq!(hosts, bare_metal_host::host_crd());
    }
}
