//! What is kept of a document that may have any shape and any length: BMCs are not strict, and one may be hostile.
//! What is of another shape, or too long, counts as absent, and takes no memory while it is read.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The longest text that is kept of a document: a link, a name, a UUID.
const LONGEST: usize = 2 << 10;
/// How many members of a collection are named.
const MEMBERS: usize = 5;
/// How many reset types are kept; the standard knows 16.
const RESET_TYPES: usize = 64;
/// The longest of them; the standard's longest has 20 letters.
const LONGEST_TYPE: usize = 64;

/// A value if it has the shape of one, and nothing else.
#[derive(Debug, Clone)]
pub(super) struct Whatever<T>(Option<T>);

impl<T> Default for Whatever<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Whatever<T> {
    pub(super) fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

/// How a value of one kind is made of what a parser comes across. What it does not take is `None`.
pub(super) trait Shape: Sized {
    /// Of a text.
    fn of_text(_: &str) -> Option<Self> {
        None
    }

    /// Of an object. All of it has to be read.
    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    /// Of a list. All of it has to be read.
    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl<'de, T: Shape> Deserialize<'de> for Whatever<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyShape(PhantomData))
    }
}

struct AnyShape<T>(PhantomData<T>);

impl<'de, T: Shape> Visitor<'de> for AnyShape<T> {
    type Value = Whatever<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Whatever(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Whatever(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Whatever(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Whatever(None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Whatever(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Whatever(T::of_text(text)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::of_map(map).map(Whatever)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        T::of_list(list).map(Whatever)
    }
}

/// A text that is not too long.
#[derive(Debug, Clone)]
pub(super) struct Name(String);

impl Name {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Shape for Name {
    fn of_text(text: &str) -> Option<Self> {
        let text = text.trim();
        (text.len() <= LONGEST).then(|| Self(text.to_owned()))
    }
}

/// Reads the members of an object that are asked for, by name.
fn members<'de, A: MapAccess<'de>>(
    mut map: A,
    mut member: impl FnMut(&str, &mut A) -> Result<bool, A::Error>,
) -> Result<(), A::Error> {
    while let Some(name) = map.next_key::<Whatever<Name>>()? {
        let name = name.get().map_or("", Name::as_str);
        if !member(name, &mut map)? {
            map.next_value::<IgnoredAny>()?;
        }
    }
    Ok(())
}

/// `{"@odata.id": LINK}`, of which the link is kept.
#[derive(Debug, Clone)]
pub(super) struct Id(Whatever<Name>);

impl Id {
    pub(super) fn link(&self) -> Option<&str> {
        self.0.get().map(Name::as_str)
    }
}

impl Shape for Id {
    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        let mut link = Whatever::default();
        members(map, |name, map| {
            let is_it = name == "@odata.id";
            if is_it {
                link = map.next_value()?;
            }
            Ok(is_it)
        })?;
        Ok(Some(Self(link)))
    }
}

/// The members of a collection: how many, and the links to the first of them.
#[derive(Debug, Clone)]
pub(super) struct Members {
    first: Vec<String>,
    len: usize,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> &[String] {
        &self.first
    }
}

impl Shape for Members {
    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let (mut first, mut len) = (Vec::new(), 0);
        while let Some(member) = list.next_element::<Whatever<Id>>()? {
            if first.len() < MEMBERS {
                let link = member.get().and_then(Id::link);
                first.push(link.unwrap_or_default().to_owned());
            }
            len += 1;
        }
        Ok(Some(Self { first, len }))
    }
}

/// `Links` of the service root, of which `Sessions` is kept.
#[derive(Debug, Clone)]
pub(super) struct Links(Whatever<Id>);

impl Links {
    pub(super) fn sessions(&self) -> Option<&str> {
        self.0.get().and_then(Id::link)
    }
}

impl Shape for Links {
    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        let mut sessions = Whatever::default();
        members(map, |name, map| {
            let is_it = name == "Sessions";
            if is_it {
                sessions = map.next_value()?;
            }
            Ok(is_it)
        })?;
        Ok(Some(Self(sessions)))
    }
}

/// The allowable values of `ResetType`: so many, and none that is longer than any reset type.
#[derive(Debug, Clone, Default)]
pub(super) struct ResetTypes(Vec<String>);

impl ResetTypes {
    pub(super) fn to_vec(&self) -> Vec<String> {
        self.0.clone()
    }
}

impl Shape for ResetTypes {
    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut types = Vec::new();
        while let Some(name) = list.next_element::<Whatever<Name>>()? {
            let name = name.get().map_or("", Name::as_str);
            if types.len() < RESET_TYPES && (1..=LONGEST_TYPE).contains(&name.len()) {
                types.push(name.to_owned());
            }
        }
        Ok(Some(Self(types)))
    }
}

/// `Parameters` of an ActionInfo, of which the first that is `ResetType` is kept.
#[derive(Debug, Clone)]
pub(super) struct Parameters(Option<ResetTypes>);

impl Parameters {
    pub(super) fn reset_types(&self) -> Option<&ResetTypes> {
        self.0.as_ref()
    }
}

impl Shape for Parameters {
    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut found = None;
        while let Some(parameter) = list.next_element::<Whatever<Parameter>>()? {
            let is_it = |it: &Parameter| it.name.get().is_some_and(|it| it.0 == "ResetType");
            if let Some(parameter) = parameter.0.filter(|it| found.is_none() && is_it(it)) {
                found = Some(parameter.values.0.unwrap_or_default());
            }
        }
        Ok(Some(Self(found)))
    }
}

struct Parameter {
    name: Whatever<Name>,
    values: Whatever<ResetTypes>,
}

impl Shape for Parameter {
    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        let (mut named, mut values) = (Whatever::default(), Whatever::default());
        members(map, |name, map| {
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

/// `PowerState`: a word, or what stands there instead, as far as a sentence shows it.
#[derive(Debug, Clone)]
pub(super) enum State {
    Word(String),
    Odd(&'static str),
}

impl State {
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            State::Word(word) => Some(word),
            State::Odd(_) => None,
        }
    }
}

impl Default for State {
    fn default() -> Self {
        State::Odd("not there")
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Word(word) => write!(f, "'{word}'"),
            State::Odd(what) => f.write_str(what),
        }
    }
}

impl Shape for State {
    fn of_text(text: &str) -> Option<Self> {
        let is_short = text.len() <= LONGEST;
        is_short.then(|| State::Word(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let state = Whatever::<State>::deserialize(deserializer)?;
        Ok(state.0.unwrap_or(State::Odd("no word, or a very long one")))
    }
}
