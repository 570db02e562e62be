//! The values that faults carry. Each function returns `None` for any other fault.

use std::time::Duration;

use super::fault::BmcFaultKind;

/// How far the clock is ahead, and how far behind.
pub fn clock_skew(what: &BmcFaultKind) -> Option<(Duration, Duration)> {
    if let BmcFaultKind::ClockAhead(ahead) = what {
        return Some((*ahead, Duration::ZERO));
    }
    if let BmcFaultKind::ClockBehind(behind) = what {
        return Some((Duration::ZERO, *behind));
    }
    None
}

pub fn slow_duration(what: &BmcFaultKind) -> Option<Duration> {
    if let BmcFaultKind::Slow(time) = what {
        return Some(*time);
    }
    None
}

pub fn refusal_status(what: &BmcFaultKind) -> Option<u16> {
    if let BmcFaultKind::Refuses(code) = what {
        return Some(*code);
    }
    None
}

pub fn already_there_status(what: &BmcFaultKind) -> Option<u16> {
    if let BmcFaultKind::Already(code) = what {
        return Some(*code);
    }
    None
}

pub fn lost_answer_delay(what: &BmcFaultKind) -> Option<Duration> {
    if let BmcFaultKind::AnswerLost(after) = what {
        return Some(*after);
    }
    None
}

pub fn early_report_duration(what: &BmcFaultKind) -> Option<Duration> {
    if let BmcFaultKind::OffReportedEarly(early) = what {
        return Some(*early);
    }
    None
}

pub fn comeback_delay(what: &BmcFaultKind) -> Option<Duration> {
    if let BmcFaultKind::ComesBack(after) = what {
        return Some(*after);
    }
    None
}

pub fn power_state_word(what: &BmcFaultKind) -> Option<String> {
    if let BmcFaultKind::PowerState(word) = what {
        return Some(word.clone());
    }
    None
}

pub fn stale_age(what: &BmcFaultKind) -> Option<Duration> {
    if let BmcFaultKind::Stale(age) = what {
        return Some(*age);
    }
    None
}
