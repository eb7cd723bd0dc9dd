//! The node graph of a metadata section, read in one pass; of each node only the fields that determine types are kept.
//!
//! There are two formats, distinguished by the name of the type field: `{"type": "ir.IntImm", "data": {"value": 3}}`,
//! and the classic `{"type_key": "IntImm", "attrs": {"value": "3"}}`, in which all scalars are strings.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The most nodes of a section; a constant takes about nine.
const MAX_NODES: usize = 1 << 19;

/// The fields of nodes that determine types.
const FIELDS: &[&str] = &["value", "data", "ty", "struct_info_", "dtype", "ndim", "shape", "values"];

/// The nodes of a section.
#[derive(Default)]
pub(super) struct Graph<'j> {
    /// The index of the root node.
    pub(super) root: Option<usize>,
    /// The nodes. They refer to each other by index; the indices are not checked.
    pub(super) nodes: Vec<Node<'j>>,
    /// Tensors of the classic format, in base64.
    pub(super) tensors: Vec<Cow<'j, str>>,
}

/// A node.
#[derive(Default)]
pub(super) struct Node<'j> {
    kind: Cow<'j, str>,
    /// Whether the node has the classic format.
    pub(super) classic: bool,
    /// The indices of listed nodes.
    pub(super) list: Option<Vec<usize>>,
    /// The keys of a classic map.
    pub(super) keys: Option<Vec<Cow<'j, str>>>,
    /// The value of a string node.
    pub(super) text: Option<Cow<'j, str>>,
    /// The value of an integer node (`"int"`).
    pub(super) number: Option<i64>,
    fields: Vec<(&'static str, Scalar<'j>)>,
}

/// A scalar value.
enum Scalar<'j> {
    Integer(i64),
    Text(Cow<'j, str>),
    Other,
}

/// The value of `data` or `attrs`.
enum Data<'j> {
    Scalar(Scalar<'j>),
    List(Vec<usize>),
    Fields(Vec<(&'static str, Scalar<'j>)>),
}

/// Reads a section.
///
/// # Errors
/// A message about the mistake in the JSON.
pub(super) fn parse(json: &str) -> Result<Graph<'_>, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

impl Node<'_> {
    /// The node's type without namespaces: `GenericConst`.
    pub(super) fn kind(&self) -> &str {
        self.kind.rsplit('.').next().unwrap_or_default()
    }

    fn field(&self, name: &str) -> Option<&Scalar<'_>> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// Returns an integer field.
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        match self.field(name)? {
            Scalar::Integer(value) => Some(*value),
            Scalar::Text(text) if self.classic => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns the first of these fields that exists, as an index or count.
    pub(super) fn index(&self, names: &[&str]) -> Option<usize> {
        names.iter().find_map(|name| usize::try_from(self.integer(name)?).ok())
    }

    /// Returns a string field.
    pub(super) fn string(&self, name: &str) -> Option<&str> {
        match self.field(name)? {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Implements `Deserialize` by a visitor.
macro_rules! visited {
    ($type:ident by $visitor:ident via $method:ident) => {
        struct $visitor;

        impl<'de> Deserialize<'de> for $type<'de> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.$method($visitor)
            }
        }
    };
}

visited!(Graph by GraphVisitor via deserialize_map);
visited!(Node by NodeVisitor via deserialize_map);
visited!(Data by DataVisitor via deserialize_any);
visited!(Scalar by ScalarVisitor via deserialize_any);

impl<'de> Visitor<'de> for GraphVisitor {
    type Value = Graph<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `nodes`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Graph<'de>, A::Error> {
        let mut graph = Graph::default();
        while let Some(key) = map.next_key::<Scalar<'de>>()? {
            match key.text().as_deref() {
                Some("root_index" | "root") => graph.root = map.next_value::<Scalar<'de>>()?.index(),
                Some("nodes") => graph.nodes = map.next_value::<Nodes<'de>>()?.0,
                Some("b64ndarrays") => graph.tensors = map.next_value::<Texts<'de>>()?.0,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(graph)
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node: an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let mut node = Node::default();
        while let Some(key) = map.next_key::<Scalar<'de>>()? {
            match key.text().as_deref() {
                Some(key @ ("type" | "type_key")) => {
                    node.classic = key == "type_key";
                    node.kind = map.next_value::<Scalar<'de>>()?.text().unwrap_or_default();
                }
                Some("keys") => node.keys = Some(map.next_value::<Texts<'de>>()?.0),
                Some("data" | "attrs") => match map.next_value::<Data<'de>>()? {
                    Data::Scalar(Scalar::Integer(number)) => node.number = Some(number),
                    Data::Scalar(scalar) => node.text = scalar.text(),
                    Data::List(list) => node.list = Some(list),
                    Data::Fields(fields) => node.fields = fields,
                },
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(node)
    }
}

/// Forwards scalars to [`ScalarVisitor`].
macro_rules! scalars {
    ($wrap:expr) => {
        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok($wrap(Scalar::Other))
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
            Ok($wrap(Scalar::Integer(value)))
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
            Ok($wrap(i64::try_from(value).map_or(Scalar::Other, Scalar::Integer)))
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok($wrap(Scalar::Other))
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok($wrap(Scalar::Other))
        }

        fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok($wrap(Scalar::Text(Cow::Borrowed(text))))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok($wrap(Scalar::Text(Cow::Owned(text.to_owned()))))
        }
    };
}

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Data<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node's data")
    }

    scalars!(Data::Scalar);

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Data<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element::<Scalar<'de>>()? {
            // A value that is not an index becomes the index of no node.
            list.push(item.index().unwrap_or(usize::MAX));
        }
        Ok(Data::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = map.next_key::<Scalar<'de>>()? {
            let key = key.text();
            match FIELDS.iter().find(|field| Some(**field) == key.as_deref()) {
                // Limits the number of fields, since a field may be repeated.
                Some(field) if fields.len() < FIELDS.len() => fields.push((*field, map.next_value::<Scalar<'de>>()?)),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Data::Fields(fields))
    }
}

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    scalars!(std::convert::identity);

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

impl<'j> Scalar<'j> {
    fn text(self) -> Option<Cow<'j, str>> {
        match self {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    fn index(&self) -> Option<usize> {
        match self {
            Scalar::Integer(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }
}

/// A list of nodes, of limited length.
struct Nodes<'j>(Vec<Node<'j>>);

/// A list of strings.
struct Texts<'j>(Vec<Cow<'j, str>>);

visited!(Nodes by NodesVisitor via deserialize_seq);
visited!(Texts by TextsVisitor via deserialize_seq);

impl<'de> Visitor<'de> for NodesVisitor {
    type Value = Nodes<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Nodes<'de>, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = seq.next_element()? {
            if nodes.len() == MAX_NODES {
                return Err(A::Error::custom(format_args!("it has more than {MAX_NODES} nodes")));
            }
            nodes.push(node);
        }
        Ok(Nodes(nodes))
    }
}

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Texts<'de>, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = seq.next_element::<Scalar<'de>>()? {
            texts.push(text.text().unwrap_or_default());
        }
        Ok(Texts(texts))
    }
}
