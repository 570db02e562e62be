//! A policy's name is its group's name, and so a part of Lease names.

use dogwatch_core::name::GroupName;

/// What a policy may be called.
pub const NAME_RULE: &str = "the name is the name of the nodes' group: use 1 to 50 lower-case letters, digits and '-', \
     starting and ending with a letter or digit; not `remedy`, nor anything that begins with `remedy-`";

/// Longest name in bytes: a Lease is called `dogwatch-NAME-SLOT`, and a label's value ends at 63.
pub(super) const LONGEST: usize = 50;

/// What is wrong with a policy's name. `remedy` is kept for the Leases of remediations.
pub fn name_problem(name: &str) -> Option<&'static str> {
    let fits = name.len() <= LONGEST && GroupName::new(name).is_ok();
    (!fits || name == "remedy" || name.starts_with("remedy-")).then_some(NAME_RULE)
}
