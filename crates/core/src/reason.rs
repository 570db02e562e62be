//! The table of a domain's reasons: the one place where a reason is defined.

/// What a reason asks of the people who run the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReasonSeverity {
    /// Passes by itself soon, or is the result that everybody wants.
    Progress,
    /// Dogwatch waits for something that the message names.
    Waiting,
    /// A person may have to look.
    Warning,
    /// Lasts until a person acts, or needs one to find out whether to act.
    Alarm,
}

/// Defines the reasons of one domain, each with its severity, with its class if the domain sorts
/// its reasons, and with the next step for a person if there is one. The public text of a reason
/// is its variant's name.
///
/// The next step is a sentence of the docs: `docs.rs` of the CLI's tests compares the two.
macro_rules! reasons {
    (
        $(#[$meta:meta])*
        pub enum $name:ident, $classify:ident() -> $class:ident {
            $($(#[$about:meta])* $variant:ident($severity:ident $(, $value:ident)?) $(= $step:literal)?,)+
        }
    ) => {
        $crate::reason::reasons! {
            $(#[$meta])*
            pub enum $name {
                $($(#[$about])* $variant($severity) $(= $step)?,)+
            }
        }

        impl $name {
            pub fn $classify(self) -> $class {
                match self {
                    $(Self::$variant => $crate::reason::reasons!(@class $class $($value)?),)+
                }
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$about:meta])* $variant:ident($severity:ident) $(= $step:literal)?,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$about])* $variant,)+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// One CamelCase word, the same in conditions, Events, metrics, logs and docs.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                }
            }

            /// `None`: the text is no reason of this domain, or one of another version.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == text)
            }

            pub const fn severity(self) -> $crate::reason::ReasonSeverity {
                match self {
                    $(Self::$variant => $crate::reason::ReasonSeverity::$severity,)+
                }
            }

            pub fn needs_person(self) -> bool {
                self.severity() == $crate::reason::ReasonSeverity::Alarm
            }

            /// What a person can do. `None`: nothing, or the message says it.
            pub const fn next_step(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => $crate::reason::reasons!(@step $($step)?),)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl From<$name> for &'static str {
            fn from(reason: $name) -> Self {
                reason.as_str()
            }
        }
    };
    (@class $class:ident $value:ident) => { $class::$value };
    (@class $class:ident) => { $class::default() };
    (@step $step:literal) => { Some($step) };
    (@step) => { None };
}
pub(crate) use reasons;
