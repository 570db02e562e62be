//! The flags of power control. Source: specification §7.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use dogwatch_controller::power::{HostRegistry, PowerSettings, driver_connector};
use dogwatch_core::duration;
use dogwatch_core::name::GroupName;
use dogwatch_core::power::{OwnerRules, PowerConfig};

use crate::exit::{CliExitCode, CommandFailure};

/// `dogwatch_core::power::METAL3_NAMESPACES`, joined as a flag value.
const DEFAULT_METAL3_NAMESPACES: &str =
    "baremetal-operator-system,capm3-system,openshift-machine-api";

/// A BMC that needs longer than 1 min for a call is as good as hung.
const MAX_BMC_TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, clap::Args)]
pub struct PowerArgs {
    /// How many polls and checks of BMCs may run at once; power commands do not queue behind them
    #[arg(
        long,
        env = "DOGWATCH_BMC_MAX_CONCURRENT",
        value_name = "N",
        default_value = "100"
    )]
    pub bmc_max_concurrent: NonZeroUsize,

    /// How long one call to a BMC may take, 1s to 1m; a command must also end before the leader's
    /// Lease does
    #[arg(long, env = "DOGWATCH_BMC_TIMEOUT", value_name = "DURATION", default_value = "10s", value_parser = parse_bmc_timeout)]
    pub bmc_timeout: Duration,

    /// How often to read the power of each idle host
    #[arg(long, env = "DOGWATCH_POWER_POLL_INTERVAL", value_name = "DURATION", default_value = "1m", value_parser = parse_at_least_one_second)]
    pub power_poll_interval: Duration,

    /// How often to check that power control would work
    #[arg(long, env = "DOGWATCH_POWER_CHECK_INTERVAL", value_name = "DURATION", default_value = "5m", value_parser = parse_at_least_one_second)]
    pub power_check_interval: Duration,

    /// Time between the two readings that confirm off
    #[arg(long, env = "DOGWATCH_POWER_CONFIRM_INTERVAL", value_name = "DURATION", default_value = "5s", value_parser = parse_at_least_one_second)]
    pub power_confirm_interval: Duration,

    /// How long a BMC may still run a command whose outcome is unknown
    #[arg(long, env = "DOGWATCH_POWER_SETTLE", value_name = "DURATION", default_value = "30s", value_parser = parse_at_least_one_second)]
    pub power_settle: Duration,

    /// How long an operating system may take to shut down before its power is cut
    #[arg(long, env = "DOGWATCH_SOFT_POWER_OFF_TIMEOUT", value_name = "DURATION", default_value = "3m", value_parser = parse_at_least_one_second)]
    pub soft_power_off_timeout: Duration,

    /// Namespaces whose hosts Dogwatch controls even though a baremetal-operator is running,
    /// separated by commas
    #[arg(long, env = "DOGWATCH_HOST_NAMESPACES", value_name = "NAMES", value_delimiter = ',', value_parser = parse_namespace)]
    pub host_namespaces: Vec<String>,

    /// Namespaces in which a running baremetal-operator is taken as the owner of hosts, separated
    /// by commas
    #[arg(long, env = "DOGWATCH_METAL3_NAMESPACES", value_name = "NAMES", default_value = DEFAULT_METAL3_NAMESPACES, value_delimiter = ',', value_parser = parse_namespace)]
    pub metal3_namespaces: Vec<String>,

    /// Program that speaks IPMI; a bare name is searched in PATH
    #[arg(
        long,
        env = "DOGWATCH_IPMITOOL",
        value_name = "PROGRAM",
        default_value = "ipmitool"
    )]
    pub ipmitool: PathBuf,

    /// Only folder from which fence agents are run
    #[arg(
        long,
        env = "DOGWATCH_FENCE_AGENTS",
        value_name = "FOLDER",
        default_value = "/usr/sbin"
    )]
    pub fence_agents: PathBuf,
}

impl PowerArgs {
    pub fn power_settings(self) -> Result<PowerSettings, CommandFailure> {
        let config = PowerConfig {
            poll: self.power_poll_interval,
            check: self.power_check_interval,
            confirm: self.power_confirm_interval,
            settle: self.power_settle,
            soft: self.soft_power_off_timeout,
            call: self.bmc_timeout,
        };
        let contradict = config.check_intervals();
        contradict.map_err(|error| CommandFailure::new(CliExitCode::Usage, error.to_string()))?;
        Ok(PowerSettings {
            config,
            max_concurrent: self.bmc_max_concurrent,
            owners: OwnerRules {
                host_namespaces: self.host_namespaces.into_iter().collect(),
                metal3_namespaces: self.metal3_namespaces.into_iter().collect(),
            },
            connect: driver_connector(self.ipmitool, self.fence_agents),
            board: HostRegistry::default(),
            has_workload_clusters: false,
        })
    }
}

fn parse_bmc_timeout(text: &str) -> Result<Duration, String> {
    let duration = parse_at_least_one_second(text)?;
    if duration > MAX_BMC_TIMEOUT {
        return Err("it must be 1m or less".to_owned());
    }
    Ok(duration)
}

fn parse_at_least_one_second(text: &str) -> Result<Duration, String> {
    match duration::parse_duration(text) {
        Ok(duration) if duration < Duration::from_secs(1) => {
            Err("it must be 1s or longer".to_owned())
        }
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// A namespace is a DNS label, as a group's name is.
fn parse_namespace(text: &str) -> Result<String, String> {
    match GroupName::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use dogwatch_core::power::METAL3_NAMESPACES;

    use super::*;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        power: PowerArgs,
    }

    fn settings(flags: &[&str]) -> Result<PowerSettings, CommandFailure> {
        let flags = [&["dogwatch"], flags].concat();
        Flags::try_parse_from(flags)
            .expect("flags")
            .power
            .power_settings()
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused_at_the_start_with_what_to_do() {
        for (poll, confirm, is_taken) in [
            ("1s", "1s", false),
            ("9s", "5s", false),
            ("10s", "5s", true),
        ] {
            let flags = [
                format!("--power-poll-interval={poll}"),
                format!("--power-confirm-interval={confirm}"),
            ];
            let settings = settings(&flags.each_ref().map(String::as_str));
            assert_eq!(settings.is_ok(), is_taken, "{poll} {confirm}");
            if let Err(failure) = settings {
                let said = format!("{failure:?}");
                assert!(
                    said.contains("--power-poll-interval must be at least twice"),
                    "{said}"
                );
            }
        }
    }

    #[test]
    fn metal3s_leader_is_believed_where_it_is_shipped_to_run_unless_a_flag_says_otherwise() {
        let believed = |flags: &[&str]| settings(flags).expect("settings").owners.metal3_namespaces;
        assert_eq!(believed(&[]), METAL3_NAMESPACES.map(str::to_owned).into());
        let named = believed(&["--metal3-namespaces=metal3,site"]);
        assert_eq!(named, ["metal3".to_owned(), "site".to_owned()].into());
    }
}
