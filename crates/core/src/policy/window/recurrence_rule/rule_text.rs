//! Checks the text of a rule before it is passed to the library.

use jiff::civil::{Date, date};
use jiff::tz;
use recurrence::{RRule, RRuleError, RRuleSet, Tz, Unvalidated};

use super::WindowError;

const MAX_RULE_BYTES: usize = 512;

/// The first day of a rule that has no `DTSTART`: a Monday, and the first of a month and of a leap
/// year.
const DEFAULT_FIRST_DAY: Date = date(2024, 1, 1);

/// Largest `INTERVAL` and `COUNT`: enough for every calendar, and small enough that the library's
/// search ends soon.
const MAX_RULE_INTERVAL: u32 = 1_000;
const MAX_RULE_COUNT: u32 = 10_000;

/// Returns the rule in normal form, its first day, and the library's rule set.
pub(super) fn parse_rule(value: &str) -> Result<(String, Date, RRuleSet), WindowError> {
    if value.len() > MAX_RULE_BYTES {
        return rule_error(format!(
            "is longer than {MAX_RULE_BYTES} bytes; use two windows"
        ));
    }
    // The library slices texts by bytes, and panics in the middle of a multi-byte character.
    if !value.is_ascii() {
        return rule_error(
            "has a character that is not allowed in a rule; write one such as FREQ=MONTHLY;BYDAY=2TU",
        );
    }
    let value = value.to_ascii_uppercase();
    let (start, rule) = split_rule_lines(&value)?;
    let first = start.map(parse_first_day).transpose()?;
    let parts = split_rule_parts(rule)?;
    check_rule_parts(&parts, first.is_some())?;
    let first = first.unwrap_or(DEFAULT_FIRST_DAY);
    let text: Vec<String> = parts.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let set = build_rrule_set(&parts, first)?;
    Ok((text.join(";"), first, set))
}

/// Splits the value into the text of `DTSTART`, if there is one, and the rule without `RRULE:`.
fn split_rule_lines(value: &str) -> Result<(Option<&str>, &str), WindowError> {
    let lines = value
        .split('\n')
        .map(strip_rule_prefix)
        .filter(|line| !line.is_empty());
    let (starts, rules): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with("DTSTART"));
    match (starts.as_slice(), rules.as_slice()) {
        ([], [rule]) => Ok((None, rule)),
        ([start], [rule]) => Ok((Some(start), rule)),
        ([] | [_], []) => rule_error("has no rule; write one such as FREQ=MONTHLY;BYDAY=2TU"),
        (_, [_, _, ..]) => {
            rule_error("has several rules; write one, and one more window for each other")
        }
        ([_, _, ..], _) => rule_error("has several DTSTART lines; write one"),
    }
}

fn strip_rule_prefix(line: &str) -> &str {
    let line = line.trim();
    line.strip_prefix("RRULE:").unwrap_or(line)
}

fn parse_first_day(line: &str) -> Result<Date, WindowError> {
    let value = ["DTSTART:", "DTSTART;VALUE=DATE:"]
        .iter()
        .find_map(|name| line.strip_prefix(name));
    match value.and_then(parse_plain_date) {
        Some(day) if (2000..=2100).contains(&day.year()) => Ok(day),
        Some(_) | None => rule_error(format!(
            "{line:?} is not a first day; write DTSTART:YYYYMMDD (2000 to 2100); the time of day is in `start`"
        )),
    }
}

fn parse_plain_date(value: &str) -> Option<Date> {
    let plain = value.len() == 8 && value.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| value.parse().ok()).flatten()
}

fn split_rule_parts(rule: &str) -> Result<Vec<(&str, &str)>, WindowError> {
    let mut parts: Vec<(&str, &str)> = Vec::new();
    for part in rule.split(';') {
        let Some((key, value)) = part.split_once('=') else {
            return rule_error(format!(
                "{part:?} is not a part of a rule; write NAME=VALUE"
            ));
        };
        if parts.iter().any(|(other, _)| *other == key) {
            return rule_error(format!("{key} is given twice; keep one"));
        }
        parts.push((key, value));
    }
    Ok(parts)
}

/// Refuses what the library would accept, or would interpret in another way than documented.
fn check_rule_parts(parts: &[(&str, &str)], anchored: bool) -> Result<(), WindowError> {
    let get = |key| {
        parts
            .iter()
            .find(|(k, _)| *k == key)
            .map(|(_, value)| *value)
    };
    let Some(freq) = get("FREQ") else {
        return rule_error("has no FREQ; write FREQ=DAILY, WEEKLY, MONTHLY or YEARLY");
    };
    for (key, value) in parts {
        check_rule_part(key, value, freq)?;
    }
    if get("COUNT").is_some() && !anchored {
        return rule_error(
            "COUNT needs a first day to count from; add a line DTSTART:YYYYMMDD before it",
        );
    }
    if get("COUNT").is_some() && get("UNTIL").is_some() {
        return rule_error("has both COUNT and UNTIL; keep one");
    }
    let lists = parts.iter().filter(|(key, _)| key.starts_with("BY"));
    if get("BYSETPOS").is_some() && lists.count() == 1 {
        return rule_error(
            "BYSETPOS needs a set of days to choose from; add one, such as BYDAY=MO,TU,WE,TH,FR",
        );
    }
    let numbered = get("BYDAY").is_some_and(|days| days.bytes().any(|byte| byte.is_ascii_digit()));
    if numbered && (matches!(freq, "DAILY" | "WEEKLY") || get("BYWEEKNO").is_some()) {
        return rule_error(
            "BYDAY has a number; that needs FREQ=MONTHLY, or YEARLY without BYWEEKNO",
        );
    }
    Ok(())
}

fn check_rule_part(key: &str, value: &str, freq: &str) -> Result<(), WindowError> {
    match key {
        "FREQ" if matches!(value, "DAILY" | "WEEKLY" | "MONTHLY" | "YEARLY") => Ok(()),
        "FREQ" => rule_error(format!(
            "FREQ={value} is not supported; write FREQ=DAILY, WEEKLY, MONTHLY or YEARLY"
        )),
        "INTERVAL" => check_number(key, value, MAX_RULE_INTERVAL),
        "COUNT" => check_number(key, value, MAX_RULE_COUNT),
        "UNTIL" if parse_plain_date(value).is_some() => Ok(()),
        "UNTIL" => rule_error(format!("UNTIL={value} is not a date; write UNTIL=YYYYMMDD")),
        "BYYEARDAY" if freq != "YEARLY" => rule_error("BYYEARDAY needs FREQ=YEARLY"),
        "WKST" => Ok(()),
        "BYDAY" | "BYMONTHDAY" | "BYYEARDAY" | "BYWEEKNO" | "BYMONTH" | "BYSETPOS" => {
            check_no_zero(key, value)
        }
        "BYHOUR" | "BYMINUTE" | "BYSECOND" => {
            rule_error(format!("{key} is a time of day; write `start` and `end`"))
        }
        _ => rule_error(format!("{key} is not known; see RFC 5545, section 3.3.10")),
    }
}

/// The library treats a zero as no number at all, so that `0TU` would be every Tuesday.
fn check_no_zero(key: &str, list: &str) -> Result<(), WindowError> {
    let number = |item: &str| {
        item.trim_end_matches(|c: char| c.is_ascii_alphabetic())
            .parse()
    };
    if list.split(',').any(|item| number(item) == Ok(0)) {
        return rule_error(format!(
            "{key}={list} has a 0; count from 1, or back from the end from -1"
        ));
    }
    Ok(())
}

fn check_number(key: &str, value: &str, largest: u32) -> Result<(), WindowError> {
    match value.parse::<u32>() {
        Ok(number) if (1..=largest).contains(&number) => Ok(()),
        Ok(_) | Err(_) => rule_error(format!("{key}={value}: write a number from 1 to {largest}")),
    }
}

/// The library knows only instants, so midnight in UTC stands for the day. UTC is given everywhere,
/// so that the library never asks the host for its time zone.
fn build_rrule_set(parts: &[(&str, &str)], first: Date) -> Result<RRuleSet, WindowError> {
    let text: Vec<String> = parts
        .iter()
        .map(|(key, value)| match *key {
            "UNTIL" => format!("UNTIL={value}T000000Z"),
            key => format!("{key}={value}"),
        })
        .collect();
    let rule: RRule<Unvalidated> = text.join(";").parse().map_err(library_error)?;
    let start = utc_midnight(first);
    let rule = rule.validate(start).map_err(library_error)?;
    Ok(RRuleSet::new(start).rrule(rule).limit())
}

fn library_error(error: RRuleError) -> WindowError {
    let said = match error {
        RRuleError::ParserError(error) => error.to_string(),
        RRuleError::ValidationError(error) => error.to_string(),
        RRuleError::IterError(error) => error,
    };
    WindowError::Rule {
        why: format!(
            "{}; see RFC 5545, section 3.3.10",
            said.trim_end_matches('.')
        ),
    }
}

fn utc_midnight(day: Date) -> chrono::DateTime<Tz> {
    let moment = tz::Offset::UTC.to_timestamp(day.to_datetime(jiff::civil::Time::midnight()));
    let second = moment.expect("a year between 2000 and 2100").as_second();
    chrono::DateTime::from_timestamp(second, 0)
        .expect("a year between 2000 and 2100")
        .with_timezone(&Tz::from_static(chrono_tz::UTC))
}

fn rule_error<T>(why: impl Into<String>) -> Result<T, WindowError> {
    Err(WindowError::Rule { why: why.into() })
}
