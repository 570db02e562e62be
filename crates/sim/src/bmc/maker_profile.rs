//! The differences between makers' Redfish implementations, as data.
//!
//! Written by hand from documents of real machines: which reset types they list and where, how they
//! answer a command, and how they answer a command whose state is already reached.

use super::reset::ResetType;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakerProfile {
    /// `Vendor` of the service root; `None`: the property is absent.
    pub vendor: Option<&'static str>,
    /// `Manufacturer` and `Model` of the systems.
    pub product: (&'static str, &'static str),
    /// The id of the only system, the last part of its path.
    pub system: &'static str,
    pub resets: Vec<ResetType>,
    /// Where the reset types are listed.
    pub names: ResetTypeLocation,
    /// How the BMC answers a command.
    pub answers: CommandAnswerStyle,
    /// The status for a command whose state is already reached.
    pub already: u16,
    /// The message id that goes with that status.
    pub already_message: &'static str,
    pub has_etags: bool,
    /// Whether a command without an ETag is refused (428).
    pub wants_etag: bool,
    /// Whether the BMC reports `PoweringOn` and `PoweringOff`. Others report the old state until
    /// the change is complete.
    pub has_transitions: bool,
    /// How clients authenticate.
    pub sessions: SessionSupport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetTypeLocation {
    Inline,
    /// In an `ActionInfo` document, to which the system's document links.
    ActionInfo,
    Both,
    Nowhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandAnswerStyle {
    /// Status 204.
    NoContent,
    /// Status 200 and a message.
    Message,
    /// Status 202; `Location` names the task's document.
    Task,
    /// Status 202; `Location` names a task monitor, which answers 202 until the task is over.
    Monitor,
}

/// How clients of a BMC authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionSupport {
    /// With sessions, and perhaps with basic authentication too.
    Service {
        /// Whether basic authentication is accepted too.
        basic: bool,
    },
    /// With basic authentication only; the service root names no session service.
    None,
}

/// Reset types that every maker's profile has.
const COMMON_RESET_TYPES: [ResetType; 6] = [
    ResetType::On,
    ResetType::ForceOff,
    ResetType::GracefulShutdown,
    ResetType::ForceRestart,
    ResetType::GracefulRestart,
    ResetType::Nmi,
];

impl MakerProfile {
    /// A BMC without peculiarities.
    pub fn plain_profile() -> Self {
        Self {
            vendor: None,
            product: ("Example", "Server 1"),
            system: "1",
            resets: COMMON_RESET_TYPES.into(),
            names: ResetTypeLocation::Inline,
            answers: CommandAnswerStyle::NoContent,
            already: 204,
            already_message: "Base.1.8.Success",
            has_etags: false,
            wants_etag: false,
            has_transitions: true,
            sessions: SessionSupport::Service { basic: true },
        }
    }

    /// Like an iDRAC: no ForceOn; PowerCycle and a power button; 409 if the state is already
    /// reached.
    pub fn dell() -> Self {
        Self {
            vendor: Some("Dell"),
            product: ("Dell Inc.", "PowerEdge R750"),
            system: "System.Embedded.1",
            resets: common_and(&[ResetType::PushPowerButton, ResetType::PowerCycle]),
            already: 409,
            already_message: "IDRAC.2.8.PSU501",
            ..Self::plain_profile()
        }
    }

    /// Like an iLO: no ForceOn; a power button; ETags; answers with messages; 400 if the state is
    /// already reached; no transitional states.
    pub fn hpe() -> Self {
        Self {
            vendor: Some("HPE"),
            product: ("HPE", "ProLiant DL385 Gen10 Plus v2"),
            resets: common_and(&[ResetType::PushPowerButton]),
            answers: CommandAnswerStyle::Message,
            already: 400,
            already_message: "iLO.2.18.InvalidOperationForSystemState",
            has_etags: true,
            has_transitions: false,
            ..Self::plain_profile()
        }
    }

    /// Like an XCC: ForceOn; reset types listed both inline and in `ActionInfo`; ETags.
    pub fn lenovo() -> Self {
        Self {
            vendor: Some("Lenovo"),
            product: ("Lenovo", "ThinkSystem SR670 V2"),
            resets: common_and(&[ResetType::ForceOn]),
            names: ResetTypeLocation::Both,
            has_etags: true,
            ..Self::plain_profile()
        }
    }

    /// Like a Supermicro: reset types in `ActionInfo` only; answers with messages.
    pub fn supermicro() -> Self {
        Self {
            vendor: Some("Supermicro"),
            product: ("Supermicro", "SYS-821GE-TNHR"),
            resets: common_and(&[ResetType::ForceOn]),
            names: ResetTypeLocation::ActionInfo,
            answers: CommandAnswerStyle::Message,
            has_transitions: false,
            ..Self::plain_profile()
        }
    }

    /// A BMC that answers with tasks and wants an ETag with each command.
    pub fn strict_profile() -> Self {
        Self {
            product: ("Example", "Strict 1"),
            names: ResetTypeLocation::Nowhere,
            answers: CommandAnswerStyle::Task,
            already: 409,
            already_message: "Base.1.8.ResourceInUse",
            has_etags: true,
            wants_etag: true,
            sessions: SessionSupport::Service { basic: false },
            ..Self::plain_profile()
        }
    }

    /// An old BMC: no sessions, no list of reset types, no transitional states.
    pub fn old_profile() -> Self {
        Self {
            product: ("Example", "Old 1"),
            names: ResetTypeLocation::Nowhere,
            has_transitions: false,
            sessions: SessionSupport::None,
            ..Self::plain_profile()
        }
    }

    /// A power strip with a Redfish interface: on and off only.
    pub fn power_strip() -> Self {
        Self {
            product: ("Example", "Power strip"),
            resets: vec![ResetType::On, ResetType::ForceOff],
            has_transitions: false,
            ..Self::plain_profile()
        }
    }
}

fn common_and(more: &[ResetType]) -> Vec<ResetType> {
    COMMON_RESET_TYPES.iter().chain(more).copied().collect()
}
