//! `dogwatch crds`: the kinds that Dogwatch adds to a cluster.

use std::io::Write as _;

use crate::exit::Failure;
use crate::output;

/// `deploy/crds`, each a document of its own.
pub(super) const CRDS: [&str; 4] = [
    include_str!("../../../../deploy/crds/powerremediations.yaml"),
    include_str!("../../../../deploy/crds/powerremediationtemplates.yaml"),
    include_str!("../../../../deploy/crds/rebootpolicies.yaml"),
    include_str!("../../../../deploy/crds/rebootschedules.yaml"),
];

/// `deploy/crds-hosts`.
const HOSTS: &str = include_str!("../../../../deploy/crds-hosts/baremetalhosts.yaml");

/// Which.
#[derive(Debug, clap::Args)]
pub struct CrdsArgs {
    /// Only BareMetalHost, for a cluster without metal3: where metal3 has installed it, that one stays
    #[arg(long)]
    hosts: bool,
}

/// Prints them.
pub fn run(args: &CrdsArgs) -> Result<(), Failure> {
    let mut out = output::stdout();
    let printed = if args.hosts {
        HOSTS.to_owned()
    } else {
        CRDS.join("---\n")
    };
    out.write_all(printed.as_bytes())?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_api::{
        power_remediation, power_remediation_template, reboot_policy, reboot_schedule,
    };
    use serde_json::Value;

    #[test]
    fn what_is_printed_is_what_this_version_understands() {
        let printed: Vec<Value> = serde_saphyr::from_multiple(&CRDS.join("---\n")).unwrap();
        assert_eq!(
            printed,
            [
                power_remediation::crd(),
                power_remediation_template::crd(),
                reboot_policy::crd(),
                reboot_schedule::crd(),
            ]
        );
        let hosts: Value = serde_saphyr::from_str(HOSTS).unwrap();
        assert_eq!(hosts, dogwatch_api::bare_metal_host::crd());
    }
}
