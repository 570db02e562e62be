//! Parses command lines into values or errors.

use super::*;

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use dogwatch_prometheus::PrometheusSettings;

fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
    let name = ["dogwatch-coordinator", "--node-name", "n1"];
    Args::try_parse_from(name.iter().chain(flags))
}

fn refused(flags: &[&str]) -> String {
    let error = parse(flags).expect_err("taken");
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string()
}

#[test]
fn the_defaults_are_the_specifications() {
    let args = parse(&[]).unwrap();
    assert_eq!(args.namespace, "dogwatch");
    assert_eq!(args.max_unavailable, UnavailabilityLimit::Count(1));
    assert_eq!(args.sentinel, [PathBuf::from("/run/reboot-needed")]);
    assert_eq!(args.sentinel_command(), None);
    assert_eq!(args.sentinel_interval, Duration::from_mins(1));
    assert_eq!(args.sentinel_timeout, Duration::from_secs(30));
    let reboot = args.host_rebooter();
    let command = ["systemctl", "reboot"].map(str::to_owned).to_vec();
    assert_eq!(reboot.method, HostRebootMethod::Command(command));
    assert_eq!(reboot.host_root, PathBuf::from("/"));
    assert_eq!(reboot.init.as_raw_nonzero().get(), 1);
    let boot_id = PathBuf::from("/proc/sys/kernel/random/boot_id");
    assert_eq!(args.boot_id_file, boot_id);
    assert_eq!(args.drain_timeout, Duration::from_hours(1));
    assert_eq!(
        DrainTimeoutAction::from(args.on_drain_timeout),
        DrainTimeoutAction::Abort
    );
    assert_eq!(args.reboot_timeout, Duration::from_mins(30));
    assert_eq!(args.reboot_attempts, 2);
    assert_eq!(args.settle, Duration::from_secs(30));
    assert_eq!(
        args.prometheus.prometheus_settings(),
        PrometheusSettings::default()
    );
    assert_eq!(args.listen.to_string(), ":9420");
    assert_eq!(args.probe_listen.to_string(), ":9421");
    assert_eq!(args.log_format, LogFormat::Text);
}

#[test]
fn every_flag_of_the_specification_is_there_with_its_variable() {
    let flags = [
        "node-name",
        "namespace",
        "identity",
        "kubelet-certificate",
        "kubelet-key",
        "max-unavailable",
        "sentinel",
        "sentinel-command",
        "sentinel-interval",
        "sentinel-timeout",
        "reboot-method",
        "reboot-command",
        "reboot-request-label",
        "boot-id-file",
        "host-root",
        "drain-timeout",
        "on-drain-timeout",
        "volume-detach-timeout",
        "reboot-timeout",
        "reboot-attempts",
        "settle",
        "prometheus-ca-file",
        "prometheus-token-file",
        "prometheus-token-origin",
        "listen",
        "probe-listen",
        "log-format",
        "decision-log",
    ];
    let command = Args::command();
    for flag in flags {
        let variable = format!("DOGWATCH_{}", flag.to_uppercase().replace('-', "_"));
        let found = command
            .get_arguments()
            .find(|one| one.get_long() == Some(flag));
        let env = found.and_then(clap::Arg::get_env);
        assert_eq!(env, Some(std::ffi::OsStr::new(&variable)), "--{flag}");
    }
    assert_eq!(command.get_arguments().count(), flags.len());
    Args::command().debug_assert();
}

#[test]
fn given_values_are_taken() {
    let args = parse(&[
        "--sentinel",
        "/run/a",
        "--sentinel",
        "/b,/c",
        "--max-unavailable",
        "25%",
        "--sentinel-command",
        "needs-restarting -r",
        "--reboot-method",
        "signal",
        "--reboot-command",
        "sh -c 'echo \"going down\"; reboot'",
        "--settle",
        "0",
        "--on-drain-timeout",
        "force",
        "--listen",
        "127.0.0.1:0",
        "--log-format",
        "json",
        "--host-root",
        "/host",
        "--reboot-timeout",
        "1h30m",
    ])
    .unwrap();
    assert_eq!(args.sentinel, ["/run/a", "/b", "/c"].map(PathBuf::from));
    assert_eq!(args.max_unavailable, UnavailabilityLimit::Percent(25));
    assert_eq!(
        args.sentinel_command().unwrap().argv,
        ["needs-restarting", "-r"]
    );
    assert_eq!(args.host_rebooter().method, HostRebootMethod::Signal);
    assert_eq!(args.reboot_command.0[2], "echo \"going down\"; reboot");
    assert_eq!(args.settle, Duration::ZERO);
    assert_eq!(args.reboot_timeout, Duration::from_mins(90));
}

#[test]
fn what_is_wrong_names_the_flag_and_what_to_write() {
    for (flags, says) in [
        (["--max-unavailable", "0"], "pause"),
        (["--sentinel", "run/x"], "absolute path"),
        (["--sentinel", "/run/../x"], "without .."),
        (["--sentinel-command", "a 'b"], "quote"),
        (["--reboot-command", ""], "systemctl reboot"),
        (["--reboot-command", "  "], "systemctl reboot"),
        (["--sentinel-interval", "0s"], "greater than 0"),
        (["--sentinel-timeout", "30"], "lacks a unit"),
        (["--drain-timeout", "1d"], "a day is 24h"),
        (["--reboot-attempts", "0"], "1.."),
        (["--reboot-method", "kexec"], "logind"),
        (["--on-drain-timeout", "wait"], "abort"),
        (["--namespace", "Dog"], "lower-case"),
        (["--listen", "9420"], "127.0.0.1:9420"),
        (["--probe-listen", "9421"], "127.0.0.1:9420"),
        (["--log-format", "xml"], "json"),
    ] {
        let text = refused(&flags);
        assert!(text.contains(flags[0]), "{text}");
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn a_token_for_prometheus_needs_the_one_place_where_it_may_go() {
    let file = ["--prometheus-token-file", "/run/token"];
    let origin = ["--prometheus-token-origin", "https://prom:9090"];
    let args = parse(&[file, origin].concat()).unwrap();
    let token = args.prometheus.prometheus_settings().token.unwrap();
    assert_eq!(token.file, PathBuf::from("/run/token"));
    assert_eq!(token.origin.to_string(), "https://prom:9090");
    assert!(refused(&file).contains("--prometheus-token-origin"));
    assert!(refused(&origin).contains("--prometheus-token-file"));
    for (origin, says) in [
        ("http://prom:9090", "https only"),
        ("https://prom/prometheus", "only scheme, host and port"),
        ("prom:9090", "begin with http"),
    ] {
        let text = refused(&["--prometheus-token-origin", origin, file[0], file[1]]);
        assert!(
            text.contains("--prometheus-token-origin") && text.contains(says),
            "{text}"
        );
    }
    assert!(refused(&["--prometheus-ca-file", "ca.pem"]).contains("absolute path"));
}

#[test]
fn a_missing_node_name_says_which_flag_sets_it() {
    let error = Args::try_parse_from(["dogwatch-coordinator"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument);
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("--node-name"), "{error}");
}

#[test]
fn an_unknown_flag_is_refused_with_the_nearest_one() {
    let text = refused(&["--sentinal", "/x"]);
    assert!(text.contains("--sentinel"), "{text}");
}

#[test]
fn a_label_that_asks_for_reboots_is_a_key_of_somebody_else() {
    let key =
        |text: &str| parse(&["--reboot-request-label", text]).map(|args| args.reboot_request_label);
    assert_eq!(
        key("nke.nvidia.com/reboot").unwrap().as_deref(),
        Some("nke.nvidia.com/reboot")
    );
    for bad in [
        "reboot",
        "/reboot",
        "nke.nvidia.com/",
        "a.b/c d",
        "dogwatch.dev/reboot",
    ] {
        assert!(key(bad).is_err(), "{bad}");
    }
}
