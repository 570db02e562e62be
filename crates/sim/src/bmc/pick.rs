//! The values of faults: `None` of any other fault.

use std::time::Duration;

use super::fault::What;

/// How far ahead, and how far behind.
pub fn clock(what: &What) -> Option<(Duration, Duration)> {
    if let What::ClockAhead(ahead) = what {
        return Some((*ahead, Duration::ZERO));
    }
    if let What::ClockBehind(behind) = what {
        return Some((Duration::ZERO, *behind));
    }
    None
}

pub fn slow(what: &What) -> Option<Duration> {
    if let What::Slow(time) = what {
        return Some(*time);
    }
    None
}

pub fn refuses(what: &What) -> Option<u16> {
    if let What::Refuses(code) = what {
        return Some(*code);
    }
    None
}

pub fn already(what: &What) -> Option<u16> {
    if let What::Already(code) = what {
        return Some(*code);
    }
    None
}

pub fn answer_lost(what: &What) -> Option<Duration> {
    if let What::AnswerLost(after) = what {
        return Some(*after);
    }
    None
}

pub fn reported_early(what: &What) -> Option<Duration> {
    if let What::OffReportedEarly(early) = what {
        return Some(*early);
    }
    None
}

pub fn comes_back(what: &What) -> Option<Duration> {
    if let What::ComesBack(after) = what {
        return Some(*after);
    }
    None
}

pub fn word(what: &What) -> Option<String> {
    if let What::PowerState(word) = what {
        return Some(word.clone());
    }
    None
}

pub fn stale(what: &What) -> Option<Duration> {
    if let What::Stale(age) = what {
        return Some(*age);
    }
    None
}
