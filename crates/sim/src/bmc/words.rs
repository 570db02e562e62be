//! Faults as text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dogwatch_core::duration;

use super::fault::{Fault, Scope, What};
use super::reset::ResetType;

/// Why a text is no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no fault of a BMC: {why}; write NAME [VALUE] [of reads|commands|logins] [once|N times]"
)]
pub struct BadFault {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl Fault {
    /// One of each kind: for whoever wants any.
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
    pub fn parse(text: &str) -> Result<Self, BadFault> {
        let words: Vec<_> = text.split_whitespace().collect();
        read(&words).map_err(|why| BadFault {
            text: text.to_owned(),
            why,
        })
    }
}

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Self, BadFault> {
        Self::parse(text)
    }
}

fn read(words: &[&str]) -> Result<Fault, String> {
    let (rest, times) = match words {
        [rest @ .., "once"] => (rest, Some(1)),
        [rest @ .., count, "times"] => (rest, Some(number(count)?)),
        rest => (rest, None),
    };
    if times == Some(0) {
        return Err("0 times is never".into());
    }
    let (rest, of) = match rest {
        [rest @ .., "of", "reads"] => (rest, Scope::Reads),
        [rest @ .., "of", "commands"] => (rest, Scope::Commands),
        [rest @ .., "of", "logins"] => (rest, Scope::Logins),
        rest => (rest, Scope::Anything),
    };
    let what = match rest {
        [] => return Err("it is empty".into()),
        [name] => plain(name)?,
        [name, value] => valued(name, value)?,
        [_, _, what, ..] => return Err(format!("nothing is known of {what:?} there")),
    };
    if of != Scope::Anything && !what.hits_requests() {
        return Err("it hits no requests that could be chosen".into());
    }
    Ok(Fault { what, of, times })
}

fn plain(name: &str) -> Result<What, String> {
    let plain = PLAIN.iter().find(|what| what.to_string() == name);
    plain.cloned().ok_or_else(|| {
        if VALUED.contains(&name) {
            format!("a value is missing after {name}")
        } else {
            format!("its name {name:?} is unknown")
        }
    })
}

/// Those whose names stand alone.
const PLAIN: [What; 18] = [
    What::Dead,
    What::Hang,
    What::Breaks,
    What::HalfBody,
    What::Garbage,
    What::Redirects,
    What::DiesWithHost,
    What::WrongCredentials,
    What::SessionsEnd,
    What::ForeignLinks,
    What::NoSuchSystem,
    What::SoftIgnored,
    What::OffIgnored,
    What::OnIgnored,
    What::TaskNeverEnds,
    What::TaskUnnamed,
    What::TaskFails,
    What::Contradicts,
];

/// Names before a value.
const VALUED: [&str; 11] = [
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

fn valued(name: &str, value: &str) -> Result<What, String> {
    Ok(match name {
        "slow" => What::Slow(time(value)?),
        "refuses" => What::Refuses(status(value)?),
        "clock-ahead" => What::ClockAhead(time(value)?),
        "clock-behind" => What::ClockBehind(time(value)?),
        "lacks" => {
            What::Lacks(ResetType::parse(value).ok_or(format!("{value:?} is no kind of reset"))?)
        }
        "already" => What::Already(status(value)?),
        "off-reported-early" => What::OffReportedEarly(time(value)?),
        "comes-back" => What::ComesBack(time(value)?),
        "answer-lost" => What::AnswerLost(time(value)?),
        "power-state" => What::PowerState(value.to_owned()),
        "stale" => What::Stale(time(value)?),
        _ if plain(name).is_ok() => return Err(format!("{name} has no value")),
        _ => return Err(format!("its name {name:?} is unknown")),
    })
}

fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}

fn status(text: &str) -> Result<u16, String> {
    let code = text.parse().ok().filter(|code| (200..600).contains(code));
    code.ok_or_else(|| format!("{text:?} is no HTTP status"))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        match self.of {
            Scope::Anything => {}
            Scope::Reads => f.write_str(" of reads")?,
            Scope::Commands => f.write_str(" of commands")?,
            Scope::Logins => f.write_str(" of logins")?,
        }
        match self.times {
            None => Ok(()),
            Some(1) => f.write_str(" once"),
            Some(times) => write!(f, " {times} times"),
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timed = |f: &mut fmt::Formatter<'_>, name, time: &Duration| {
            write!(f, "{name} {}", duration::format(*time))
        };
        match self {
            What::Slow(time) => timed(f, "slow", time),
            What::ClockAhead(time) => timed(f, "clock-ahead", time),
            What::ClockBehind(time) => timed(f, "clock-behind", time),
            What::OffReportedEarly(time) => timed(f, "off-reported-early", time),
            What::ComesBack(time) => timed(f, "comes-back", time),
            What::AnswerLost(time) => timed(f, "answer-lost", time),
            What::Stale(time) => timed(f, "stale", time),
            What::Refuses(code) => write!(f, "refuses {code}"),
            What::Already(code) => write!(f, "already {code}"),
            What::Lacks(kind) => write!(f, "lacks {kind}"),
            What::PowerState(word) => write!(f, "power-state {word}"),
            What::Dead => f.write_str("dead"),
            What::Hang => f.write_str("hang"),
            What::Breaks => f.write_str("breaks"),
            What::HalfBody => f.write_str("half-body"),
            What::Garbage => f.write_str("garbage"),
            What::Redirects => f.write_str("redirects"),
            What::DiesWithHost => f.write_str("dies-with-host"),
            What::WrongCredentials => f.write_str("wrong-credentials"),
            What::SessionsEnd => f.write_str("sessions-end"),
            What::ForeignLinks => f.write_str("foreign-links"),
            What::NoSuchSystem => f.write_str("no-such-system"),
            What::SoftIgnored => f.write_str("soft-ignored"),
            What::OffIgnored => f.write_str("off-ignored"),
            What::OnIgnored => f.write_str("on-ignored"),
            What::TaskNeverEnds => f.write_str("task-never-ends"),
            What::TaskUnnamed => f.write_str("task-unnamed"),
            What::TaskFails => f.write_str("task-fails"),
            What::Contradicts => f.write_str("contradicts"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for text in Fault::SAMPLES {
            let fault = Fault::parse(text).unwrap();
            assert_eq!(fault.to_string(), *text);
        }
    }

    #[test]
    fn there_is_a_sample_of_each_kind() {
        let has = |name: &str| {
            let is_it = |text: &&str| text.split(' ').next() == Some(name);
            Fault::SAMPLES.iter().any(is_it)
        };
        let plain = PLAIN.iter().map(ToString::to_string);
        for name in plain.chain(VALUED.map(str::to_owned)) {
            assert!(has(&name), "{name}");
        }
    }

    #[test]
    fn what_is_no_fault_is_refused_with_a_reason() {
        for (text, why) in [
            ("", "it is empty"),
            ("hangs", "its name \"hangs\" is unknown"),
            ("slow", "a value is missing after slow"),
            ("slow soon", "\"soon\" is no duration"),
            ("hang 5s", "hang has no value"),
            ("refuses 99", "\"99\" is no HTTP status"),
            ("lacks Nothing", "\"Nothing\" is no kind of reset"),
            ("hang 0 times", "0 times is never"),
            ("hang some times", "\"some\" is no number"),
            ("off-ignored of reads", "it hits no requests"),
            ("slow 5s of coffee", "nothing is known of \"of\" there"),
        ] {
            let error = Fault::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
