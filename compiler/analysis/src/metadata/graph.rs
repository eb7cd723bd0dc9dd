//! The node graph of a metadata section, read in one pass; of each node only what types need.
//!
//! Two formats, told apart by what a node calls its type: `{"type": "ir.IntImm", "data": {"value": 3}}` with small values
//! in line (TVM `3rdparty/tvm-ffi/src/ffi/extra/serialization.cc`), and the classic
//! `{"type_key": "IntImm", "attrs": {"value": "3"}}`, all strings.

use serde_json::de::{SliceRead, StrRead};
use serde_core::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
