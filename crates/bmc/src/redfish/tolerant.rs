//! Lenient parsing of documents of any shape and length: BMCs are not strict, and one may be
//! hostile. A value of another shape, or one that is too long, counts as absent and takes no memory
//! while it is read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The longest text that is kept, in bytes: a link, a name, a UUID.
const TEXT_LENGTH_LIMIT: usize = 2 << 10;
/// How many links to members of a collection are kept.
const MEMBER_LIMIT: usize = 5;
/// How many reset types are kept; the standard defines 16.
const RESET_TYPE_LIMIT: usize = 64;
/// The longest reset type; the standard's longest has 20 letters.
const RESET_TYPE_LENGTH_LIMIT: usize = 64;

/// A value if it has the expected shape, otherwise nothing.
#[derive(Debug, Clone)]
pub(super) struct LenientValue<T>(Option<T>);

impl<T> Default for LenientValue<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> LenientValue<T> {
    pub(super) fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

/// How a type is made from the values that a parser meets. A value of another shape gives `None`.
pub(super) trait LenientShape: Sized {
    fn from_text(_: &str) -> Option<Self> {
        None
    }

    /// Must read the whole object.
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    /// Must read the whole list.
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl<'de, T: LenientShape> Deserialize<'de> for LenientValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(PhantomData))
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: LenientShape> Visitor<'de> for LenientVisitor<T> {
    type Value = LenientValue<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(LenientValue(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(LenientValue(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(LenientValue(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(LenientValue(None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(LenientValue(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(LenientValue(T::from_text(text)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::from_map(map).map(LenientValue)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        T::from_list(list).map(LenientValue)
    }
}

#[derive(Debug, Clone)]
pub(super) struct BoundedText(String);

impl BoundedText {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl LenientShape for BoundedText {
    fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        (text.len() <= TEXT_LENGTH_LIMIT).then(|| Self(text.to_owned()))
    }
}

/// Reads the members of an object that have these names.
fn visit_members<'de, A: MapAccess<'de>>(
    mut map: A,
    mut member: impl FnMut(&str, &mut A) -> Result<bool, A::Error>,
) -> Result<(), A::Error> {
    while let Some(name) = map.next_key::<LenientValue<BoundedText>>()? {
        let name = name.get().map_or("", BoundedText::as_str);
        if !member(name, &mut map)? {
            map.next_value::<IgnoredAny>()?;
        }
    }
    Ok(())
}

/// The link of `{"@odata.id": LINK}`.
#[derive(Debug, Clone)]
pub(super) struct ODataLink(LenientValue<BoundedText>);

impl ODataLink {
    pub(super) fn link(&self) -> Option<&str> {
        self.0.get().map(BoundedText::as_str)
    }
}

impl LenientShape for ODataLink {
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        let mut link = LenientValue::default();
        visit_members(map, |name, map| {
            let is_it = name == "@odata.id";
            if is_it {
                link = map.next_value()?;
            }
            Ok(is_it)
        })?;
        Ok(Some(Self(link)))
    }
}

/// The members of a collection: their number, and the links to the first ones.
#[derive(Debug, Clone)]
pub(super) struct CollectionMembers {
    first: Vec<String>,
    len: usize,
}

impl CollectionMembers {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first_links(&self) -> &[String] {
        &self.first
    }
}

impl LenientShape for CollectionMembers {
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let (mut first, mut len) = (Vec::new(), 0);
        while let Some(member) = list.next_element::<LenientValue<ODataLink>>()? {
            if first.len() < MEMBER_LIMIT {
                let link = member.get().and_then(ODataLink::link);
                first.push(link.unwrap_or_default().to_owned());
            }
            len += 1;
        }
        Ok(Some(Self { first, len }))
    }
}

/// The link `Sessions` in `Links` of the service root.
#[derive(Debug, Clone)]
pub(super) struct RootLinks(LenientValue<ODataLink>);

impl RootLinks {
    pub(super) fn sessions_link(&self) -> Option<&str> {
        self.0.get().and_then(ODataLink::link)
    }
}

impl LenientShape for RootLinks {
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        let mut sessions = LenientValue::default();
        visit_members(map, |name, map| {
            let is_it = name == "Sessions";
            if is_it {
                sessions = map.next_value()?;
            }
            Ok(is_it)
        })?;
        Ok(Some(Self(sessions)))
    }
}

/// The allowable values of `ResetType`, limited in number and length.
#[derive(Debug, Clone, Default)]
pub(super) struct ResetTypes(Vec<String>);

impl ResetTypes {
    pub(super) fn to_vec(&self) -> Vec<String> {
        self.0.clone()
    }
}

impl LenientShape for ResetTypes {
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut types = Vec::new();
        while let Some(name) = list.next_element::<LenientValue<BoundedText>>()? {
            let name = name.get().map_or("", BoundedText::as_str);
            if types.len() < RESET_TYPE_LIMIT && (1..=RESET_TYPE_LENGTH_LIMIT).contains(&name.len())
            {
                types.push(name.to_owned());
            }
        }
        Ok(Some(Self(types)))
    }
}

/// The first `ResetType` among the `Parameters` of an ActionInfo.
#[derive(Debug, Clone)]
pub(super) struct ActionParameters(Option<ResetTypes>);

impl ActionParameters {
    pub(super) fn reset_types(&self) -> Option<&ResetTypes> {
        self.0.as_ref()
    }
}

impl LenientShape for ActionParameters {
    fn from_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut found = None;
        while let Some(parameter) = list.next_element::<LenientValue<ActionParameter>>()? {
            let is_it = |it: &ActionParameter| it.name.get().is_some_and(|it| it.0 == "ResetType");
            if let Some(parameter) = parameter.0.filter(|it| found.is_none() && is_it(it)) {
                found = Some(parameter.values.0.unwrap_or_default());
            }
        }
        Ok(Some(Self(found)))
    }
}

struct ActionParameter {
    name: LenientValue<BoundedText>,
    values: LenientValue<ResetTypes>,
}

impl LenientShape for ActionParameter {
    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        let (mut named, mut values) = (LenientValue::default(), LenientValue::default());
        visit_members(map, |name, map| {
            match name {
                "Name" => named = map.next_value()?,
                "AllowableValues" => values = map.next_value()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Some(Self {
            name: named,
            values,
        }))
    }
}

/// `PowerState`: a text, or a short form of another value, for messages.
#[derive(Debug, Clone)]
pub(super) enum PowerStateText {
    Word(String),
    Odd(&'static str),
}

impl PowerStateText {
    pub(super) fn power_state_word(&self) -> Option<&str> {
        match self {
            PowerStateText::Word(word) => Some(word),
            PowerStateText::Odd(_) => None,
        }
    }
}

impl Default for PowerStateText {
    fn default() -> Self {
        PowerStateText::Odd("not there")
    }
}

impl fmt::Display for PowerStateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PowerStateText::Word(word) => write!(f, "'{word}'"),
            PowerStateText::Odd(what) => f.write_str(what),
        }
    }
}

impl LenientShape for PowerStateText {
    fn from_text(text: &str) -> Option<Self> {
        let is_short = text.len() <= TEXT_LENGTH_LIMIT;
        is_short.then(|| PowerStateText::Word(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for PowerStateText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let state = LenientValue::<PowerStateText>::deserialize(deserializer)?;
        Ok(state
            .0
            .unwrap_or(PowerStateText::Odd("no word, or a very long one")))
    }
}
