//! Paths of fields, as the real server writes them.

/// A path in an object, as text: `spec.windows[0].start`.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldPath(String);

impl FieldPath {
    pub(super) fn field(&self, name: &str) -> Self {
        if self.0.is_empty() {
            return Self(name.to_owned());
        }
        Self(format!("{}.{name}", self.0))
    }

    /// The path of an entry of a map: `labels[app]`.
    pub(super) fn map_key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    pub(super) fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    pub(super) fn as_text(&self) -> &str {
        &self.0
    }

    /// As an error names it; the root is `<nil>`.
    pub(super) fn error_text(&self) -> String {
        if self.0.is_empty() {
            return "<nil>".into();
        }
        self.0.clone()
    }
}
