//! Builds the parts of a policy from kured's settings, and a row for each setting.

use std::time::Duration;

use super::flags::SettingOutcome;
use super::line::{KuredInstallation, KuredSettings, without_password};
use super::pod_selector;
use super::window::{KuredWindow, translate_windows};
use crate::duration;
use crate::policy::window::WindowSpec;
use crate::policy::{BlockingAlerts, PolicyGate, PrometheusGate, PrometheusQuery};
use crate::reboot::DrainTimeoutAction;
use crate::selector::LabelSelector;

/// kured's default for `--reboot-command`, in the forms in which people write it.
const USUAL_COMMANDS: [&str; 4] = [
    "/bin/systemctl reboot",
    "/usr/bin/systemctl reboot",
    "/sbin/systemctl reboot",
    "systemctl reboot",
];
/// Dogwatch's default for the drain.
const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_hours(1);
/// The longest regular expression that a policy accepts, in bytes.
const MAX_REGEX_BYTES: usize = 512;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct KuredTranslation {
    /// `nodeSelector`; empty means every node.
    pub nodes: LabelSelector,
    /// `maxUnavailable`.
    pub max_unavailable: u32,
    /// `windows`; empty means always.
    pub windows: Vec<WindowSpec>,
    /// Why the policy begins paused: a policy cannot express what held reboots back.
    pub paused: Option<String>,
    /// `drain.timeout`, if it is not the default.
    pub drain_timeout: Option<Duration>,
    /// `drain.onTimeout`, if it is not the default.
    pub on_timeout: Option<DrainTimeoutAction>,
    /// `drain.exclude`.
    pub exclude: Option<LabelSelector>,
    /// `gates`.
    pub gates: Vec<PolicyGate>,
    /// The coordinator's flags.
    pub flags: Vec<String>,
    /// One row per setting, and further notes.
    pub rows: Vec<TranslatedSetting>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslatedSetting {
    /// The setting in kured, without secrets.
    pub setting: String,
    pub outcome: SettingOutcome,
    /// The new setting, how it differs, or what to use instead.
    pub becomes: String,
}

impl KuredTranslation {
    fn record_setting(
        &mut self,
        setting: impl Into<String>,
        fate: SettingOutcome,
        becomes: impl Into<String>,
    ) {
        self.rows.push(TranslatedSetting {
            setting: setting.into(),
            outcome: fate,
            becomes: becomes.into(),
        });
    }

    /// Pauses the policy, because it cannot express a setting that held reboots back: nothing
    /// begins until a person has looked.
    fn pause_for(&mut self, setting: &str, why: &str) {
        self.record_setting(
            setting,
            SettingOutcome::NotUnderstood,
            format!("{why}; the policy begins paused"),
        );
        let why = format!("{setting} of kured was not taken over: {why}");
        self.paused = Some(match self.paused.take() {
            Some(before) => format!("{before}; {why}"),
            None => why,
        });
    }
}

pub fn translate_kured(kured: &KuredInstallation) -> KuredTranslation {
    let settings = KuredSettings::read_settings(kured);
    let mut plan = KuredTranslation::default();
    for (flag, shown) in settings.displayed_flags() {
        plan.record_setting(shown, flag.outcome, flag.instead);
    }
    plan.rows.extend(settings.not_understood.iter().cloned());
    if settings.unsure {
        plan.pause_for("a variable", "its value was not read");
    }
    translate_node_selector(&mut plan, kured);
    translate_concurrency(&mut plan, &settings);
    translate_window(&mut plan, &settings);
    translate_drain(&mut plan, &settings);
    translate_pod_gates(&mut plan, &settings);
    translate_prometheus(&mut plan, &settings);
    translate_sentinel(&mut plan, &settings, kured);
    translate_reboot_method(&mut plan, &settings);
    translate_other_flags(&mut plan, &settings);
    plan
}

fn translate_node_selector(plan: &mut KuredTranslation, kured: &KuredInstallation) {
    if kured.node_selector.is_empty() {
        let text = "the policy has no nodeSelector: it applies to every node. Where another policy selects a node \
                    too, the higher priority wins, and of equal ones the first by name; give this policy a \
                    nodeSelector or a priority if you have others";
        return plan.record_setting("no nodeSelector", SettingOutcome::Same, text);
    }
    plan.nodes.match_labels.clone_from(&kured.node_selector);
    plan.record_setting(
        "the DaemonSet's nodeSelector",
        SettingOutcome::Differs,
        "nodeSelector of the policy; give it to the coordinator's DaemonSet too, or the other nodes reboot by the flags",
    );
}

fn translate_concurrency(plan: &mut KuredTranslation, settings: &KuredSettings) {
    let told = settings.last_value("concurrency");
    plan.max_unavailable = 1;
    match told.map(str::parse::<i64>) {
        None => plan.record_setting(
            "--concurrency=1 (default)",
            SettingOutcome::Differs,
            "maxUnavailable: 1; nodes that are not Ready or cordoned by others count too, and control-plane \
             nodes are a group of one of their own",
        ),
        Some(Ok(count @ 1..=10_000)) => {
            plan.max_unavailable = u32::try_from(count).expect("in the range");
        }
        Some(_) => plan.record_setting(
            "--concurrency",
            SettingOutcome::NotUnderstood,
            "no number from 1 to 10000: maxUnavailable is 1",
        ),
    }
}

fn translate_window(plan: &mut KuredTranslation, settings: &KuredSettings) {
    let told = KuredWindow {
        days: settings.all_values("reboot-days"),
        start: settings.last_value("start-time"),
        end: settings.last_value("end-time"),
        zone: settings.last_value("time-zone"),
    };
    let made = match translate_windows(&told) {
        Ok(made) => made,
        Err(why) => return plan.pause_for("the window", &why),
    };
    for note in &made.notes {
        plan.record_setting("the window", SettingOutcome::Differs, *note);
    }
    if made.list.len() > 1 {
        plan.record_setting(
            "the window over midnight",
            SettingOutcome::Same,
            "two windows: kured checks the weekday at the moment itself, not at the window's start; so Friday has its \
             early and its late hours, and the early hours of Saturday are excluded",
        );
    }
    plan.windows = made.list;
    let room = Duration::from_secs(u64::from(made.longest) * 60);
    let asked = settings
        .last_value("drain-timeout")
        .map(duration::parse_duration);
    let timeout = match asked {
        Some(Ok(asked)) if !asked.is_zero() => asked,
        Some(_) | None => DEFAULT_DRAIN_TIMEOUT,
    };
    // With a drain timeout longer than every window no reboot would ever begin.
    let mut needs = timeout;
    if !plan.windows.is_empty() && timeout >= room {
        let half = room / 2;
        plan.drain_timeout = Some(half);
        needs = half;
        plan.record_setting(
            "the window's length",
            SettingOutcome::Differs,
            format!(
                "drain.timeout: {}, half of it: a reboot whose drain.timeout ({}) would pass the window's end \
                 never begins",
                duration::format_duration(half),
                duration::format_duration(timeout)
            ),
        );
    }
    record_earliest_begin(plan, needs);
}

/// Adds a note about the earliest and latest time at which a reboot begins: kured began one up to
/// the window's last second.
fn record_earliest_begin(plan: &mut KuredTranslation, needs: Duration) {
    let minutes = u32::try_from(needs.as_secs().div_ceil(60)).unwrap_or(u32::MAX);
    let spans = plan.windows.iter().filter_map(|window| {
        let (start, end) = (window.start.as_deref()?, window.end.as_deref()?);
        Some(format!("{start} to {}", clock_before(end, minutes)?))
    });
    let spans: Vec<String> = spans.collect();
    if spans.is_empty() {
        return;
    }
    let text = format!(
        "a reboot begins from {} only, so that its drain.timeout ({}) ends inside the window; later where the next \
         window follows without a gap",
        spans.join(" and from "),
        duration::format_duration(needs)
    );
    plan.record_setting("when a reboot begins", SettingOutcome::Differs, text);
}

/// The time of day `minutes` before `end`.
fn clock_before(end: &str, minutes: u32) -> Option<String> {
    const DAY: u32 = 24 * 60;
    let (hour, minute) = end.split_once(':')?;
    let end = hour.parse::<u32>().ok()? * 60 + minute.parse::<u32>().ok()?;
    let at = (end + DAY).checked_sub(minutes.min(DAY))? % DAY;
    Some(format!("{:02}:{:02}", at / 60, at % 60))
}

fn translate_drain(plan: &mut KuredTranslation, settings: &KuredSettings) {
    let forced = settings.is_switch_on("force-reboot");
    match settings
        .last_value("drain-timeout")
        .map(duration::parse_duration)
    {
        Some(Ok(timeout)) if !timeout.is_zero() => {
            plan.drain_timeout = plan.drain_timeout.or(Some(timeout));
            plan.on_timeout = forced.then_some(DrainTimeoutAction::Force);
        }
        Some(Err(error)) => plan.record_setting(
            "--drain-timeout",
            SettingOutcome::NotUnderstood,
            error.to_string(),
        ),
        told => {
            if told.is_none() {
                plan.record_setting(
                    "--drain-timeout=0 (default)",
                    SettingOutcome::Differs,
                    "kured drains without a limit and holds the lock; here the limit is 1h: then \
                     Dogwatch undoes the drain, releases the lock and tries again later",
                );
            }
            if forced {
                plan.record_setting(
                    "--force-reboot",
                    SettingOutcome::Differs,
                    "not taken over: without a --drain-timeout kured never reboots over pods because of time; write \
                     drain.onTimeout: force if you want that",
                );
            }
        }
    }
    let Some(text) = settings
        .last_value("drain-pod-selector")
        .filter(|text| !text.is_empty())
    else {
        return;
    };
    match pod_selector::parse_selector(text).map(|selector| pod_selector::negate_selector(&selector)) {
        Ok(Some(exclude)) => plan.exclude = Some(exclude),
        Ok(None) => plan.record_setting(
            "--drain-pod-selector",
            SettingOutcome::NoEqual,
            "the opposite of several requirements is no label selector: every pod is drained; give those that stay \
             a label of their own for drain.exclude",
        ),
        Err(why) => plan.record_setting("--drain-pod-selector", SettingOutcome::NoEqual, format!("{why}: every pod is drained")),
    }
}

fn translate_pod_gates(plan: &mut KuredTranslation, settings: &KuredSettings) {
    for text in settings
        .all_values("blocking-pod-selector")
        .unwrap_or_default()
    {
        match pod_selector::parse_selector(text) {
            Ok(selector) => plan.gates.push(PolicyGate::Pods { selector }),
            Err(why) => plan.pause_for(&format!("--blocking-pod-selector={text}"), &why),
        }
    }
}

fn translate_prometheus(plan: &mut KuredTranslation, settings: &KuredSettings) {
    let filter = settings
        .last_value("alert-filter-regexp")
        .filter(|text| !text.is_empty());
    let Some(told) = settings
        .last_value("prometheus-url")
        .filter(|text| !text.is_empty())
    else {
        if filter.is_some() {
            plan.record_setting(
                "--alert-filter-regexp",
                SettingOutcome::Differs,
                "without --prometheus-url kured does not query Prometheus, and neither does this policy",
            );
        }
        return;
    };
    let url = without_password(told);
    let plain = url.starts_with("http://") || url.starts_with("https://");
    if !plain || url.contains(['?', '#']) || url.contains(char::is_whitespace) {
        return plan.pause_for(
            "--prometheus-url",
            "it is not a plain http or https address",
        );
    }
    if filter.is_some_and(|text| text.len() > MAX_REGEX_BYTES) {
        return plan.pause_for("--alert-filter-regexp", "it is longer than 512 bytes");
    }
    let filter = filter.map(str::to_owned);
    let (ignore, only) = if settings.is_switch_on("alert-filter-match-only") {
        (None, filter)
    } else {
        (filter, None)
    };
    if url != told {
        plan.record_setting(
            "the password in --prometheus-url",
            SettingOutcome::NoEqual,
            "policies hold no passwords: give the coordinator --prometheus-token-file and \
             --prometheus-token-origin, else the gate stays closed",
        );
    }
    plan.gates.push(PolicyGate::Prometheus(PrometheusGate {
        url,
        ask: PrometheusQuery::Alerts(BlockingAlerts {
            ignore,
            only,
            firing_only: settings.is_switch_on("alert-firing-only"),
        }),
    }));
}

fn translate_sentinel(
    plan: &mut KuredTranslation,
    settings: &KuredSettings,
    kured: &KuredInstallation,
) {
    let command = settings
        .last_value("reboot-sentinel-command")
        .filter(|text| !text.is_empty());
    if let Some(command) = command {
        plan.flags.push(format!("--sentinel-command={command}"));
        let period = settings.last_value("period").unwrap_or("1h");
        plan.flags.push(format!("--sentinel-interval={period}"));
        return;
    }
    let told = settings
        .last_value("reboot-sentinel")
        .unwrap_or("/var/run/reboot-required");
    let path = path_on_host(told, &kured.mounts);
    // The usual link is absolute, and a link is not followed out of the folder where the host is
    // mounted.
    let path = match path.strip_prefix("/var/run/") {
        Some(rest) => format!("/run/{rest}"),
        None => path,
    };
    if path != told {
        let becomes = format!("--sentinel={path}: its path on the host (/var/run is /run)");
        plan.record_setting(format!("the path {told}"), SettingOutcome::Same, becomes);
    }
    if !path.starts_with("/run/") {
        plan.record_setting(
            format!("the folder of {path}"),
            SettingOutcome::Differs,
            "the coordinator's DaemonSet mounts the host's /run only: mount that folder below /host too",
        );
    }
    plan.flags.push(format!("--sentinel={path}"));
}

/// The path on the host of a path in the container.
fn path_on_host(path: &str, mounts: &[(String, String)]) -> String {
    let below = |(inside, outside): &(String, String)| {
        let rest = path.strip_prefix(inside.trim_end_matches('/'))?;
        let outside = outside.trim_end_matches('/');
        (rest.is_empty() || rest.starts_with('/'))
            .then(|| (inside.len(), format!("{outside}{rest}")))
    };
    let best = mounts.iter().filter_map(below).max();
    best.map_or_else(|| path.to_owned(), |(_, path)| path)
}

fn translate_reboot_method(plan: &mut KuredTranslation, settings: &KuredSettings) {
    match settings.last_value("reboot-method") {
        Some("signal") => {
            plan.flags.push("--reboot-method=signal".to_owned());
            if settings
                .last_value("reboot-signal")
                .is_some_and(|signal| signal != "39")
            {
                plan.record_setting(
                    "--reboot-signal",
                    SettingOutcome::NoEqual,
                    "systemd does not take another signal for a reboot: use \
                     --reboot-method=command with a command that does what the signal did",
                );
            }
        }
        Some("command") | None => {
            let command = settings
                .last_value("reboot-command")
                .unwrap_or(USUAL_COMMANDS[0]);
            if !USUAL_COMMANDS.contains(&command) {
                plan.flags.push("--reboot-method=command".to_owned());
                plan.flags.push(format!("--reboot-command={command}"));
            }
        }
        Some(other) => {
            let why = format!("kured does not know method {other:?} either: use command or signal");
            plan.record_setting("--reboot-method", SettingOutcome::NotUnderstood, why);
        }
    }
}

fn translate_other_flags(plan: &mut KuredTranslation, settings: &KuredSettings) {
    if settings.last_value("log-format") == Some("json") {
        plan.flags.push("--log-format=json".to_owned());
    }
    let (host, port) = (
        settings.last_value("metrics-host"),
        settings.last_value("metrics-port"),
    );
    if host.is_some() || port.is_some() {
        let (host, port) = (host.unwrap_or_default(), port.unwrap_or("8080"));
        plan.flags.push(format!("--listen={host}:{port}"));
    }
    if settings.last_value("reboot-sentinel-command").is_none()
        && settings.last_value("period").is_none()
    {
        plan.record_setting(
            "--period=1h (default)",
            SettingOutcome::Differs,
            "a file is noticed at once, and a node waits for its turn from then on: a rollout is faster",
        );
    }
}
