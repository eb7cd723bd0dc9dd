//! Generates the JSON schema of `rx.toml`, with which editors complete and check it.

use rx_base::{Code, TvmVersion};
use rx_settings::keys::{KEYS, Key, Kind};
use rx_settings::{FILE_NAME, Level};
use serde_json::{Map, Value, json};

/// Returns the schema as text.
pub fn schema() -> String {
    let mut schema = table(KEYS);
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["$id"] = format!("{}/raw/main/docs/rx.schema.json", env!("CARGO_PKG_REPOSITORY")).into();
    schema["definitions"] = json!({ "severities": severities() });
    schema["title"] = FILE_NAME.into();
    schema["description"] = "Settings of rx: rxcheck and its language server.".into();
    // INVARIANT: a JSON value has only string keys, so it can be written.
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

fn table(keys: &[Key]) -> Value {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| {
            let mut schema = value(key.kind);
            schema["description"] = key.doc.into();
            (key.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn value(kind: Kind) -> Value {
    match kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Patterns => json!({ "type": "array", "items": { "type": "string", "minLength": 1 } }),
        Kind::Severities => json!({ "allOf": [{ "$ref": "#/definitions/severities" }] }),
        Kind::Version => {
            let known: Vec<String> = TvmVersion::ALL.iter().map(|version| version.name().replace('.', "\\.")).collect();
            json!({ "type": "string", "pattern": format!("^v?({})(\\..+)?$", known.join("|")) })
        }
        Kind::Paths => json!({ "type": "array", "items": path() }),
        Kind::NamedPaths => json!({ "type": "object", "additionalProperties": path() }),
        Kind::Natural => natural(),
        Kind::NamedNaturals => json!({ "type": "object", "additionalProperties": natural() }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Table(keys) => table(keys),
        Kind::Tables(keys) => json!({ "type": "array", "items": table(keys) }),
        Kind::RawTables => json!({ "type": "array", "items": { "type": "object" } }),
    }
}

fn path() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn natural() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX })
}

/// Returns the schema of a severity table: every code by number and by name, groups by their leading digits, and `all`.
fn severities() -> Value {
    let level = |words: &str| json!({ "enum": Level::WORDS, "description": words });
    let mut properties = Map::new();
    properties.insert("all".to_owned(), level("Every diagnostic."));
    for code in Code::ALL.iter().filter(|code| code.is_choosable()) {
        let words = format!("{} {}: {}", code, code.slug(), code.summary());
        properties.insert(code.to_string(), level(&words));
        properties.insert(code.slug().to_owned(), level(&words));
    }
    json!({
        "type": "object",
        "properties": properties,
        "patternProperties": { "^RX[0-9]{1,3}$": level("All diagnostics whose codes begin with these digits.") },
        "additionalProperties": false,
    })
}
