//! JSON values as YAML source on one line.
//!
//! Invariant: what is written reads back as the same value in this reader and
//! as the same type in other common ones; in doubt it is quoted.

use serde_json::Value;

use crate::yaml;

pub(super) fn value(value: &Value) -> String {
    write(value, false)
}

fn write(value: &Value, flow: bool) -> String {
    match value {
        Value::String(s) => scalar(s, flow),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|v| write(v, true)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let items: Vec<String> = map
                .iter()
                .map(|(k, v)| format!("{}: {}", scalar(k, true), write(v, true)))
                .collect();
            format!("{{{}}}", items.join(", "))
        }
        other => other.to_string(),
    }
}

pub(super) fn scalar(s: &str, flow: bool) -> String {
    if is_plain(s, flow) {
        s.to_owned()
    } else {
        quoted(s)
    }
}

fn is_plain(s: &str, flow: bool) -> bool {
    let date = s.len() == 10
        && s.bytes().enumerate().all(|(i, b)| {
            if matches!(i, 4 | 7) {
                b == b'-'
            } else {
                b.is_ascii_digit()
            }
        });
    if date {
        return true;
    }
    let opens = s.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut before = ' ';
    let body = s.chars().all(|c| {
        let fits = c.is_alphanumeric()
            || matches!(c, '_' | '-' | '.' | '/' | '@' | '+' | '(' | ')' | '\'')
            || (c == ' ' && before != ' ')
            || (c == ',' && !flow);
        before = c;
        fits
    });
    let word = s.to_ascii_lowercase();
    let reserved = matches!(
        word.as_str(),
        "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    opens && body && before != ' ' && !reserved && matches!(yaml::plain(s, false), Value::String(_))
}

/// Double quotes with JSON's escapes; what YAML readers dislike is escaped too.
fn quoted(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_unprintable(c) => match c as u32 {
                n @ 0..=0xffff => out.push_str(&format!("\\u{n:04x}")),
                n => out.push_str(&format!("\\U{n:08x}")),
            },
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Controls, line separators, marks, private use and non-characters.
fn is_unprintable(c: char) -> bool {
    let n = c as u32;
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}'
        )
        || n & 0xfffe == 0xfffe
}

/// Equal, or the same scalar that a text-like key keeps as text.
pub(super) fn same(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(k, v)| b.get(k).is_some_and(|got| same(v, got)))
        }
        (Value::Number(_) | Value::Bool(_) | Value::Null, Value::String(text)) => {
            // The printed form is what stands in the header.
            let printed = want.to_string();
            printed == *text
        }
        _ => want == got,
    }
}
