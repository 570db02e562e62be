//! Checks a policy's name, which is its group's name and so a part of Lease names.

use dogwatch_core::name::GroupName;

/// What a policy may be called, for error messages.
pub const POLICY_NAME_RULE: &str = "a policy's name is also the name of its group: use 1 to 50 lower-case letters, \
     digits and '-', starting and ending with a letter or digit; not `remedy`, and no name that begins with `remedy-`";

/// Longest name in bytes: a Lease is called `dogwatch-NAME-SLOT`, and a label's value has at most
/// 63.
pub(super) const MAX_POLICY_NAME_BYTES: usize = 50;

/// What is wrong with a policy's name. `remedy` is reserved for the Leases of remediations.
pub fn policy_name_problem(name: &str) -> Option<&'static str> {
    let fits = name.len() <= MAX_POLICY_NAME_BYTES && GroupName::new(name).is_ok();
    (!fits || name == "remedy" || name.starts_with("remedy-")).then_some(POLICY_NAME_RULE)
}
