//! Translates kured's settings to Dogwatch's. Source: kured 1.23.0, `cmd/kured/main.go`,
//! `pkg/timewindow`, `pkg/blockers`.
//!
//! **For:** [`translate_kured`]: which settings of a kured DaemonSet become part of a policy or a
//! flag of the coordinator, and which have no equivalent and why.
//! **Promises:** no setting is dropped: each has a [`TranslatedSetting`]. If a setting holds
//! reboots back in kured and a policy cannot express it, the policy begins paused, with that as the
//! reason. No secret (a webhook's address, a password in a URL) is in the result.

mod flags;
mod line;
mod pod_selector;
#[cfg(test)]
mod tests;
mod translate;
mod window;

pub use flags::{KURED_FLAGS, KuredFlag, SettingOutcome};
pub use line::KuredInstallation;
pub use translate::{KuredTranslation, TranslatedSetting, translate_kured};
