//! Which reset types are a command, and what makers leave different.
//!
//! Source: DSP0268 `ResetType`; trees crawled from real machines, as NVIDIA's libredfish keeps them.

use dogwatch_core::power::Vendor;

use crate::{Command, Reading};

/// One way to run a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    /// The reset type.
    pub(super) reset: &'static str,
    /// It toggles: it does what is meant only in this state, which is read right before.
    pub(super) only_when: Option<Reading>,
}

const fn way(reset: &'static str) -> Way {
    Way {
        reset,
        only_when: None,
    }
}

const fn press_when(state: Reading) -> Way {
    Way {
        reset: "PushPowerButton",
        only_when: Some(state),
    }
}

/// In order; the first that the BMC allows is used. There is no second way to cut the power: a restart
/// is not off, and a button that is pressed asks the operating system.
fn ways(command: Command) -> &'static [Way] {
    const ON: [Way; 3] = [way("On"), way("ForceOn"), press_when(Reading::Off)];
    const SOFT_OFF: [Way; 2] = [way("GracefulShutdown"), press_when(Reading::On)];
    const OFF: [Way; 1] = [way("ForceOff")];
    match command {
        Command::On => &ON,
        Command::SoftOff => &SOFT_OFF,
        Command::Off => &OFF,
    }
}

/// What is known of one maker's BMCs that the standard leaves open.
struct Maker {
    /// How `Manufacturer` begins, in lower case.
    named: &'static [&'static str],
    /// The scheme that says so as well.
    scheme: Option<Vendor>,
    /// `PushPowerButton` is a short press, which the operating system takes for a shutdown.
    presses_shortly: bool,
}

const MAKERS: [Maker; 4] = [
    Maker {
        named: &["dell"],
        scheme: Some(Vendor::Idrac),
        presses_shortly: true,
    },
    // iLO 4 and early iLO 5 list no GracefulShutdown; a long press is a reset type of its own there.
    Maker {
        named: &["hpe", "hewlett", "hp "],
        scheme: Some(Vendor::Ilo5),
        presses_shortly: true,
    },
    Maker {
        named: &["lenovo"],
        scheme: None,
        presses_shortly: false,
    },
    Maker {
        named: &["supermicro"],
        scheme: None,
        presses_shortly: false,
    },
];

/// What decides on a way: what the BMC allows, and who made it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// The allowable reset types; empty: it names none.
    pub(super) allowed: Vec<String>,
    /// Whether its power button may be used.
    pub(super) button: bool,
}

/// Whether `PushPowerButton` is a short press at this maker's.
pub(super) fn has_button(scheme: Vendor, manufacturer: Option<&str>) -> bool {
    let manufacturer = manufacturer.unwrap_or_default().to_lowercase();
    let is = |maker: &&Maker| {
        let mut names = maker.named.iter();
        maker.scheme == Some(scheme) || names.any(|name| manufacturer.starts_with(name))
    };
    MAKERS
        .iter()
        .find(is)
        .is_some_and(|maker| maker.presses_shortly)
}

impl Abilities {
    /// How a command is run. Where the BMC's list has none of its ways, on and off are tried all the same:
    /// some list only what makes sense in the state they are in, and nobody is fenced by a list. A soft
    /// off is not tried: there is a hard one.
    pub(super) fn way(&self, command: Command) -> Option<Way> {
        let first = || ways(command).first().copied();
        match command {
            _ if self.allowed.is_empty() => first(),
            Command::SoftOff => self.listed(command),
            Command::On | Command::Off => self.listed(command).or_else(first),
        }
    }

    /// The first way that the BMC's list has.
    pub(super) fn listed(&self, command: Command) -> Option<Way> {
        let has = |way: &Way| self.allowed.iter().any(|allowed| allowed == way.reset);
        let may = |way: &Way| way.only_when.is_none() || self.button;
        let mut ways = ways(command).iter().copied();
        ways.find(|way| has(way) && may(way))
    }

    /// What the BMC can do, as far as its list is to be believed in this state: a list that was made for a
    /// host that is off may lack the ways to switch it off. Empty: it does not say.
    pub(super) fn commands(&self, reading: Reading) -> Vec<Command> {
        if self.allowed.is_empty() {
            return Vec::new();
        }
        let is_moot = |command: Command| match reading {
            Reading::Off => command.is_off(),
            Reading::On => !command.is_off(),
            Reading::PoweringOn | Reading::PoweringOff => true,
        };
        let all = [Command::On, Command::SoftOff, Command::Off];
        let can = |command: &Command| is_moot(*command) || self.listed(*command).is_some();
        all.into_iter().filter(can).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abilities(allowed: &[&str], button: bool) -> Abilities {
        Abilities {
            allowed: allowed.iter().map(|&reset| reset.to_owned()).collect(),
            button,
        }
    }

    /// The reset type of each command: on, soft off, off.
    fn resets(abilities: &Abilities) -> [Option<&'static str>; 3] {
        let all = [Command::On, Command::SoftOff, Command::Off];
        all.map(|command| abilities.way(command).map(|way| way.reset))
    }

    #[test]
    fn each_list_has_its_ways() {
        let on = Some("On");
        let soft = Some("GracefulShutdown");
        let off = Some("ForceOff");
        let press = Some("PushPowerButton");
        for (allowed, button, expected) in [
            (&[][..], true, [on, soft, off]),
            (
                &["On", "ForceOff", "GracefulShutdown"],
                true,
                [on, soft, off],
            ),
            (&["ForceOn", "ForceOff"], true, [Some("ForceOn"), None, off]),
            (
                &["On", "ForceOff", "PushPowerButton"],
                true,
                [on, press, off],
            ),
            (
                &["On", "ForceOff", "PushPowerButton"],
                false,
                [on, None, off],
            ),
            (&["ForceOff", "PushPowerButton"], true, [press, press, off]),
            (&["ForceOff", "PushPowerButton"], false, [on, None, off]),
            // Only what makes sense in the state that it is in.
            (&["On"], true, [on, None, off]),
            // A restart is no off.
            (
                &["On", "ForceRestart", "PowerCycle", "Nmi"],
                true,
                [on, None, off],
            ),
        ] {
            assert_eq!(
                resets(&abilities(allowed, button)),
                expected,
                "{allowed:?} {button}"
            );
        }
    }

    #[test]
    fn the_button_is_pressed_only_in_the_state_that_it_is_meant_for() {
        let only = abilities(&["PushPowerButton"], true);
        let when = |command| only.way(command).and_then(|way| way.only_when);
        assert_eq!(when(Command::SoftOff), Some(Reading::On));
        assert_eq!(when(Command::On), Some(Reading::Off));
    }

    #[test]
    fn a_list_is_believed_of_what_makes_sense_in_its_state() {
        use Command::{Off, On, SoftOff};
        let only_on = abilities(&["On"], true);
        assert_eq!(only_on.commands(Reading::Off), [On, SoftOff, Off]);
        assert_eq!(only_on.commands(Reading::On), [On]);
        assert!(abilities(&[], true).commands(Reading::On).is_empty());
    }

    #[test]
    fn a_maker_is_known_by_scheme_or_by_name() {
        for (scheme, manufacturer, button) in [
            (Vendor::Idrac, None, true),
            (Vendor::Ilo5, None, true),
            (Vendor::Standard, Some("Dell Inc."), true),
            (Vendor::Standard, Some("HPE"), true),
            (Vendor::Standard, Some("Lenovo"), false),
            (Vendor::Standard, Some("Supermicro"), false),
            (Vendor::Standard, Some("Somebody"), false),
            (Vendor::Standard, None, false),
        ] {
            assert_eq!(
                has_button(scheme, manufacturer),
                button,
                "{scheme:?} {manufacturer:?}"
            );
        }
    }
}
