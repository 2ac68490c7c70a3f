//! Which JSON value a plain scalar is.
//!
//! Invariant: a scalar becomes a number only if the number writes itself the
//! same way, so that no identifier ever loses a digit.

use serde_json::{Number, Value};

/// Whole numbers beyond this are not exact in every JSON reader.
const MAX_EXACT: u64 = 1 << 53;

/// Keys whose plain scalars are text whatever they look like.
pub(crate) fn is_text_key(key: &str) -> bool {
    matches!(
        key,
        "id" | "title"
            | "version"
            | "tags"
            | "aliases"
            | "skill"
            | "description"
            | "type"
            | "layer"
            | "scenario"
            | "at"
    )
}

/// A plain scalar under a key that is not text-like.
pub(crate) fn plain(text: &str, text_like: bool) -> Value {
    match text {
        "" | "~" => return Value::Null,
        _ if text_like => return Value::String(text.to_owned()),
        "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let first = *text.as_bytes().first()?;
    if text.len() > 24 || !(first == b'-' || first.is_ascii_digit()) {
        return None;
    }
    if let Ok(n) = text.parse::<i64>() {
        let same = n.unsigned_abs() <= MAX_EXACT && n.to_string() == text;
        return same.then(|| Number::from(n));
    }
    if !text
        .bytes()
        .all(|b| b.is_ascii_digit() || b == b'.' || b == b'-')
    {
        return None;
    }
    let n = Number::from_f64(text.parse().ok()?)?;
    (n.to_string() == text).then_some(n)
}
