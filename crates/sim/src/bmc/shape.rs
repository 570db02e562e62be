//! How makers' Redfish differs, as data.
//!
//! Written by hand after what was seen of real machines' documents: which kinds of reset are named,
//! and where; what a command is answered with; how a state that is there already is answered.

use super::reset::ResetType;

/// One maker's Redfish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// `Vendor` of the service root; `None`: it says nothing.
    pub vendor: Option<&'static str>,
    /// `Manufacturer` and `Model` of its systems.
    pub product: (&'static str, &'static str),
    /// The name of the one system, last in its path.
    pub system: &'static str,
    /// The kinds of reset that it takes.
    pub resets: Vec<ResetType>,
    /// Where it names them.
    pub names: Names,
    /// How it answers a command.
    pub answers: Answers,
    /// The status for a state that is there already.
    pub already: u16,
    /// The message id beside that status.
    pub already_message: &'static str,
    /// Whether documents have ETags.
    pub has_etags: bool,
    /// Whether a command without one is refused (428).
    pub wants_etag: bool,
    /// Whether it says `PoweringOn` and `PoweringOff`; others say what was before until it is over.
    pub has_transitions: bool,
    /// How it lets people in.
    pub sessions: Sessions,
}

/// Where a BMC names the kinds of reset that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// In the system's document.
    Inline,
    /// In a document of its own, which the system's links to.
    ActionInfo,
    /// In both.
    Both,
    /// Nowhere.
    Nowhere,
}

/// How a BMC answers a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// 204.
    NoContent,
    /// 200 and a message.
    Message,
    /// 202, and the task's document is what `Location` names.
    Task,
    /// 202, and a task monitor is what `Location` names: 202 until the task is over, then its answer.
    Monitor,
}

/// How a BMC lets people in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// By sessions, with or without basic authentication beside them.
    Service {
        /// Whether basic authentication is taken too.
        basic: bool,
    },
    /// By basic authentication alone; the root names no session service.
    None,
}

/// Kinds that every maker's has.
const COMMON: [ResetType; 6] = [
    ResetType::On,
    ResetType::ForceOff,
    ResetType::GracefulShutdown,
    ResetType::ForceRestart,
    ResetType::GracefulRestart,
    ResetType::Nmi,
];

impl Shape {
    /// Nothing out of the ordinary.
    pub fn plain() -> Self {
        Self {
            vendor: None,
            product: ("Example", "Server 1"),
            system: "1",
            resets: COMMON.into(),
            names: Names::Inline,
            answers: Answers::NoContent,
            already: 204,
            already_message: "Base.1.8.Success",
            has_etags: false,
            wants_etag: false,
            has_transitions: true,
            sessions: Sessions::Service { basic: true },
        }
    }

    /// After an iDRAC: no ForceOn, PowerCycle and a power button; 409 when it is there already.
    pub fn dell() -> Self {
        Self {
            vendor: Some("Dell"),
            product: ("Dell Inc.", "PowerEdge R750"),
            system: "System.Embedded.1",
            resets: with(&[ResetType::PushPowerButton, ResetType::PowerCycle]),
            already: 409,
            already_message: "IDRAC.2.8.PSU501",
            ..Self::plain()
        }
    }

    /// After an iLO: no ForceOn, a power button, ETags, answers with messages; 400 when it is there
    /// already; no transitional states.
    pub fn hpe() -> Self {
        Self {
            vendor: Some("HPE"),
            product: ("HPE", "ProLiant DL385 Gen10 Plus v2"),
            resets: with(&[ResetType::PushPowerButton]),
            answers: Answers::Message,
            already: 400,
            already_message: "iLO.2.18.InvalidOperationForSystemState",
            has_etags: true,
            has_transitions: false,
            ..Self::plain()
        }
    }

    /// After an XCC: ForceOn, kinds named inline and by ActionInfo, ETags.
    pub fn lenovo() -> Self {
        Self {
            vendor: Some("Lenovo"),
            product: ("Lenovo", "ThinkSystem SR670 V2"),
            resets: with(&[ResetType::ForceOn]),
            names: Names::Both,
            has_etags: true,
            ..Self::plain()
        }
    }

    /// After a Supermicro: kinds by ActionInfo only, answers with messages.
    pub fn supermicro() -> Self {
        Self {
            vendor: Some("Supermicro"),
            product: ("Supermicro", "SYS-821GE-TNHR"),
            resets: with(&[ResetType::ForceOn]),
            names: Names::ActionInfo,
            answers: Answers::Message,
            has_transitions: false,
            ..Self::plain()
        }
    }

    /// One that answers with tasks, and wants an ETag with each command.
    pub fn strict() -> Self {
        Self {
            product: ("Example", "Strict 1"),
            names: Names::Nowhere,
            answers: Answers::Task,
            already: 409,
            already_message: "Base.1.8.ResourceInUse",
            has_etags: true,
            wants_etag: true,
            sessions: Sessions::Service { basic: false },
            ..Self::plain()
        }
    }

    /// An old one: no sessions, no names, no transitional states.
    pub fn old() -> Self {
        Self {
            product: ("Example", "Old 1"),
            names: Names::Nowhere,
            has_transitions: false,
            sessions: Sessions::None,
            ..Self::plain()
        }
    }

    /// A power strip with a Redfish face: on and off only.
    pub fn strip() -> Self {
        Self {
            product: ("Example", "Power strip"),
            resets: vec![ResetType::On, ResetType::ForceOff],
            has_transitions: false,
            ..Self::plain()
        }
    }
}

fn with(more: &[ResetType]) -> Vec<ResetType> {
    COMMON.iter().chain(more).copied().collect()
}
