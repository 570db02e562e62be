//! `maxUnavailable`: how many members of a group may be out of service at once, as a number or as
//! a percentage of the group. Pure arithmetic; serves promise S1.

use std::fmt;
use std::str::FromStr;

/// How many of a group may be out of service at once.
///
/// Never zero: a limit that lets nobody reboot is what `pause` is for, and says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// So many nodes, at least 1.
    Count(u32),
    /// So many per cent of the group, 1 to 100; rounded down, but at least one node.
    Percent(u8),
}

/// Why a text is no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Neither a whole number nor one with a per cent sign.
    #[error("{0:?} is neither a number of nodes nor a percentage: write it like 1 or 10%")]
    NotANumber(String),
    /// Zero of either kind.
    #[error("{0:?} would let no node reboot: at least 1 or 1%; to stop all reboots, pause them")]
    Zero(String),
    /// More than the whole group.
    #[error("{0:?} is more than the whole group: at most 100%")]
    OverHundred(String),
}

impl Limit {
    /// The number of nodes that this allows in a group of `members`: at least 1, whatever the
    /// percentage (a group of three could otherwise never reboot under `10%`).
    pub fn of(self, members: usize) -> usize {
        match self {
            Limit::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
            Limit::Percent(percent) => {
                // Split, so that no group is large enough to overflow.
                let percent = usize::from(percent);
                let nodes = members / 100 * percent + members % 100 * percent / 100;
                nodes.max(1)
            }
        }
    }
}

impl Default for Limit {
    /// One node at a time.
    fn default() -> Self {
        Limit::Count(1)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Count(count) => write!(formatter, "{count}"),
            Limit::Percent(percent) => write!(formatter, "{percent}%"),
        }
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let (digits, percent) = match text.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        // `parse` alone would take a plus sign.
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(LimitError::NotANumber(text.to_owned()));
        }
        let number: u32 = digits
            .parse()
            .map_err(|_| LimitError::NotANumber(text.to_owned()))?;
        match (number, percent) {
            (0, _) => Err(LimitError::Zero(text.to_owned())),
            (count, false) => Ok(Limit::Count(count)),
            (1..=100, true) => Ok(Limit::Percent(
                u8::try_from(number).expect("at most 100 in this arm"),
            )),
            (_, true) => Err(LimitError::OverHundred(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_percentage_is_rounded_down_and_at_least_one_node() {
        let ten = "10%".parse::<Limit>().unwrap();
        let table = [(0, 1), (3, 1), (10, 1), (19, 1), (20, 2), (5000, 500)];
        for (members, allowed) in table {
            assert_eq!(ten.of(members), allowed, "10% of {members}");
        }
        assert_eq!(Limit::Percent(100).of(usize::MAX), usize::MAX);
        assert_eq!(Limit::Count(3).of(1), 3);
    }

    #[test]
    fn what_lets_nobody_reboot_or_says_nothing_is_refused_with_the_way_out() {
        for (text, says) in [
            ("0", "pause"),
            ("0%", "pause"),
            ("101%", "100%"),
            ("", "1 or 10%"),
            ("%", "1 or 10%"),
            ("-1", "1 or 10%"),
            ("+1", "1 or 10%"),
            ("1.5", "1 or 10%"),
            ("all", "1 or 10%"),
            ("99999999999", "1 or 10%"),
        ] {
            let error = text.parse::<Limit>().unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_limit_reads_back_as_it_was_printed(number in 1_u32.., percent in 1_u8..=100) {
            for limit in [Limit::Count(number), Limit::Percent(percent)] {
                prop_assert_eq!(limit.to_string().parse::<Limit>(), Ok(limit));
            }
        }

        #[test]
        fn a_percentage_never_allows_more_than_its_share_but_always_one(
            percent in 1_u8..=100,
            members in 0_usize..1_000_000,
        ) {
            let allowed = Limit::Percent(percent).of(members);
            prop_assert!(allowed >= 1);
            prop_assert!(allowed == 1 || allowed * 100 <= members * usize::from(percent));
            prop_assert!((allowed + 1) * 100 > members * usize::from(percent));
        }
    }
}
