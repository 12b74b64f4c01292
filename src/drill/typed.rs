//! Reads the typed drill out of the tree; every error carries the place it is about.

use super::suggest;
use super::tree::{Key, Node, Value};
use serde::de::{
    self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use std::fmt::{self, Display};
use std::ops::Range;

/// Why a value is not what its place in the drill needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypedError {
    /// What is wrong.
    pub title: String,
    /// What to do.
    pub help: Option<String>,
    /// Where; filled in by the innermost node that knows.
    pub span: Option<Range<usize>>,
    /// What sort of mistake it is.
    pub kind: Mistake,
}

/// Sorts of mistakes that reading on depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A key that is not known here, and the one that was probably meant.
    UnknownKey { meant: Option<String> },
    /// A step, client, … that does not exist.
    UnknownVariant { wrong: String },
    /// A key that is not there.
    MissingKey(String),
    /// Anything else.
    Value,
}

impl TypedError {
    fn new(title: String, help: Option<String>, kind: Mistake) -> Self {
        Self { title, help, span: None, kind }
    }

    fn at(mut self, span: &Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }
}

impl Display for TypedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)
    }
}

impl std::error::Error for TypedError {}

impl de::Error for TypedError {
    /// A message of the form `what is wrong; what to do` becomes title and help.
    fn custom<T: Display>(message: T) -> Self {
        let message = message.to_string();
        let (title, help) = match message.rsplit_once("; ") {
            Some((title, help)) => (title.to_owned(), Some(help.to_owned())),
            None => (message, None),
        };
        Self::new(title, help, Mistake::Value)
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let found = match unexpected {
            Unexpected::Map => "a mapping".to_owned(),
            Unexpected::Seq => "a list".to_owned(),
            Unexpected::Unit => "nothing".to_owned(),
            Unexpected::Str(text) => format!("`{text}`"),
            Unexpected::Bool(b) => format!("`{b}`"),
            Unexpected::Unsigned(n) => format!("`{n}`"),
            Unexpected::Signed(n) => format!("`{n}`"),
            Unexpected::Float(n) => format!("`{n}`"),
            other => other.to_string(),
        };
        let expected = match expected.to_string() {
            text if text.starts_with("struct ") => "a mapping".to_owned(),
            text if text == "a sequence" => "a list (`- …`)".to_owned(),
            text if text == "a map" => "a mapping (`key: …`)".to_owned(),
            text if text == "a string" => "a text".to_owned(),
            text => text,
        };
        Self::new(format!("expected {expected}, found {found}"), None, Mistake::Value)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let meant = suggest::closest(field, expected.iter().copied()).map(str::to_owned);
        let help = suggest::hint(field, "keys here", expected);
        Self::new(format!("unknown key `{field}`"), help, Mistake::UnknownKey { meant })
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let help = suggest::hint(variant, "there are", expected);
        Self::new(
            format!("unknown value `{variant}`"),
            help,
            Mistake::UnknownVariant { wrong: variant.to_owned() },
        )
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("key `{field}` is missing here"), None, Mistake::MissingKey(field.to_owned()))
    }
}

/// Deserializes one node. `container` is what to point at when a mapping or list
/// as a whole is wrong: its key.
#[derive(Clone, Copy)]
pub(super) struct Typed<'t> {
    node: &'t Node,
    container: &'t Range<usize>,
}

impl<'t> Typed<'t> {
    /// A deserializer of the document.
    pub fn document(node: &'t Node, start: &'t Range<usize>) -> Self {
        Self { node, container: start }
    }

    fn place(&self) -> &'t Range<usize> {
        match self.node.value {
            Value::Scalar { .. } => &self.node.span,
            _ => self.container,
        }
    }

    fn unexpected(&self) -> Unexpected<'t> {
        match &self.node.value {
            Value::Null => Unexpected::Unit,
            Value::Scalar { text, .. } => Unexpected::Str(text),
            Value::Seq(_) => Unexpected::Seq,
            Value::Map(_) => Unexpected::Map,
        }
    }

    fn refuse<T>(&self, expected: &dyn de::Expected) -> Result<T, TypedError> {
        Err(<TypedError as de::Error>::invalid_type(self.unexpected(), expected).at(self.place()))
    }

    fn text<'v, V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match &self.node.value {
            Value::Scalar { text, .. } => visitor.visit_str(text).map_err(|e: TypedError| e.at(self.place())),
            _ => self.refuse(&visitor),
        }
    }

    fn whole<T: TryFrom<i128>>(&self, least: i128, most: i128) -> Result<T, TypedError> {
        let what = format!("a whole number from {least} to {most}");
        let Value::Scalar { text, string } = &self.node.value else {
            return self.refuse(&what.as_str());
        };
        let number = text.parse::<i128>().ok().filter(|_| !*string);
        number.and_then(|n| T::try_from(n).ok()).ok_or_else(|| {
            let quoted = *string && text.parse::<i128>().is_ok();
            let (found, help) = if quoted {
                (format!("the text `\"{text}\"`"), Some(format!("write `{text}` without quotes")))
            } else {
                (format!("`{text}`"), None)
            };
            TypedError::new(format!("expected {what}, found {found}"), help, Mistake::Value).at(self.place())
        })
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ident),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
            let n = self.whole::<$type>(i128::from($type::MIN), i128::from($type::MAX))?;
            visitor.$visit::<TypedError>(n).map_err(|e| e.at(self.place()))
        }
    )*};
}

impl<'de> Deserializer<'de> for Typed<'_> {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Seq(_) => return self.deserialize_seq(visitor),
            Value::Map(_) => return self.deserialize_map(visitor),
            Value::Scalar { text, string: true } => visitor.visit_str(text),
            Value::Scalar { text, string: false } => match (text.as_str(), text.parse(), text.parse()) {
                ("true", ..) => visitor.visit_bool(true),
                ("false", ..) => visitor.visit_bool(false),
                (_, Ok(n), _) => visitor.visit_u64(n),
                (_, _, Ok(n)) => visitor.visit_i64(n),
                (text, ..) => visitor.visit_str(text),
            },
        }
        .map_err(|e: TypedError| e.at(self.place()))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match &self.node.value {
            Value::Scalar { text, string: false } if text == "true" => visitor.visit_bool(true),
            Value::Scalar { text, string: false } if text == "false" => visitor.visit_bool(false),
            _ => self.refuse(&"`true` or `false`"),
        }
    }

    whole_numbers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.text(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.text(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match &self.node.value {
            Value::Seq(items) => visitor
                .visit_seq(Items { items: items.iter(), container: self.container })
                .map_err(|e| e.at(self.place())),
            _ => self.refuse(&visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        let entries = match &self.node.value {
            Value::Map(entries) => entries.as_slice(),
            // `apiReady:` with nothing after it means the same as `apiReady: {}`.
            Value::Null => &[],
            _ => return self.refuse(&visitor),
        };
        visitor.visit_map(Entries { entries: entries.iter(), current: None }).map_err(|e| e.at(self.place()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        let noun = noun(name);
        let (variant, span, payload) = match &self.node.value {
            Value::Scalar { text, .. } => (text, &self.node.span, None),
            Value::Map(entries) => match entries.as_slice() {
                [(Key { text, span }, node)] => (text, span, Some(node)),
                [_, (second, _), ..] => {
                    let title = format!("a {noun} has one key, `{}` is a second one", second.text);
                    let help = match noun {
                        "value" => "leave one of the two out".to_owned(),
                        _ => format!("start a new list item with `- {}:`", second.text),
                    };
                    return Err(TypedError::new(title, Some(help), Mistake::Value).at(&second.span));
                }
                [] => return self.refuse(&format!("a {noun}").as_str()),
            },
            _ => return self.refuse(&format!("a {noun}").as_str()),
        };
        visitor.visit_enum(OneOf { noun, variant, span, payload }).map_err(|e| e.at(span))
    }

    serde::forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct ignored_any
    }
}

/// What people call the enums of a drill file.
fn noun(name: &str) -> &'static str {
    match name {
        "Step" => "step",
        "Client" => "client",
        "Objective" => "objective",
        "SteadyState" => "condition",
        _ => "value",
    }
}

struct Items<'t> {
    items: std::slice::Iter<'t, Node>,
    container: &'t Range<usize>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = TypedError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, TypedError> {
        let Some(node) = self.items.next() else { return Ok(None) };
        let container = if node.span.is_empty() { self.container } else { &node.span };
        seed.deserialize(Typed { node, container }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'t> {
    entries: std::slice::Iter<'t, (Key, Node)>,
    current: Option<&'t (Key, Node)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = TypedError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, TypedError> {
        self.current = self.entries.next();
        let Some((key, _)) = self.current else { return Ok(None) };
        seed.deserialize(key.text.as_str().into_deserializer())
            .map(Some)
            .map_err(|e: TypedError| e.at(&key.span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, TypedError> {
        let (key, node) = self.current.expect("a value is asked for after its key");
        let typed = Typed { node, container: &key.span };
        seed.deserialize(typed).map_err(|e| e.at(typed.place()))
    }
}

struct OneOf<'t> {
    noun: &'static str,
    variant: &'t str,
    span: &'t Range<usize>,
    payload: Option<&'t Node>,
}

impl<'de, 't> de::EnumAccess<'de> for OneOf<'t> {
    type Error = TypedError;
    type Variant = Payload<'t>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Payload<'t>), TypedError> {
        let value = seed.deserialize(self.variant.into_deserializer()).map_err(|mut e: TypedError| {
            if let Mistake::UnknownVariant { wrong } = &e.kind {
                e.title = format!("unknown {} `{wrong}`", self.noun);
            }
            e.at(self.span)
        })?;
        Ok((value, Payload { span: self.span, node: self.payload }))
    }
}

struct Payload<'t> {
    span: &'t Range<usize>,
    node: Option<&'t Node>,
}

impl<'de> de::VariantAccess<'de> for Payload<'_> {
    type Error = TypedError;

    fn unit_variant(self) -> Result<(), TypedError> {
        match self.node {
            None | Some(Node { value: Value::Null, .. }) => Ok(()),
            Some(_) => {
                Err(TypedError::new("nothing may follow here".to_owned(), None, Mistake::Value).at(self.span))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, TypedError> {
        let nothing = Node { span: self.span.clone(), value: Value::Null };
        let node = self.node.unwrap_or(&nothing);
        seed.deserialize(Typed { node, container: self.span }).map_err(|e| e.at(self.span))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TypedError> {
        Err(<TypedError as de::Error>::invalid_type(Unexpected::TupleVariant, &visitor).at(self.span))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        let nothing = Node { span: self.span.clone(), value: Value::Null };
        let node = self.node.unwrap_or(&nothing);
        Typed { node, container: self.span }.deserialize_map(visitor)
    }
}
