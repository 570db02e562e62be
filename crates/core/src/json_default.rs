//! Fields that JSON leaves out.

/// For serde's `skip_serializing_if`: whether the field has the value that an absent one is read as.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
