//! From settings to a policy's parts, and a row for each.

use std::time::Duration;

use super::flags::Fate;
use super::line::{Kured, Settings, without_password};
use super::selector;
use super::window::{Told, windows};
use crate::duration;
use crate::policy::window::WindowSpec;
use crate::policy::{Alerts, Gate, PrometheusGate, PrometheusQuery};
use crate::reboot::OnTimeout;
use crate::selector::LabelSelector;

/// kured's default for `--reboot-command`, as it is set where somebody spells it out.
const USUAL_COMMANDS: [&str; 4] = [
    "/bin/systemctl reboot",
    "/usr/bin/systemctl reboot",
    "/sbin/systemctl reboot",
    "systemctl reboot",
];
/// The drain's default here.
const DRAIN: Duration = Duration::from_hours(1);
/// The longest regular expression that a policy takes, in bytes.
const LONGEST_REGEX: usize = 512;

/// What a kured becomes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// `nodeSelector`; empty is every node.
    pub nodes: LabelSelector,
    /// `maxUnavailable`.
    pub max_unavailable: u32,
    /// `windows`; none is always.
    pub windows: Vec<WindowSpec>,
    /// Why the policy begins paused: reboots were held back by something that a policy cannot say.
    pub paused: Option<String>,
    /// `drain.timeout`, where it is not the default.
    pub drain_timeout: Option<Duration>,
    /// `drain.onTimeout`, where it is not the default.
    pub on_timeout: Option<OnTimeout>,
    /// `drain.exclude`.
    pub exclude: Option<LabelSelector>,
    /// `gates`.
    pub gates: Vec<Gate>,
    /// The coordinator's flags.
    pub flags: Vec<String>,
    /// What became of each setting, and what else is to be known.
    pub rows: Vec<Row>,
}

/// What became of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// As it stands in kured, but for secrets.
    pub setting: String,
    /// What became of it.
    pub fate: Fate,
    /// What it became, how that differs, or what does it instead.
    pub becomes: String,
}

impl Plan {
    fn note(&mut self, setting: impl Into<String>, fate: Fate, becomes: impl Into<String>) {
        self.rows.push(Row {
            setting: setting.into(),
            fate,
            becomes: becomes.into(),
        });
    }

    /// What held reboots back cannot be said: nothing begins until somebody has looked.
    fn held(&mut self, setting: &str, why: &str) {
        self.note(
            setting,
            Fate::NotUnderstood,
            format!("{why}; the policy begins paused"),
        );
        let why = format!("{setting} of kured was not taken over: {why}");
        self.paused = Some(match self.paused.take() {
            Some(before) => format!("{before}; {why}"),
            None => why,
        });
    }
}

/// What this kured becomes.
pub fn translate(kured: &Kured) -> Plan {
    let settings = Settings::of(kured);
    let mut plan = Plan::default();
    for (flag, shown) in settings.shown() {
        plan.note(shown, flag.fate, flag.instead);
    }
    plan.rows.extend(settings.strange.iter().cloned());
    if settings.unsure {
        plan.held("a variable", "its value was not read");
    }
    nodes(&mut plan, kured);
    budget(&mut plan, &settings);
    time(&mut plan, &settings);
    drain(&mut plan, &settings);
    pods(&mut plan, &settings);
    prometheus(&mut plan, &settings);
    trigger(&mut plan, &settings, kured);
    reboot(&mut plan, &settings);
    rest(&mut plan, &settings);
    plan
}

fn nodes(plan: &mut Plan, kured: &Kured) {
    if kured.node_selector.is_empty() {
        let text = "the policy has no nodeSelector: it applies to every node. Where another policy selects a node \
                    too, the higher priority wins, and of equal ones the first by name; give this policy a \
                    nodeSelector or a priority if you have others";
        return plan.note("no nodeSelector", Fate::Same, text);
    }
    plan.nodes.match_labels.clone_from(&kured.node_selector);
    plan.note(
        "the DaemonSet's nodeSelector",
        Fate::Differs,
        "nodeSelector of the policy; give it to the coordinator's DaemonSet too, or the other nodes reboot by the flags",
    );
}

fn budget(plan: &mut Plan, settings: &Settings) {
    let told = settings.one("concurrency");
    plan.max_unavailable = 1;
    match told.map(str::parse::<i64>) {
        None => plan.note(
            "--concurrency=1 (default)",
            Fate::Differs,
            "maxUnavailable: 1; nodes that are not Ready or cordoned by others count too, and control-plane \
             nodes are a group of one of their own",
        ),
        Some(Ok(count @ 1..=10_000)) => {
            plan.max_unavailable = u32::try_from(count).expect("in the range");
        }
        Some(_) => plan.note(
            "--concurrency",
            Fate::NotUnderstood,
            "no number from 1 to 10000: maxUnavailable is 1",
        ),
    }
}

fn time(plan: &mut Plan, settings: &Settings) {
    let told = Told {
        days: settings.all("reboot-days"),
        start: settings.one("start-time"),
        end: settings.one("end-time"),
        zone: settings.one("time-zone"),
    };
    let made = match windows(&told) {
        Ok(made) => made,
        Err(why) => return plan.held("the window", &why),
    };
    for note in &made.notes {
        plan.note("the window", Fate::Differs, *note);
    }
    if made.list.len() > 1 {
        plan.note(
            "the window over midnight",
            Fate::Same,
            "two windows: kured's days are those of the moment, not of the window's start, so a Friday has \
             its early and its late hours and Saturday's early hours are not among them",
        );
    }
    plan.windows = made.list;
    let room = Duration::from_secs(u64::from(made.longest) * 60);
    let asked = settings.one("drain-timeout").map(duration::parse);
    let timeout = match asked {
        Some(Ok(asked)) if !asked.is_zero() => asked,
        Some(_) | None => DRAIN,
    };
    // A drain that could outlast every window would never begin.
    let mut needs = timeout;
    if !plan.windows.is_empty() && timeout >= room {
        let half = room / 2;
        plan.drain_timeout = Some(half);
        needs = half;
        plan.note(
            "the window's length",
            Fate::Differs,
            format!(
                "drain.timeout: {}, half of it: a reboot whose drain.timeout ({}) would pass the window's end \
                 never begins",
                duration::format(half),
                duration::format(timeout)
            ),
        );
    }
    begins(plan, needs);
}

/// When a reboot begins at the earliest and at the latest: kured began one up to the window's last second.
fn begins(plan: &mut Plan, needs: Duration) {
    let minutes = u32::try_from(needs.as_secs().div_ceil(60)).unwrap_or(u32::MAX);
    let spans = plan.windows.iter().filter_map(|window| {
        let (start, end) = (window.start.as_deref()?, window.end.as_deref()?);
        Some(format!("{start} to {}", before(end, minutes)?))
    });
    let spans: Vec<String> = spans.collect();
    if spans.is_empty() {
        return;
    }
    let text = format!(
        "a reboot begins from {} only, so that its drain.timeout ({}) ends inside the window; later where the next \
         window follows without a gap",
        spans.join(" and from "),
        duration::format(needs)
    );
    plan.note("when a reboot begins", Fate::Differs, text);
}

/// The time of day so many minutes before `end`.
fn before(end: &str, minutes: u32) -> Option<String> {
    const DAY: u32 = 24 * 60;
    let (hour, minute) = end.split_once(':')?;
    let end = hour.parse::<u32>().ok()? * 60 + minute.parse::<u32>().ok()?;
    let at = (end + DAY).checked_sub(minutes.min(DAY))? % DAY;
    Some(format!("{:02}:{:02}", at / 60, at % 60))
}

fn drain(plan: &mut Plan, settings: &Settings) {
    let forced = settings.is_on("force-reboot");
    match settings.one("drain-timeout").map(duration::parse) {
        Some(Ok(timeout)) if !timeout.is_zero() => {
            plan.drain_timeout = plan.drain_timeout.or(Some(timeout));
            plan.on_timeout = forced.then_some(OnTimeout::Force);
        }
        Some(Err(error)) => plan.note("--drain-timeout", Fate::NotUnderstood, error.to_string()),
        told => {
            if told.is_none() {
                plan.note(
                    "--drain-timeout=0 (default)",
                    Fate::Differs,
                    "kured drains for ever and holds the lock; here 1h, then undone, the lock released and tried \
                     again later",
                );
            }
            if forced {
                plan.note(
                    "--force-reboot",
                    Fate::Differs,
                    "not taken over: without a --drain-timeout kured never reboots over pods because of time; write \
                     drain.onTimeout: force if you want that",
                );
            }
        }
    }
    let Some(text) = settings
        .one("drain-pod-selector")
        .filter(|text| !text.is_empty())
    else {
        return;
    };
    match selector::parse(text).map(|selector| selector::opposite(&selector)) {
        Ok(Some(exclude)) => plan.exclude = Some(exclude),
        Ok(None) => plan.note(
            "--drain-pod-selector",
            Fate::NoEqual,
            "the opposite of several requirements is no label selector: every pod is drained; give those that stay \
             a label of their own for drain.exclude",
        ),
        Err(why) => plan.note("--drain-pod-selector", Fate::NoEqual, format!("{why}: every pod is drained")),
    }
}

fn pods(plan: &mut Plan, settings: &Settings) {
    for text in settings.all("blocking-pod-selector").unwrap_or_default() {
        match selector::parse(text) {
            Ok(selector) => plan.gates.push(Gate::Pods { selector }),
            Err(why) => plan.held(&format!("--blocking-pod-selector={text}"), &why),
        }
    }
}

fn prometheus(plan: &mut Plan, settings: &Settings) {
    let filter = settings
        .one("alert-filter-regexp")
        .filter(|text| !text.is_empty());
    let Some(told) = settings
        .one("prometheus-url")
        .filter(|text| !text.is_empty())
    else {
        if filter.is_some() {
            plan.note(
                "--alert-filter-regexp",
                Fate::Differs,
                "without --prometheus-url kured asks nobody, and so does this policy",
            );
        }
        return;
    };
    let url = without_password(told);
    let plain = url.starts_with("http://") || url.starts_with("https://");
    if !plain || url.contains(['?', '#']) || url.contains(char::is_whitespace) {
        return plan.held("--prometheus-url", "it is no plain http or https address");
    }
    if filter.is_some_and(|text| text.len() > LONGEST_REGEX) {
        return plan.held("--alert-filter-regexp", "it is longer than 512 bytes");
    }
    let filter = filter.map(str::to_owned);
    let (ignore, only) = if settings.is_on("alert-filter-match-only") {
        (None, filter)
    } else {
        (filter, None)
    };
    if url != told {
        plan.note(
            "the password in --prometheus-url",
            Fate::NoEqual,
            "policies hold none: give the coordinator --prometheus-token-file and --prometheus-token-origin, else \
             the gate stays shut",
        );
    }
    plan.gates.push(Gate::Prometheus(PrometheusGate {
        url,
        ask: PrometheusQuery::Alerts(Alerts {
            ignore,
            only,
            firing_only: settings.is_on("alert-firing-only"),
        }),
    }));
}

fn trigger(plan: &mut Plan, settings: &Settings, kured: &Kured) {
    let command = settings
        .one("reboot-sentinel-command")
        .filter(|text| !text.is_empty());
    if let Some(command) = command {
        plan.flags.push(format!("--sentinel-command={command}"));
        let period = settings.one("period").unwrap_or("1h");
        plan.flags.push(format!("--sentinel-interval={period}"));
        return;
    }
    let told = settings
        .one("reboot-sentinel")
        .unwrap_or("/var/run/reboot-required");
    let path = on_the_host(told, &kured.mounts);
    // The usual link is absolute, and is not followed out of the folder where the host is mounted.
    let path = match path.strip_prefix("/var/run/") {
        Some(rest) => format!("/run/{rest}"),
        None => path,
    };
    if path != told {
        let becomes = format!("--sentinel={path}: its path on the host (/var/run is /run)");
        plan.note(format!("the path {told}"), Fate::Same, becomes);
    }
    if !path.starts_with("/run/") {
        plan.note(
            format!("the folder of {path}"),
            Fate::Differs,
            "the coordinator's DaemonSet mounts the host's /run only: mount that folder below /host too",
        );
    }
    plan.flags.push(format!("--sentinel={path}"));
}

/// Where the host has what the container has there.
fn on_the_host(path: &str, mounts: &[(String, String)]) -> String {
    let below = |(inside, outside): &(String, String)| {
        let rest = path.strip_prefix(inside.trim_end_matches('/'))?;
        let outside = outside.trim_end_matches('/');
        (rest.is_empty() || rest.starts_with('/'))
            .then(|| (inside.len(), format!("{outside}{rest}")))
    };
    let best = mounts.iter().filter_map(below).max();
    best.map_or_else(|| path.to_owned(), |(_, path)| path)
}

fn reboot(plan: &mut Plan, settings: &Settings) {
    match settings.one("reboot-method") {
        Some("signal") => {
            plan.flags.push("--reboot-method=signal".to_owned());
            if settings
                .one("reboot-signal")
                .is_some_and(|signal| signal != "39")
            {
                plan.note(
                    "--reboot-signal",
                    Fate::NoEqual,
                    "another signal is another thing than a reboot to systemd: use --reboot-method=command with a \
                     command that does what it did",
                );
            }
        }
        Some("command") | None => {
            let command = settings.one("reboot-command").unwrap_or(USUAL_COMMANDS[0]);
            if !USUAL_COMMANDS.contains(&command) {
                plan.flags.push("--reboot-method=command".to_owned());
                plan.flags.push(format!("--reboot-command={command}"));
            }
        }
        Some(other) => {
            let why = format!("kured knows no method {other:?} either: command or signal");
            plan.note("--reboot-method", Fate::NotUnderstood, why);
        }
    }
}

fn rest(plan: &mut Plan, settings: &Settings) {
    if settings.one("log-format") == Some("json") {
        plan.flags.push("--log-format=json".to_owned());
    }
    let (host, port) = (settings.one("metrics-host"), settings.one("metrics-port"));
    if host.is_some() || port.is_some() {
        let (host, port) = (host.unwrap_or_default(), port.unwrap_or("8080"));
        plan.flags.push(format!("--listen={host}:{port}"));
    }
    if settings.one("reboot-sentinel-command").is_none() && settings.one("period").is_none() {
        plan.note(
            "--period=1h (default)",
            Fate::Differs,
            "a file is noticed at once, and a node waits for its turn from then on: a rollout is faster",
        );
    }
}
