//! Arguments as they come, checked against the published schema.
//!
//! Lenient where the meaning is plain: null is absent, and text that reads as
//! the declared list, object, number or boolean is one. Refuses the rest by
//! naming the field. Invariant: cost is linear in the arguments, and no text
//! of the caller is echoed beyond [`ECHO`] characters.

use escurel_core::{Code, Refusal};
use serde_json::{Map, Number, Value};

use crate::nearest::{alike, nearest};
use crate::spec::Spec;

/// How much of a bad value is shown.
const ECHO: usize = 60;

/// The arguments that a schema declares.
pub struct Params(Vec<Param>);

pub struct Param {
    pub name: String,
    pub kind: Kind,
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Text,
    Choice(Vec<String>),
    Integer {
        min: Option<i64>,
        max: Option<i64>,
    },
    Number,
    Boolean,
    /// Text, number or boolean, as the schema's list of types says.
    Scalar(Vec<String>),
    List {
        of: Box<Kind>,
        min: usize,
        max: usize,
    },
    Object,
    Any,
}

impl Params {
    pub fn of(schema: &Value) -> Params {
        let required = schema["required"].as_array();
        let is_required = |name: &str| required.is_some_and(|r| r.iter().any(|v| v == name));
        let fields = schema["properties"].as_object().into_iter().flatten();
        let param = |(name, s): (&String, &Value)| Param {
            name: name.clone(),
            kind: Kind::of(s),
            required: is_required(name),
        };
        Params(fields.map(param).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Param> {
        self.0.iter()
    }

    /// The arguments with their declared types, absent ones left out.
    pub fn check(&self, spec: &Spec, arguments: Value) -> Result<Value, Refusal> {
        let given = self.canonical(spec, object(arguments)?)?;
        let mut checked = Map::new();
        for (name, value) in given {
            let Some(param) = self.0.iter().find(|p| p.name == name) else {
                return Err(self.unknown(spec, &name));
            };
            if !value.is_null() {
                let value = param
                    .kind
                    .accept(&name, value)
                    .map_err(|refusal| refusal.at(&name))?;
                checked.insert(name, value);
            }
        }
        match self
            .0
            .iter()
            .find(|p| p.required && !checked.contains_key(&p.name))
        {
            Some(p) => Err(bad(format!(
                "{}: required; expected {}.",
                p.name,
                p.kind.expected()
            ))
            .at(&p.name)),
            None => Ok(Value::Object(checked)),
        }
    }

    /// Other spellings replaced by the argument's name.
    fn canonical(
        &self,
        spec: &Spec,
        given: Map<String, Value>,
    ) -> Result<Map<String, Value>, Refusal> {
        let name_of = |key: &str| {
            spec.argument_aliases
                .iter()
                .find(|(s, _)| *s == key)
                .map(|(_, name)| *name)
        };
        if !given.keys().any(|k| name_of(k).is_some()) {
            return Ok(given);
        }
        let mut out = Map::new();
        for (key, value) in given {
            let name = name_of(&key).map_or_else(|| key.clone(), str::to_owned);
            match out.get(&name) {
                Some(other) if !other.is_null() && !value.is_null() && *other != value => {
                    return Err(
                        bad(format!("{name}: given twice, also as {}.", echo(&key))).at(name)
                    );
                }
                Some(other) if !other.is_null() => {}
                _ => {
                    out.insert(name, value);
                }
            }
        }
        Ok(out)
    }

    fn unknown(&self, spec: &Spec, name: &str) -> Refusal {
        let names = || self.0.iter().map(|p| p.name.as_str());
        let known = match self.0.len() {
            0 => "It takes none.".to_owned(),
            _ => format!("It knows {}.", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("{} has no argument {}. {known}", spec.name, echo(name));
        let location: String = name.chars().take(ECHO).collect();
        let refusal = Refusal::new(Code::UnknownArgument, message).at(location);
        refusal.candidates(alike(name, names()).into_iter().map(str::to_owned))
    }
}

/// The arguments as an object; also when they come as JSON text.
fn object(arguments: Value) -> Result<Map<String, Value>, Refusal> {
    match arguments {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => Ok(map),
            _ => Err(bad(format!(
                "arguments: expected an object, got {}.",
                echo(&text)
            ))),
        },
        other => Err(bad(format!(
            "arguments: expected an object, got {}.",
            shown(&other)
        ))),
    }
}

impl Kind {
    fn of(schema: &Value) -> Kind {
        let types = types(schema);
        if let Some(choices) = schema["enum"].as_array() {
            return Kind::Choice(
                choices
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            );
        }
        match types.as_slice() {
            [one] => Kind::single(one, schema),
            [] => Kind::Any,
            several => Kind::Scalar(several.iter().map(|t| (*t).to_owned()).collect()),
        }
    }

    fn single(name: &str, schema: &Value) -> Kind {
        let size = |key: &str| schema[key].as_u64().and_then(|n| usize::try_from(n).ok());
        match name {
            "string" => Kind::Text,
            "integer" => Kind::Integer {
                min: schema["minimum"].as_i64(),
                max: schema["maximum"].as_i64(),
            },
            "number" => Kind::Number,
            "boolean" => Kind::Boolean,
            "object" => Kind::Object,
            "array" => Kind::List {
                of: Box::new(Kind::of(&schema["items"])),
                min: size("minItems").unwrap_or(0),
                max: size("maxItems").unwrap_or(usize::MAX),
            },
            _ => Kind::Any,
        }
    }

    /// The value in the declared type; `path` names it in a refusal.
    fn accept(&self, path: &str, value: Value) -> Result<Value, Refusal> {
        match (self, self.read(value)) {
            (Kind::List { of, min, max }, Value::Array(items)) => {
                if items.len() < *min || items.len() > *max {
                    let n = items.len();
                    return Err(bad(format!(
                        "{path}: expected {}, got {n}.",
                        self.expected()
                    )));
                }
                let items = items
                    .into_iter()
                    .enumerate()
                    .map(|(i, v)| of.accept(&format!("{path}[{i}]"), v));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            (_, value) if self.fits(&value) => Ok(value),
            (_, value) => Err(self.mismatch(path, &value)),
        }
    }

    fn mismatch(&self, path: &str, value: &Value) -> Refusal {
        let refusal = bad(format!(
            "{path}: expected {}, got {}.",
            self.expected(),
            shown(value)
        ));
        let meant = match (self, value) {
            (Kind::Choice(choices), Value::String(s)) => {
                nearest(s, choices.iter().map(String::as_str))
            }
            _ => None,
        };
        refusal.candidates(meant.map(str::to_owned))
    }

    /// Text that is the declared type in disguise, and whole numbers written with a fraction.
    fn read(&self, value: Value) -> Value {
        match (self, &value) {
            (Kind::Text | Kind::Choice(_) | Kind::Scalar(_) | Kind::Any, _) => value,
            (Kind::Integer { .. }, Value::Number(n)) => whole(n).unwrap_or(value),
            (_, Value::String(text)) => match serde_json::from_str::<Value>(text.trim()) {
                Ok(Value::Number(n)) if matches!(self, Kind::Integer { .. }) => {
                    whole(&n).unwrap_or(value)
                }
                Ok(read) if self.same_type(&read) => read,
                _ => value,
            },
            _ => value,
        }
    }

    fn same_type(&self, value: &Value) -> bool {
        match self {
            Kind::Integer { .. } => value.is_i64() || value.is_u64(),
            Kind::Number => value.is_number(),
            Kind::Boolean => value.is_boolean(),
            Kind::List { .. } => value.is_array(),
            Kind::Object => value.is_object(),
            Kind::Text | Kind::Choice(_) => value.is_string(),
            Kind::Scalar(types) => types.iter().any(|t| type_fits(t, value)),
            Kind::Any => true,
        }
    }

    fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Choice(choices), Value::String(s)) => choices.contains(s),
            (Kind::Integer { min, max }, Value::Number(n)) => n
                .as_i64()
                .is_some_and(|n| min.is_none_or(|m| n >= m) && max.is_none_or(|m| n <= m)),
            _ => self.same_type(value),
        }
    }

    /// What is expected, for a sentence.
    pub fn expected(&self) -> String {
        match self {
            Kind::Text => "a string".into(),
            Kind::Choice(choices) => {
                let quoted: Vec<String> = choices.iter().map(|c| format!("{c:?}")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Kind::Integer {
                min: Some(min),
                max: Some(max),
            } => format!("an integer between {min} and {max}"),
            Kind::Integer {
                min: Some(min),
                max: None,
            } => format!("an integer of at least {min}"),
            Kind::Integer { .. } => "an integer".into(),
            Kind::Number => "a number".into(),
            Kind::Boolean => "true or false".into(),
            Kind::Scalar(types) => types
                .iter()
                .map(|t| format!("a {t}"))
                .collect::<Vec<_>>()
                .join(" or "),
            Kind::List { of, min, max } => {
                format!("a list of {}{}", counted(*min, *max), of.plural())
            }
            Kind::Object => "an object".into(),
            Kind::Any => "a value".into(),
        }
    }

    fn plural(&self) -> String {
        match self {
            Kind::Text => "strings".into(),
            other => format!("values, each {}", other.expected()),
        }
    }
}

fn bad(message: String) -> Refusal {
    Refusal::new(Code::InvalidArgument, message)
}

/// `2 to 8 `, `at most 8 `, or nothing.
fn counted(min: usize, max: usize) -> String {
    match (min, max) {
        (0, usize::MAX) => String::new(),
        (0, max) => format!("at most {max} "),
        (min, usize::MAX) => format!("at least {min} "),
        (min, max) => format!("{min} to {max} "),
    }
}

/// The type names of a schema, without null.
fn types(schema: &Value) -> Vec<&str> {
    let not_null = |t: &&str| *t != "null";
    match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several
            .iter()
            .filter_map(Value::as_str)
            .filter(not_null)
            .collect(),
        _ => Vec::new(),
    }
}

fn type_fits(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => false,
    }
}

/// `10.0` as 10, within the range that floats hold exactly.
fn whole(n: &Number) -> Option<Value> {
    if n.is_i64() || n.is_u64() {
        return Some(Value::Number(n.clone()));
    }
    let f = n.as_f64()?;
    let exact = f.fract() == 0.0 && f.abs() <= 9_007_199_254_740_992.0;
    exact.then(|| Value::from(f as i64))
}

/// A bad value for a sentence: scalars as they are, the rest by its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::String(s) => echo(s),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        other => other.to_string(),
    }
}

fn echo(text: &str) -> String {
    match text.char_indices().nth(ECHO) {
        Some((end, _)) => format!("{:?} and more", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: Value, value: Value, expect: Result<Value, &str>) {
        let kind = Kind::of(&schema);
        let got = kind.accept("x", value.clone()).map_err(|r| r.message);
        assert_eq!(got, expect.map_err(str::to_owned), "{schema} {value}");
    }

    #[test]
    fn plain_meaning_is_accepted() {
        let k = json!({"type": ["integer", "null"], "minimum": 1, "maximum": 200});
        check(k.clone(), json!(10), Ok(json!(10)));
        check(k.clone(), json!("10"), Ok(json!(10)));
        check(k.clone(), json!(10.0), Ok(json!(10)));
        check(k, json!(" 10.0 "), Ok(json!(10)));
        check(json!({"type": "boolean"}), json!("true"), Ok(json!(true)));
        check(
            json!({"type": "object"}),
            json!("{\"a\": 1}"),
            Ok(json!({"a": 1})),
        );
        let list = json!({"type": "array", "items": {"type": "string"}});
        check(list.clone(), json!("[\"a\", \"b\"]"), Ok(json!(["a", "b"])));
        check(list, json!([]), Ok(json!([])));
        check(json!({"type": "string"}), json!("10"), Ok(json!("10")));
        check(
            json!({"type": ["string", "number"]}),
            json!("10"),
            Ok(json!("10")),
        );
    }

    #[test]
    fn the_rest_is_refused_by_name() {
        let k = json!({"type": ["integer", "null"], "minimum": 1, "maximum": 200});
        check(
            k.clone(),
            json!("ten"),
            Err("x: expected an integer between 1 and 200, got \"ten\"."),
        );
        check(
            k.clone(),
            json!(0),
            Err("x: expected an integer between 1 and 200, got 0."),
        );
        check(
            k.clone(),
            json!(1.5),
            Err("x: expected an integer between 1 and 200, got 1.5."),
        );
        check(
            k.clone(),
            json!(1e300),
            Err("x: expected an integer between 1 and 200, got 1e+300."),
        );
        check(
            k,
            json!([1]),
            Err("x: expected an integer between 1 and 200, got a list."),
        );
        let choice = json!({"type": "string", "enum": ["up", "down"]});
        check(
            choice,
            json!("dwn"),
            Err("x: expected one of \"up\", \"down\", got \"dwn\"."),
        );
        let list =
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2});
        check(
            list.clone(),
            json!(["a", 5]),
            Err("x[1]: expected a string, got 5."),
        );
        check(
            list.clone(),
            json!([]),
            Err("x: expected a list of 1 to 2 strings, got 0."),
        );
        check(
            list,
            json!("a"),
            Err("x: expected a list of 1 to 2 strings, got \"a\"."),
        );
        check(
            json!({"type": "string"}),
            json!(5),
            Err("x: expected a string, got 5."),
        );
    }

    #[test]
    fn long_and_deep_text_is_not_echoed() {
        let long = "é".repeat(100_000);
        let refusal = Kind::Boolean.accept("x", json!(long)).unwrap_err();
        assert!(
            refusal.message.chars().count() < 120,
            "{}",
            refusal.message.len()
        );
        let deep = "[".repeat(100_000);
        assert!(Kind::Object.accept("x", json!(deep)).is_err());
    }
}
