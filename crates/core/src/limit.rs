//! `maxUnavailable`: how many members of a group may be out of service at once, as a number or as
//! a percentage of the group. Pure arithmetic; serves promise S1.

use std::fmt;
use std::str::FromStr;

use crate::printable::one_line;

/// How many nodes of a group may be unavailable at once.
///
/// Never zero: to let no node reboot, people use `pause`, which says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnavailabilityLimit {
    /// A number of nodes, at least 1.
    Count(u32),
    /// A percentage of the group, 1 to 100; rounded down, but at least one node.
    Percent(u8),
    /// Both at once: the smaller number of nodes.
    PercentUpTo { percent: u8, count: u32 },
}

/// Why a text is not a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Neither a whole number nor one with a per cent sign.
    #[error("{0:?} is neither a number of nodes nor a percentage: write it like 1 or 10%")]
    NotANumber(String),
    #[error(
        "{0:?} would never let a node reboot: write at least 1 or 1%; to stop all reboots, pause them"
    )]
    Zero(String),
    /// More than the whole group.
    #[error("{0:?} is more than the whole group: write at most 100%")]
    OverHundred(String),
}

impl UnavailabilityLimit {
    /// The number of nodes that this allows in a group of `members`: at least 1, whatever the
    /// percentage (otherwise a group of three could never reboot under `10%`).
    pub fn allowed_nodes(self, members: usize) -> usize {
        match self {
            UnavailabilityLimit::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
            UnavailabilityLimit::Percent(percent) => {
                // Multiplied in two parts, so that no group is large enough to overflow.
                let percent = usize::from(percent);
                let nodes = members / 100 * percent + members % 100 * percent / 100;
                nodes.max(1)
            }
            UnavailabilityLimit::PercentUpTo { percent, count } => {
                let share = UnavailabilityLimit::Percent(percent).allowed_nodes(members);
                share.min(UnavailabilityLimit::Count(count).allowed_nodes(members))
            }
        }
    }

    /// The smaller of this limit and a number of nodes.
    #[must_use]
    pub fn capped_at(self, cap: Option<u32>) -> Self {
        let Some(cap) = cap else {
            return self;
        };
        match self {
            UnavailabilityLimit::Count(count) => UnavailabilityLimit::Count(count.min(cap)),
            UnavailabilityLimit::Percent(percent) => UnavailabilityLimit::PercentUpTo {
                percent,
                count: cap,
            },
            UnavailabilityLimit::PercentUpTo { percent, count } => {
                UnavailabilityLimit::PercentUpTo {
                    percent,
                    count: count.min(cap),
                }
            }
        }
    }

    /// Whether the number of nodes depends on the size of the group.
    pub fn needs_group_size(self) -> bool {
        match self {
            UnavailabilityLimit::Count(_) => false,
            UnavailabilityLimit::Percent(_) | UnavailabilityLimit::PercentUpTo { .. } => true,
        }
    }
}

impl Default for UnavailabilityLimit {
    /// One node at a time.
    fn default() -> Self {
        UnavailabilityLimit::Count(1)
    }
}

impl fmt::Display for UnavailabilityLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnavailabilityLimit::Count(count) => write!(formatter, "{count}"),
            UnavailabilityLimit::Percent(percent) => write!(formatter, "{percent}%"),
            UnavailabilityLimit::PercentUpTo { percent, count } => {
                write!(formatter, "{percent}%, at most {count}")
            }
        }
    }
}

impl FromStr for UnavailabilityLimit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let (digits, percent) = match text.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        // `parse` alone would accept a plus sign.
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(LimitError::NotANumber(one_line(text)));
        }
        let number: u32 = digits
            .parse()
            .map_err(|_| LimitError::NotANumber(one_line(text)))?;
        match (number, percent) {
            (0, _) => Err(LimitError::Zero(one_line(text))),
            (count, false) => Ok(UnavailabilityLimit::Count(count)),
            (1..=100, true) => Ok(UnavailabilityLimit::Percent(
                u8::try_from(number).expect("at most 100 in this arm"),
            )),
            (_, true) => Err(LimitError::OverHundred(one_line(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_percentage_is_rounded_down_and_at_least_one_node() {
        let ten = "10%".parse::<UnavailabilityLimit>().unwrap();
        let table = [(0, 1), (3, 1), (10, 1), (19, 1), (20, 2), (5000, 500)];
        for (members, allowed) in table {
            assert_eq!(ten.allowed_nodes(members), allowed, "10% of {members}");
        }
        assert_eq!(
            UnavailabilityLimit::Percent(100).allowed_nodes(usize::MAX),
            usize::MAX
        );
        assert_eq!(UnavailabilityLimit::Count(3).allowed_nodes(1), 3);
    }

    #[test]
    fn of_a_percentage_and_a_number_the_smaller_rules() {
        let both = UnavailabilityLimit::Percent(10).capped_at(Some(5));
        for (members, allowed) in [(3, 1), (20, 2), (50, 5), (5000, 5)] {
            assert_eq!(both.allowed_nodes(members), allowed, "{both} of {members}");
        }
        let smaller = both.capped_at(Some(2));
        assert_eq!(smaller.allowed_nodes(5000), 2);
        assert_eq!(both.capped_at(None), both);
        let counts = [(3, 2, 2), (2, 3, 2)];
        for (count, cap, allowed) in counts {
            let limit = UnavailabilityLimit::Count(count).capped_at(Some(cap));
            assert_eq!(limit, UnavailabilityLimit::Count(allowed));
        }
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
            let error = text.parse::<UnavailabilityLimit>().unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_limit_reads_back_as_it_was_printed(number in 1_u32.., percent in 1_u8..=100) {
            for limit in [UnavailabilityLimit::Count(number), UnavailabilityLimit::Percent(percent)] {
                prop_assert_eq!(limit.to_string().parse::<UnavailabilityLimit>(), Ok(limit));
            }
        }

        #[test]
        fn a_percentage_never_allows_more_than_its_share_but_always_one(
            percent in 1_u8..=100,
            members in 0_usize..1_000_000,
        ) {
            let allowed = UnavailabilityLimit::Percent(percent).allowed_nodes(members);
            prop_assert!(allowed >= 1);
            prop_assert!(allowed == 1 || allowed * 100 <= members * usize::from(percent));
            prop_assert!((allowed + 1) * 100 > members * usize::from(percent));
        }
    }
}
