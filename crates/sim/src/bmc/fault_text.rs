//! Reads and writes the text form of BMC faults.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dogwatch_core::duration;

use super::fault::{BmcFaultKind, FaultScope, SimBmcFault};
use super::reset::ResetType;

/// A text that is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a fault of a BMC: {why}; write NAME [VALUE] [of reads|commands|logins] [once|N times]"
)]
pub struct BmcFaultParseError {
    pub text: String,
    pub why: String,
}

impl SimBmcFault {
    /// One example of each kind of fault, for callers that want any fault.
    pub const SAMPLES: &[&str] = &[
        "dead",
        "hang of commands",
        "breaks once",
        "half-body",
        "slow 15s of commands 2 times",
        "refuses 503 of logins once",
        "garbage of reads",
        "redirects",
        "dies-with-host",
        "wrong-credentials",
        "sessions-end 3 times",
        "foreign-links",
        "no-such-system",
        "clock-ahead 1h",
        "clock-behind 1h",
        "lacks GracefulShutdown",
        "already 409",
        "soft-ignored",
        "off-ignored 2 times",
        "on-ignored once",
        "off-reported-early 20s",
        "comes-back 20s",
        "answer-lost 20s once",
        "task-never-ends",
        "task-unnamed",
        "task-fails",
        "power-state Blinking",
        "power-state null",
        "contradicts",
        "stale 30s",
    ];

    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Result<Self, BmcFaultParseError> {
        let words: Vec<_> = text.split_whitespace().collect();
        parse_fault_words(&words).map_err(|why| BmcFaultParseError {
            text: text.to_owned(),
            why,
        })
    }
}

impl FromStr for SimBmcFault {
    type Err = BmcFaultParseError;

    fn from_str(text: &str) -> Result<Self, BmcFaultParseError> {
        Self::parse(text)
    }
}

fn parse_fault_words(words: &[&str]) -> Result<SimBmcFault, String> {
    let (rest, times) = match words {
        [rest @ .., "once"] => (rest, Some(1)),
        [rest @ .., count, "times"] => (rest, Some(parse_count(count)?)),
        rest => (rest, None),
    };
    if times == Some(0) {
        return Err("write a number of times of at least 1".into());
    }
    let (rest, of) = match rest {
        [rest @ .., "of", "reads"] => (rest, FaultScope::Reads),
        [rest @ .., "of", "commands"] => (rest, FaultScope::Commands),
        [rest @ .., "of", "logins"] => (rest, FaultScope::Logins),
        rest => (rest, FaultScope::Anything),
    };
    let what = match rest {
        [] => return Err("it is empty".into()),
        [name] => parse_plain_fault(name)?,
        [name, value] => parse_valued_fault(name, value)?,
        [_, _, what, ..] => return Err(format!("{what:?} is not known here")),
    };
    if of != FaultScope::Anything && !what.hits_requests() {
        return Err("it does not act on requests, so it takes no \"of …\"".into());
    }
    Ok(SimBmcFault {
        kind: what,
        scope: of,
        times,
    })
}

fn parse_plain_fault(name: &str) -> Result<BmcFaultKind, String> {
    let plain = PLAIN_FAULTS.iter().find(|what| what.to_string() == name);
    plain.cloned().ok_or_else(|| {
        if VALUED_FAULT_NAMES.contains(&name) {
            format!("a value is missing after {name}")
        } else {
            format!("the name {name:?} is not known")
        }
    })
}

/// Faults whose name takes no value.
const PLAIN_FAULTS: [BmcFaultKind; 18] = [
    BmcFaultKind::Dead,
    BmcFaultKind::Hang,
    BmcFaultKind::Breaks,
    BmcFaultKind::HalfBody,
    BmcFaultKind::Garbage,
    BmcFaultKind::Redirects,
    BmcFaultKind::DiesWithHost,
    BmcFaultKind::WrongCredentials,
    BmcFaultKind::SessionsEnd,
    BmcFaultKind::ForeignLinks,
    BmcFaultKind::NoSuchSystem,
    BmcFaultKind::SoftIgnored,
    BmcFaultKind::OffIgnored,
    BmcFaultKind::OnIgnored,
    BmcFaultKind::TaskNeverEnds,
    BmcFaultKind::TaskUnnamed,
    BmcFaultKind::TaskFails,
    BmcFaultKind::Contradicts,
];

/// The names of faults that take a value.
const VALUED_FAULT_NAMES: [&str; 11] = [
    "slow",
    "refuses",
    "clock-ahead",
    "clock-behind",
    "lacks",
    "already",
    "off-reported-early",
    "comes-back",
    "answer-lost",
    "power-state",
    "stale",
];

fn parse_valued_fault(name: &str, value: &str) -> Result<BmcFaultKind, String> {
    Ok(match name {
        "slow" => BmcFaultKind::Slow(parse_duration(value)?),
        "refuses" => BmcFaultKind::Refuses(parse_status_code(value)?),
        "clock-ahead" => BmcFaultKind::ClockAhead(parse_duration(value)?),
        "clock-behind" => BmcFaultKind::ClockBehind(parse_duration(value)?),
        "lacks" => BmcFaultKind::Lacks(
            ResetType::parse(value).ok_or(format!("{value:?} is not a kind of reset"))?,
        ),
        "already" => BmcFaultKind::Already(parse_status_code(value)?),
        "off-reported-early" => BmcFaultKind::OffReportedEarly(parse_duration(value)?),
        "comes-back" => BmcFaultKind::ComesBack(parse_duration(value)?),
        "answer-lost" => BmcFaultKind::AnswerLost(parse_duration(value)?),
        "power-state" => BmcFaultKind::PowerState(value.to_owned()),
        "stale" => BmcFaultKind::Stale(parse_duration(value)?),
        _ if parse_plain_fault(name).is_ok() => return Err(format!("{name} has no value")),
        _ => return Err(format!("the name {name:?} is not known")),
    })
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    duration::parse_duration(text).map_err(|error| error.to_string())
}

fn parse_count(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number"))
}

fn parse_status_code(text: &str) -> Result<u16, String> {
    let code = text.parse().ok().filter(|code| (200..600).contains(code));
    code.ok_or_else(|| format!("{text:?} is not an HTTP status"))
}

impl fmt::Display for SimBmcFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match self.scope {
            FaultScope::Anything => {}
            FaultScope::Reads => f.write_str(" of reads")?,
            FaultScope::Commands => f.write_str(" of commands")?,
            FaultScope::Logins => f.write_str(" of logins")?,
        }
        match self.times {
            None => Ok(()),
            Some(1) => f.write_str(" once"),
            Some(times) => write!(f, " {times} times"),
        }
    }
}

impl fmt::Display for BmcFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timed = |f: &mut fmt::Formatter<'_>, name, time: &Duration| {
            write!(f, "{name} {}", duration::format_duration(*time))
        };
        match self {
            BmcFaultKind::Slow(time) => timed(f, "slow", time),
            BmcFaultKind::ClockAhead(time) => timed(f, "clock-ahead", time),
            BmcFaultKind::ClockBehind(time) => timed(f, "clock-behind", time),
            BmcFaultKind::OffReportedEarly(time) => timed(f, "off-reported-early", time),
            BmcFaultKind::ComesBack(time) => timed(f, "comes-back", time),
            BmcFaultKind::AnswerLost(time) => timed(f, "answer-lost", time),
            BmcFaultKind::Stale(time) => timed(f, "stale", time),
            BmcFaultKind::Refuses(code) => write!(f, "refuses {code}"),
            BmcFaultKind::Already(code) => write!(f, "already {code}"),
            BmcFaultKind::Lacks(kind) => write!(f, "lacks {kind}"),
            BmcFaultKind::PowerState(word) => write!(f, "power-state {word}"),
            BmcFaultKind::Dead => f.write_str("dead"),
            BmcFaultKind::Hang => f.write_str("hang"),
            BmcFaultKind::Breaks => f.write_str("breaks"),
            BmcFaultKind::HalfBody => f.write_str("half-body"),
            BmcFaultKind::Garbage => f.write_str("garbage"),
            BmcFaultKind::Redirects => f.write_str("redirects"),
            BmcFaultKind::DiesWithHost => f.write_str("dies-with-host"),
            BmcFaultKind::WrongCredentials => f.write_str("wrong-credentials"),
            BmcFaultKind::SessionsEnd => f.write_str("sessions-end"),
            BmcFaultKind::ForeignLinks => f.write_str("foreign-links"),
            BmcFaultKind::NoSuchSystem => f.write_str("no-such-system"),
            BmcFaultKind::SoftIgnored => f.write_str("soft-ignored"),
            BmcFaultKind::OffIgnored => f.write_str("off-ignored"),
            BmcFaultKind::OnIgnored => f.write_str("on-ignored"),
            BmcFaultKind::TaskNeverEnds => f.write_str("task-never-ends"),
            BmcFaultKind::TaskUnnamed => f.write_str("task-unnamed"),
            BmcFaultKind::TaskFails => f.write_str("task-fails"),
            BmcFaultKind::Contradicts => f.write_str("contradicts"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for text in SimBmcFault::SAMPLES {
            let fault = SimBmcFault::parse(text).unwrap();
            assert_eq!(fault.to_string(), *text);
        }
    }

    #[test]
    fn there_is_a_sample_of_each_kind() {
        let has = |name: &str| {
            let is_it = |text: &&str| text.split(' ').next() == Some(name);
            SimBmcFault::SAMPLES.iter().any(is_it)
        };
        let plain = PLAIN_FAULTS.iter().map(ToString::to_string);
        for name in plain.chain(VALUED_FAULT_NAMES.map(str::to_owned)) {
            assert!(has(&name), "{name}");
        }
    }

    #[test]
    fn what_is_no_fault_is_refused_with_a_reason() {
        for (text, why) in [
            ("", "it is empty"),
            ("hangs", "the name \"hangs\" is not known"),
            ("slow", "a value is missing after slow"),
            ("slow soon", "\"soon\" is not a duration"),
            ("hang 5s", "hang has no value"),
            ("refuses 99", "\"99\" is not an HTTP status"),
            ("lacks Nothing", "\"Nothing\" is not a kind of reset"),
            ("hang 0 times", "write a number of times of at least 1"),
            ("hang some times", "\"some\" is not a number"),
            ("off-ignored of reads", "it does not act on requests"),
            ("slow 5s of coffee", "\"of\" is not known here"),
        ] {
            let error = SimBmcFault::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
