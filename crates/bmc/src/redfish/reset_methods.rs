//! Maps power commands to reset types, with the differences between makers.
//!
//! Source: DSP0268 `ResetType`; trees crawled from real machines, from NVIDIA's libredfish.

use dogwatch_core::power::RedfishVendor;

use crate::{PowerCommand, PowerReading};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResetMethod {
    pub(super) reset: &'static str,
    /// Only for types that toggle: the state in which the toggle has the wanted effect. It is read
    /// right before.
    pub(super) only_when: Option<PowerReading>,
}

const fn plain_reset(reset: &'static str) -> ResetMethod {
    ResetMethod {
        reset,
        only_when: None,
    }
}

const fn press_button_when(state: PowerReading) -> ResetMethod {
    ResetMethod {
        reset: "PushPowerButton",
        only_when: Some(state),
    }
}

/// The methods in order of preference; the first that the BMC allows is used. Nothing replaces a
/// hard power-off: a restart is not off, and a button press asks the operating system.
fn reset_methods(command: PowerCommand) -> &'static [ResetMethod] {
    const ON: [ResetMethod; 3] = [
        plain_reset("On"),
        plain_reset("ForceOn"),
        press_button_when(PowerReading::Off),
    ];
    const SOFT_OFF: [ResetMethod; 2] = [
        plain_reset("GracefulShutdown"),
        press_button_when(PowerReading::On),
    ];
    const OFF: [ResetMethod; 1] = [plain_reset("ForceOff")];
    match command {
        PowerCommand::On => &ON,
        PowerCommand::SoftOff => &SOFT_OFF,
        PowerCommand::Off => &OFF,
    }
}

/// Facts about one maker's BMCs that the standard leaves open.
struct MakerQuirks {
    /// Prefixes of `Manufacturer`, in lower case.
    named: &'static [&'static str],
    /// The address scheme that also identifies the maker.
    scheme: Option<RedfishVendor>,
    /// `PushPowerButton` is a short press, which the operating system takes as a request to shut
    /// down.
    presses_shortly: bool,
}

const MAKER_QUIRKS: [MakerQuirks; 4] = [
    MakerQuirks {
        named: &["dell"],
        scheme: Some(RedfishVendor::Idrac),
        presses_shortly: true,
    },
    // iLO 4 and early iLO 5 list no GracefulShutdown; there a long press is a separate reset type.
    MakerQuirks {
        named: &["hpe", "hewlett", "hp "],
        scheme: Some(RedfishVendor::Ilo5),
        presses_shortly: true,
    },
    MakerQuirks {
        named: &["lenovo"],
        scheme: None,
        presses_shortly: false,
    },
    MakerQuirks {
        named: &["supermicro"],
        scheme: None,
        presses_shortly: false,
    },
];

/// The facts that decide on a method: what the BMC allows, and who made it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResetAbilities {
    /// The allowable reset types; empty: the BMC lists none.
    pub(super) allowed: Vec<String>,
    pub(super) button: bool,
}

/// Whether `PushPowerButton` is a short press on this maker's BMCs.
pub(super) fn has_short_press_button(scheme: RedfishVendor, manufacturer: Option<&str>) -> bool {
    let manufacturer = manufacturer.unwrap_or_default().to_lowercase();
    let is = |maker: &&MakerQuirks| {
        let mut names = maker.named.iter();
        maker.scheme == Some(scheme) || names.any(|name| manufacturer.starts_with(name))
    };
    MAKER_QUIRKS
        .iter()
        .find(is)
        .is_some_and(|maker| maker.presses_shortly)
}

impl ResetAbilities {
    /// Chooses the method for a command. If the BMC lists none of the methods, on and off are tried
    /// all the same: some BMCs list only the types that make sense in the present state, and a list
    /// must not prevent fencing. A soft power-off is not tried then, because the hard one can
    /// follow.
    pub(super) fn choose_reset_method(&self, command: PowerCommand) -> Option<ResetMethod> {
        let first = || reset_methods(command).first().copied();
        match command {
            _ if self.allowed.is_empty() => first(),
            PowerCommand::SoftOff => self.find_listed_method(command),
            PowerCommand::On | PowerCommand::Off => self.find_listed_method(command).or_else(first),
        }
    }

    /// The first method that the BMC lists.
    pub(super) fn find_listed_method(&self, command: PowerCommand) -> Option<ResetMethod> {
        let has = |way: &ResetMethod| self.allowed.iter().any(|allowed| allowed == way.reset);
        let may = |way: &ResetMethod| way.only_when.is_none() || self.button;
        let mut ways = reset_methods(command).iter().copied();
        ways.find(|way| has(way) && may(way))
    }

    /// The commands that the BMC supports, as far as its list can be trusted in this state: a list
    /// made for a host that is off may lack the types that switch it off. Empty: unknown.
    pub(super) fn supported_commands(&self, reading: PowerReading) -> Vec<PowerCommand> {
        if self.allowed.is_empty() {
            return Vec::new();
        }
        let is_moot = |command: PowerCommand| match reading {
            PowerReading::Off => command.is_power_off(),
            PowerReading::On => !command.is_power_off(),
            PowerReading::PoweringOn | PowerReading::PoweringOff => true,
        };
        let all = [PowerCommand::On, PowerCommand::SoftOff, PowerCommand::Off];
        let can = |command: &PowerCommand| {
            is_moot(*command) || self.find_listed_method(*command).is_some()
        };
        all.into_iter().filter(can).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abilities(allowed: &[&str], button: bool) -> ResetAbilities {
        ResetAbilities {
            allowed: allowed.iter().map(|&reset| reset.to_owned()).collect(),
            button,
        }
    }

    /// The reset type of each command: on, soft off, off.
    fn resets(abilities: &ResetAbilities) -> [Option<&'static str>; 3] {
        let all = [PowerCommand::On, PowerCommand::SoftOff, PowerCommand::Off];
        all.map(|command| abilities.choose_reset_method(command).map(|way| way.reset))
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
            // This list has only the types that make sense in the present state.
            (&["On"], true, [on, None, off]),
            // A restart is not off.
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
        let when = |command| {
            only.choose_reset_method(command)
                .and_then(|way| way.only_when)
        };
        assert_eq!(when(PowerCommand::SoftOff), Some(PowerReading::On));
        assert_eq!(when(PowerCommand::On), Some(PowerReading::Off));
    }

    #[test]
    fn a_list_is_believed_of_what_makes_sense_in_its_state() {
        use PowerCommand::{Off, On, SoftOff};
        let only_on = abilities(&["On"], true);
        assert_eq!(
            only_on.supported_commands(PowerReading::Off),
            [On, SoftOff, Off]
        );
        assert_eq!(only_on.supported_commands(PowerReading::On), [On]);
        assert!(
            abilities(&[], true)
                .supported_commands(PowerReading::On)
                .is_empty()
        );
    }

    #[test]
    fn a_maker_is_known_by_scheme_or_by_name() {
        for (scheme, manufacturer, button) in [
            (RedfishVendor::Idrac, None, true),
            (RedfishVendor::Ilo5, None, true),
            (RedfishVendor::Standard, Some("Dell Inc."), true),
            (RedfishVendor::Standard, Some("HPE"), true),
            (RedfishVendor::Standard, Some("Lenovo"), false),
            (RedfishVendor::Standard, Some("Supermicro"), false),
            (RedfishVendor::Standard, Some("Somebody"), false),
            (RedfishVendor::Standard, None, false),
        ] {
            assert_eq!(
                has_short_press_button(scheme, manufacturer),
                button,
                "{scheme:?} {manufacturer:?}"
            );
        }
    }
}
