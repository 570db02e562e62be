//! Translates kured's one window.
//!
//! kured checks whether *today* is one of the days and then whether the time lies between start and
//! end, also over midnight: `fri 22:00-04:00` is Friday from 0:00 to 4:00 and from 22:00 to
//! midnight. Dogwatch's window belongs to the day of its start. So a window that wraps becomes two
//! windows of the same days.

use crate::policy::window::{MaintenanceWindow, WindowSpec};

const DAY_MINUTES: u32 = 24 * 60;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TranslatedWindows {
    /// Empty means always.
    pub(super) list: Vec<WindowSpec>,
    /// Notes about values that were rounded.
    pub(super) notes: Vec<&'static str>,
    /// Length of the longest window, in minutes.
    pub(super) longest: u32,
}

/// kured's flags; `None` if not set.
pub(super) struct KuredWindow<'a> {
    pub(super) days: Option<&'a [String]>,
    pub(super) start: Option<&'a str>,
    pub(super) end: Option<&'a str>,
    pub(super) zone: Option<&'a str>,
}

/// Translates the window to the same times. The error says why kured would not have started.
pub(super) fn translate_windows(told: &KuredWindow<'_>) -> Result<TranslatedWindows, String> {
    let days = parse_days(told.days)?;
    let mut made = TranslatedWindows::default();
    let zone = match told.zone {
        None | Some("" | "UTC") => None,
        Some("Local") => {
            made.notes
                .push("time zone Local is that of kured's container, which is UTC");
            None
        }
        Some(zone) => Some(zone.to_owned()),
    };
    for (from, to) in day_spans(told, days.len() == 7, &mut made)? {
        made.longest = made.longest.max(if to > from {
            to - from
        } else {
            DAY_MINUTES + to - from
        });
        let whole = (from, to) == (0, DAY_MINUTES);
        let window = WindowSpec {
            days: (days.len() < 7).then(|| days.clone()),
            start: (!whole).then(|| format_clock(from)),
            end: (!whole).then(|| format_clock(to)),
            time_zone: zone.clone(),
            ..WindowSpec::default()
        };
        MaintenanceWindow::new(&window).map_err(|error| error.to_string())?;
        made.list.push(window);
    }
    if days.len() == 7 && made.longest == DAY_MINUTES {
        made.list.clear();
    }
    Ok(made)
}

/// Minutes of the day, from and to; a `to` before `from` is on the next day.
fn day_spans(
    told: &KuredWindow<'_>,
    every_day: bool,
    made: &mut TranslatedWindows,
) -> Result<Vec<(u32, u32)>, String> {
    let start = told
        .start
        .map_or(Ok(0), |text| parse_day_seconds("start-time", text))?;
    let end = told.end.map_or(Ok(24 * 3600 - 1), |text| {
        parse_day_seconds("end-time", text)
    })?;
    // kured's end includes that whole second. Rounding makes a window shorter, never longer.
    let (from, to) = (start.div_ceil(60), (end + 1) / 60);
    if start % 60 > 0 || !matches!(end % 60, 0 | 59) {
        made.notes
            .push("seconds are rounded so that the window is shorter");
    }
    if start > end {
        if every_day && from < DAY_MINUTES && to > 0 {
            return Ok(vec![(from, to)]);
        }
        let parts = [(0, to), (from, DAY_MINUTES)].into_iter();
        return Ok(parts.filter(|(from, to)| from < to).collect());
    }
    if from < to {
        return Ok(vec![(from, to)]);
    }
    made.notes.push(
        "kured's window is not a minute long; here it is one minute, in which no drain has room",
    );
    let minute = (start / 60).min(DAY_MINUTES - 1);
    Ok(vec![(minute, minute + 1)])
}

fn format_clock(minutes: u32) -> String {
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

const DAY_NAMES: [(&str, &str); 7] = [
    ("Sun", "sunday"),
    ("Mon", "monday"),
    ("Tue", "tuesday"),
    ("Wed", "wednesday"),
    ("Thu", "thursday"),
    ("Fri", "friday"),
    ("Sat", "saturday"),
];

/// Dogwatch's names of the days, Monday first.
fn parse_days(told: Option<&[String]>) -> Result<Vec<String>, String> {
    let mut on = [told.is_none(); 7];
    for text in told.into_iter().flatten().filter(|text| !text.is_empty()) {
        on[parse_day(text).ok_or_else(|| format!("--reboot-days: {text:?} is not a weekday"))?] =
            true;
    }
    let order = [1, 2, 3, 4, 5, 6, 0].into_iter();
    let days: Vec<String> = order
        .filter(|day| on[*day])
        .map(|day| DAY_NAMES[day].0.to_owned())
        .collect();
    if days.is_empty() {
        return Err("--reboot-days names no day, so kured never reboots".to_owned());
    }
    Ok(days)
}

fn parse_day(text: &str) -> Option<usize> {
    let lower = text.to_lowercase();
    let by_name = |(_, long): &(&str, &str)| {
        *long == lower || lower.len() >= 2 && lower.len() <= 3 && long.starts_with(&lower)
    };
    match text.parse::<usize>() {
        Ok(number) => (number < 7).then_some(number),
        Err(_) => DAY_NAMES.iter().position(by_name),
    }
}

/// Seconds since midnight: `15:04`, `15:04:05`, `03:04pm`, `15`, `3pm`.
fn parse_day_seconds(flag: &str, text: &str) -> Result<u32, String> {
    let bad = || format!("--{flag}: {text:?} is not a time of day");
    let half = [("am", 0), ("pm", 12)];
    let half = half
        .into_iter()
        .find_map(|(suffix, hours)| Some((text.strip_suffix(suffix)?, hours)));
    let parts: Vec<&str> = half.map_or(text, |(rest, _)| rest).split(':').collect();
    let number = |index: usize, below: u32| -> Option<u32> {
        let Some(digits) = parts.get(index) else {
            return Some(0);
        };
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let long = digits.len() == 2 || index == 0 && digits.len() == 1;
        let number = digits.parse::<u32>().ok()?;
        (plain && long && number < below).then_some(number)
    };
    let most = if half.is_some() { 2 } else { 3 };
    let hour = number(0, if half.is_some() { 13 } else { 24 });
    let (Some(hour), Some(minute), Some(second)) = (hour, number(1, 60), number(2, 60)) else {
        return Err(bad());
    };
    if parts.len() > most {
        return Err(bad());
    }
    let hour = half.map_or(hour, |(_, hours)| hour % 12 + hours);
    Ok(hour * 3600 + minute * 60 + second)
}
