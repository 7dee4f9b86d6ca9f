//! The types of this crate as JSON Schema, from which the server builds its OpenAPI document.
//!
//! Every type implements [`Described`]; `object!` and `words!` generate a type together with its description, so that
//! they cannot differ. `left_out!` generates requests without their optional members.

use std::collections::BTreeMap;

use serde_json::{Map, Value as JsonValue, json};

/// Describes its own JSON.
pub trait Described {
    /// Whether it may be left out as a member.
    const OPTIONAL: bool = false;

    /// Whether it is an object with known members.
    const OBJECT: bool = false;

    /// Its schema; an object adds itself to `schemas` and returns a reference.
    fn schema(schemas: &mut Schemas) -> JsonValue;

    /// Its members, where it is a query.
    fn members(_schemas: &mut Schemas) -> Vec<Member> {
        Vec::new()
    }
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// Its schema.
    pub schema: JsonValue,
    /// Whether it is required.
    pub required: bool,
    /// Its description.
    pub says: String,
}

/// Schemas by name.
#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<&'static str, JsonValue>);

impl Schemas {
    /// A reference to an object, which is added if it is new.
    pub fn object(
        &mut self,
        name: &'static str,
        says: &str,
        strict: bool,
        members: impl FnOnce(&mut Self) -> Vec<Member>,
    ) -> JsonValue {
        if !self.0.contains_key(name) {
            // Inserted before its members: a type may contain itself.
            self.0.insert(name, JsonValue::Null);
            let members = members(self);
            self.0.insert(name, object_schema(says, strict, &members));
        }
        json!({ "$ref": format!("#/components/schemas/{name}") })
    }

    /// All schemas.
    pub fn into_json(self) -> Map<String, JsonValue> {
        self.0.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
    }
}

/// The schema of an object.
pub fn object_schema(says: &str, strict: bool, members: &[Member]) -> JsonValue {
    let required: Vec<_> = members.iter().filter(|member| member.required).map(|member| member.name).collect();
    let property = |member: &Member| {
        let mut schema = member.schema.clone();
        if let (JsonValue::Object(schema), false) = (&mut schema, member.says.is_empty()) {
            schema.insert("description".into(), member.says.clone().into());
        }
        (member.name.to_owned(), schema)
    };
    let properties: Map<_, _> = members.iter().map(property).collect();
    let mut schema = json!({ "type": "object", "description": says, "required": required, "properties": properties });
    if strict {
        schema["additionalProperties"] = false.into();
    }
    schema
}

/// The schema, or null.
fn nullable(schema: JsonValue) -> JsonValue {
    match schema {
        JsonValue::Object(mut object)
            if object.get("type").is_some_and(JsonValue::is_string) && !object.contains_key("enum") =>
        {
            let kind = object["type"].take();
            object.insert("type".into(), json!([kind, "null"]));
            JsonValue::Object(object)
        }
        // Anything includes null.
        JsonValue::Object(object)
            if !object.contains_key("$ref") && !object.contains_key("enum") && !object.contains_key("anyOf") =>
        {
            JsonValue::Object(object)
        }
        other => json!({ "anyOf": [other, { "type": "null" }] }),
    }
}

impl<T: Described> Described for Option<T> {
    const OPTIONAL: bool = true;

    fn schema(schemas: &mut Schemas) -> JsonValue {
        nullable(T::schema(schemas))
    }
}

impl<T: Described> Described for Vec<T> {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "type": "array", "items": T::schema(schemas) })
    }
}

macro_rules! plain {
    ($($type:ty => $schema:tt),* $(,)?) => {$(
        impl Described for $type {
            fn schema(_: &mut Schemas) -> JsonValue {
                json!($schema)
            }
        }
    )*};
}

plain! {
    String => { "type": "string" },
    bool => { "type": "boolean" },
    u16 => { "type": "integer", "minimum": 0, "maximum": 65_535 },
    u32 => { "type": "integer", "minimum": 0, "maximum": 4_294_967_295_u64 },
    u64 => { "type": "integer", "minimum": 0, "maximum": 18_446_744_073_709_551_615_u64 },
    i64 => { "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX },
    f64 => { "type": "number" },
}

/// Generates a type that is a JSON object, and its description. `request` refuses unknown members, `answer` skips them:
/// a client may be older than its server. A member with another name in JSON is written `"name" field: Type`; one that
/// is left out when a test holds, `field["Option::is_none"]: Type`.
macro_rules! object {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@strict request) => { true };
    (@strict answer) => { false };
    ($(
        $(#[doc = $says:literal])*
        $kind:ident $type:ident {
            $( $(#[doc = $member_says:literal])* $($name:literal)? $field:ident $([$skip:literal])? : $member:ty, )*
        }
    )*) => {$(
        $crate::schema::object! { @type $kind, [$($says)*], $type, { $( [$($member_says)*] [$($name)?] [$($skip)?] $field : $member, )* } }

        impl $crate::schema::Described for $type {
            const OBJECT: bool = true;

            fn schema(schemas: &mut $crate::schema::Schemas) -> serde_json::Value {
                let says = concat!($($says),*).trim();
                let strict = $crate::schema::object!(@strict $kind);
                schemas.object(stringify!($type), says, strict, <Self as $crate::schema::Described>::members)
            }

            fn members(schemas: &mut $crate::schema::Schemas) -> Vec<$crate::schema::Member> {
                let _ = &schemas;
                vec![$( $crate::schema::Member {
                    name: $crate::schema::object!(@name $field $($name)?),
                    schema: <$member as $crate::schema::Described>::schema(schemas),
                    required: !<$member as $crate::schema::Described>::OPTIONAL,
                    says: concat!($($member_says),*).trim().to_owned(),
                }, )*]
            }
        }
    )*};
    (@type request, [$($says:literal)*], $type:ident, { $( [$($member_says:literal)*] [$($name:literal)?] [$($skip:literal)?] $field:ident : $member:ty, )* }) => {
        $(#[doc = $says])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $type {
            $( $(#[doc = $member_says])* $(#[serde(rename = $name)])? $(#[serde(skip_serializing_if = $skip)])? pub $field: $member, )*
        }
    };
    (@type answer, [$($says:literal)*], $type:ident, { $( [$($member_says:literal)*] [$($name:literal)?] [$($skip:literal)?] $field:ident : $member:ty, )* }) => {
        $(#[doc = $says])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $type {
            $( $(#[doc = $member_says])* $(#[serde(rename = $name)])? $(#[serde(skip_serializing_if = $skip)])? pub $field: $member, )*
        }
    };
}

/// Generates an enum of words.
macro_rules! words {
    ($(
        $(#[doc = $says:literal])*
        $type:ident { $( $(#[doc = $word_says:literal])* $variant:ident = $word:literal, )* }
    )*) => {$(
        $(#[doc = $says])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $type {
            $( $(#[doc = $word_says])* #[serde(rename = $word)] $variant, )*
        }

        impl $type {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }

        impl $crate::schema::Described for $type {
            fn schema(_: &mut $crate::schema::Schemas) -> serde_json::Value {
                serde_json::json!({ "type": "string", "enum": [$($word),*] })
            }
        }
    )*};
}

/// Generates requests with every optional member left out, so that a caller sets only what it needs: `Claim { worker:
/// Some("w1".into()), ..Claim::of_queue("jobs.") }`.
macro_rules! left_out {
    ($($type:ident { $($member:ident),* $(,)? })*) => {$(
        impl Default for $type {
            fn default() -> Self {
                Self { $($member: None),* }
            }
        }
    )*};
}

pub(crate) use {left_out, object, words};
