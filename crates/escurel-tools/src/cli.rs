//! Each tool as a sub-command: plain data from which the binary builds its
//! parser and its help.
//!
//! Invariant: what the command line cannot say is not said here; the values
//! go through the same checks as every other call.

use serde_json::{Map, Value};

use crate::arguments::Kind;
use crate::catalog::{Catalog, Derived};
use crate::spec::Spec;
use crate::tool::Entry;

#[derive(Clone, Debug, PartialEq)]
pub struct CommandSpec {
    /// The sub-command, with dashes.
    pub name: String,
    pub tool: &'static str,
    /// One sentence.
    pub about: String,
    pub long_about: String,
    /// (what it shows, a command line after the program's name)
    pub examples: Vec<(String, String)>,
    /// By position, in this order.
    pub positional: Vec<ArgSpec>,
    pub flags: Vec<ArgSpec>,
    pub admin: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ArgSpec {
    /// The tool's argument.
    pub argument: String,
    /// The flag without its dashes, `page-id` for `page_id`.
    pub flag: String,
    pub help: String,
    pub kind: ArgKind,
    pub required: bool,
    /// What holds when it is left out, for the help.
    pub default: Option<String>,
    /// The value is a file to read, `-` for standard input.
    pub from_file: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ArgKind {
    Text,
    Number,
    /// A flag without a value.
    Switch,
    Choice(Vec<String>),
    /// Can be given several times.
    List,
    /// A JSON object.
    Json,
    /// Any JSON value; what is none is text.
    Any,
}

/// All tools, in their order.
pub fn commands(catalog: &Catalog) -> Vec<CommandSpec> {
    catalog
        .iter()
        .map(|(entry, derived)| command(entry, derived))
        .collect()
}

fn command(entry: &Entry, derived: &Derived) -> CommandSpec {
    let spec = &entry.spec;
    let mut args: Vec<ArgSpec> = derived
        .params
        .iter()
        .map(|p| arg(p, spec, &derived.input))
        .collect();
    let take = |args: &mut Vec<ArgSpec>, name: &str| {
        args.iter()
            .position(|a| a.argument == name)
            .map(|i| args.remove(i))
    };
    let positional = spec
        .cli
        .positional
        .iter()
        .filter_map(|name| take(&mut args, name))
        .collect();
    let long_about = derived
        .description
        .split("\n\nExamples:")
        .next()
        .unwrap_or_default();
    let mut command = CommandSpec {
        name: spec.name.replace('_', "-"),
        tool: spec.name,
        about: first_sentence(long_about),
        long_about: long_about.to_owned(),
        examples: Vec::new(),
        positional,
        flags: args,
        admin: spec.scope == crate::spec::Scope::Admin,
    };
    command.examples = spec
        .examples
        .iter()
        .filter_map(|e| command.example(e))
        .collect();
    command
}

fn arg(param: &crate::arguments::Param, spec: &Spec, input: &Value) -> ArgSpec {
    let schema = &input["properties"][&param.name];
    let default = match &schema["default"] {
        Value::Null | Value::Bool(false) => None,
        Value::String(s) => Some(s.clone()),
        other => Some(other.to_string()),
    };
    ArgSpec {
        argument: param.name.clone(),
        flag: param.name.replace('_', "-"),
        help: schema["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        kind: ArgKind::of(&param.kind),
        required: param.required,
        default,
        from_file: spec.cli.from_file.contains(&param.name.as_str()),
    }
}

impl ArgKind {
    fn of(kind: &Kind) -> ArgKind {
        match kind {
            // Whatever can be a list or an object can be anything.
            Kind::Scalar(types) if types.iter().any(|t| t == "object") => ArgKind::Any,
            Kind::Text | Kind::Scalar(_) => ArgKind::Text,
            Kind::Any => ArgKind::Any,
            Kind::Choice(choices) => ArgKind::Choice(choices.clone()),
            Kind::Integer { .. } | Kind::Number => ArgKind::Number,
            Kind::Boolean => ArgKind::Switch,
            Kind::List { .. } => ArgKind::List,
            Kind::Object => ArgKind::Json,
        }
    }
}

fn any(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn first_sentence(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    paragraph
        .split_once(". ")
        .map_or(paragraph, |(first, _)| first)
        .trim_end_matches('.')
        .to_owned()
}

impl CommandSpec {
    pub fn args(&self) -> impl Iterator<Item = &ArgSpec> {
        self.positional.iter().chain(&self.flags)
    }

    /// The arguments of a call from the texts of a command line, by argument
    /// name; a switch that is set has no text.
    pub fn arguments<'a>(&self, given: impl IntoIterator<Item = (&'a str, Vec<String>)>) -> Value {
        let mut out = Map::new();
        for (name, texts) in given {
            let kind = self.args().find(|a| a.argument == name).map(|a| &a.kind);
            let value = match (kind, texts.len()) {
                (Some(ArgKind::List), _) => Value::from(texts),
                (Some(ArgKind::Switch), 0) => Value::Bool(true),
                (Some(ArgKind::Any), _) => texts.into_iter().last().map_or(Value::Null, any),
                // Numbers and objects stay text: reading them is part of checking arguments.
                _ => texts.into_iter().last().map_or(Value::Null, Value::String),
            };
            out.insert(name.to_owned(), value);
        }
        Value::Object(out)
    }

    fn example(&self, &(shows, arguments): &(&str, &str)) -> Option<(String, String)> {
        let arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
        // A file's content is no command line.
        if self.args().any(|a| a.from_file) {
            return None;
        }
        let mut line = self.name.clone();
        for arg in self.args() {
            let positional = self.positional.iter().any(|p| p.argument == arg.argument);
            if let Some(value) = arguments.get(&arg.argument) {
                line.push_str(&shell_words(arg, value, positional));
            }
        }
        Some((shows.to_owned(), line))
    }
}

fn shell_words(arg: &ArgSpec, value: &Value, positional: bool) -> String {
    let word = |v: &Value| match v {
        // Written bare, it would be taken for a number or another value.
        Value::String(text) if arg.kind == ArgKind::Any && any(text.clone()) != *v => {
            quoted(&v.to_string())
        }
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    };
    match value {
        Value::Array(items) => items
            .iter()
            .map(|v| format!(" --{} {}", arg.flag, word(v)))
            .collect(),
        Value::Bool(true) => format!(" --{}", arg.flag),
        value if positional => format!(" {}", word(value)),
        value => format!(" --{} {}", arg.flag, word(value)),
    }
}

/// A word as a POSIX shell reads it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
