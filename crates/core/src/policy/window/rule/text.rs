//! The text of a rule: what is let through to the library.

use jiff::civil::{Date, date};
use jiff::tz;
use recurrence::{RRule, RRuleError, RRuleSet, Tz, Unvalidated};

use super::BadWindow;

/// In bytes.
const LONGEST: usize = 512;

/// The first day of a rule that has no `DTSTART`: a Monday, and the first of a month and of a leap
/// year.
const ANCHOR: Date = date(2024, 1, 1);

/// How far apart and how often: enough for every calendar, and small enough that the library's
/// search ends soon.
const LARGEST_INTERVAL: u32 = 1_000;
const LARGEST_COUNT: u32 = 10_000;

/// The rule itself in its plain form, its first day, and what the library made of both.
pub(super) fn parse(value: &str) -> Result<(String, Date, RRuleSet), BadWindow> {
    if value.len() > LONGEST {
        return bad(format!("is longer than {LONGEST} bytes; use two windows"));
    }
    // The library cuts texts by bytes, and panics where that is in the middle of a letter.
    if !value.is_ascii() {
        return bad("has a letter that no rule has; write one such as FREQ=MONTHLY;BYDAY=2TU");
    }
    let value = value.to_ascii_uppercase();
    let (start, rule) = lines(&value)?;
    let first = start.map(day_of_start).transpose()?;
    let parts = parts(rule)?;
    check(&parts, first.is_some())?;
    let first = first.unwrap_or(ANCHOR);
    let text: Vec<String> = parts.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let set = library(&parts, first)?;
    Ok((text.join(";"), first, set))
}

/// The text of `DTSTART`, if there is one, and the rule without its name.
fn lines(value: &str) -> Result<(Option<&str>, &str), BadWindow> {
    let lines = value.split('\n').map(bare).filter(|line| !line.is_empty());
    let (starts, rules): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with("DTSTART"));
    match (starts.as_slice(), rules.as_slice()) {
        ([], [rule]) => Ok((None, rule)),
        ([start], [rule]) => Ok((Some(start), rule)),
        ([] | [_], []) => bad("has no rule; write one such as FREQ=MONTHLY;BYDAY=2TU"),
        (_, [_, _, ..]) => bad("has several rules; write one, and one more window for each other"),
        ([_, _, ..], _) => bad("has several DTSTART lines; write one"),
    }
}

fn bare(line: &str) -> &str {
    let line = line.trim();
    line.strip_prefix("RRULE:").unwrap_or(line)
}

fn day_of_start(line: &str) -> Result<Date, BadWindow> {
    let value = ["DTSTART:", "DTSTART;VALUE=DATE:"]
        .iter()
        .find_map(|name| line.strip_prefix(name));
    match value.and_then(plain_date) {
        Some(day) if (2000..=2100).contains(&day.year()) => Ok(day),
        Some(_) | None => bad(format!(
            "{line:?} is no first day; write DTSTART:YYYYMMDD (2000 to 2100), the time is `start`"
        )),
    }
}

fn plain_date(value: &str) -> Option<Date> {
    let plain = value.len() == 8 && value.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| value.parse().ok()).flatten()
}

fn parts(rule: &str) -> Result<Vec<(&str, &str)>, BadWindow> {
    let mut parts: Vec<(&str, &str)> = Vec::new();
    for part in rule.split(';') {
        let Some((key, value)) = part.split_once('=') else {
            return bad(format!("{part:?} is no part of a rule; write NAME=VALUE"));
        };
        if parts.iter().any(|(other, _)| *other == key) {
            return bad(format!("{key} stands there twice; keep one"));
        }
        parts.push((key, value));
    }
    Ok(parts)
}

/// What the library would let pass, or would read in another way than we promise.
fn check(parts: &[(&str, &str)], anchored: bool) -> Result<(), BadWindow> {
    let get = |key| {
        parts
            .iter()
            .find(|(k, _)| *k == key)
            .map(|(_, value)| *value)
    };
    let Some(freq) = get("FREQ") else {
        return bad("has no FREQ; write FREQ=DAILY, WEEKLY, MONTHLY or YEARLY");
    };
    for (key, value) in parts {
        check_part(key, value, freq)?;
    }
    if get("COUNT").is_some() && !anchored {
        return bad("COUNT needs a first day to count from; add a line DTSTART:YYYYMMDD before it");
    }
    if get("COUNT").is_some() && get("UNTIL").is_some() {
        return bad("has both COUNT and UNTIL; keep one");
    }
    let lists = parts.iter().filter(|(key, _)| key.starts_with("BY"));
    if get("BYSETPOS").is_some() && lists.count() == 1 {
        return bad("BYSETPOS chooses among days; add which ones, such as BYDAY=MO,TU,WE,TH,FR");
    }
    let numbered = get("BYDAY").is_some_and(|days| days.bytes().any(|byte| byte.is_ascii_digit()));
    if numbered && (matches!(freq, "DAILY" | "WEEKLY") || get("BYWEEKNO").is_some()) {
        return bad("BYDAY has a number; that needs FREQ=MONTHLY, or YEARLY without BYWEEKNO");
    }
    Ok(())
}

fn check_part(key: &str, value: &str, freq: &str) -> Result<(), BadWindow> {
    match key {
        "FREQ" if matches!(value, "DAILY" | "WEEKLY" | "MONTHLY" | "YEARLY") => Ok(()),
        "FREQ" => bad(format!(
            "FREQ={value} gives no days; write FREQ=DAILY, WEEKLY, MONTHLY or YEARLY"
        )),
        "INTERVAL" => number(key, value, LARGEST_INTERVAL),
        "COUNT" => number(key, value, LARGEST_COUNT),
        "UNTIL" if plain_date(value).is_some() => Ok(()),
        "UNTIL" => bad(format!("UNTIL={value} is no day; write UNTIL=YYYYMMDD")),
        "BYYEARDAY" if freq != "YEARLY" => bad("BYYEARDAY needs FREQ=YEARLY"),
        "WKST" => Ok(()),
        "BYDAY" | "BYMONTHDAY" | "BYYEARDAY" | "BYWEEKNO" | "BYMONTH" | "BYSETPOS" => {
            no_zero(key, value)
        }
        "BYHOUR" | "BYMINUTE" | "BYSECOND" => {
            bad(format!("{key} is a time of day; write `start` and `end`"))
        }
        _ => bad(format!("{key} is not known; see RFC 5545, section 3.3.10")),
    }
}

/// The library takes a zero for no number at all, so that `0TU` would be every Tuesday.
fn no_zero(key: &str, list: &str) -> Result<(), BadWindow> {
    let number = |item: &str| {
        item.trim_end_matches(|c: char| c.is_ascii_alphabetic())
            .parse()
    };
    if list.split(',').any(|item| number(item) == Ok(0)) {
        return bad(format!(
            "{key}={list} has a 0; count from 1, or back from the end from -1"
        ));
    }
    Ok(())
}

fn number(key: &str, value: &str, largest: u32) -> Result<(), BadWindow> {
    match value.parse::<u32>() {
        Ok(number) if (1..=largest).contains(&number) => Ok(()),
        Ok(_) | Err(_) => bad(format!("{key}={value}: write a number from 1 to {largest}")),
    }
}

/// The library knows moments only: midnight in UTC stands for the day. With UTC spelled out
/// everywhere it never asks the host for its time zone.
fn library(parts: &[(&str, &str)], first: Date) -> Result<RRuleSet, BadWindow> {
    let text: Vec<String> = parts
        .iter()
        .map(|(key, value)| match *key {
            "UNTIL" => format!("UNTIL={value}T000000Z"),
            key => format!("{key}={value}"),
        })
        .collect();
    let rule: RRule<Unvalidated> = text.join(";").parse().map_err(said)?;
    let start = midnight(first);
    let rule = rule.validate(start).map_err(said)?;
    Ok(RRuleSet::new(start).rrule(rule).limit())
}

/// The library's own words.
fn said(error: RRuleError) -> BadWindow {
    let said = match error {
        RRuleError::ParserError(error) => error.to_string(),
        RRuleError::ValidationError(error) => error.to_string(),
        RRuleError::IterError(error) => error,
    };
    BadWindow::Rule {
        why: format!(
            "{}; see RFC 5545, section 3.3.10",
            said.trim_end_matches('.')
        ),
    }
}

fn midnight(day: Date) -> chrono::DateTime<Tz> {
    let moment = tz::Offset::UTC.to_timestamp(day.to_datetime(jiff::civil::Time::midnight()));
    let second = moment.expect("a year between 2000 and 2100").as_second();
    chrono::DateTime::from_timestamp(second, 0)
        .expect("a year between 2000 and 2100")
        .with_timezone(&Tz::from_static(chrono_tz::UTC))
}

fn bad<T>(why: impl Into<String>) -> Result<T, BadWindow> {
    Err(BadWindow::Rule { why: why.into() })
}
