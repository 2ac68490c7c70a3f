//! The list of tools and what is derived from it once.
//!
//! Invariant: two callers with the same rights get the very same bytes.

use std::sync::{Arc, LazyLock};

use escurel_access::Caller;
use serde_json::{Map, Value, json};

use crate::arguments::Params;
use crate::kb;
use crate::nearest::nearest;
use crate::once;
use crate::schema;
use crate::spec::{Effect, Scope, Spec};
use crate::tool::Entry;

pub struct Catalog {
    entries: &'static [Entry],
    derived: Vec<Derived>,
    /// `tools` arrays by (admin, labels at the top level).
    lists: [[Arc<str>; 2]; 2],
}

/// What follows from an entry.
pub(crate) struct Derived {
    pub description: String,
    pub input: Value,
    pub output: Value,
    pub params: Params,
}

impl Catalog {
    /// The knowledge base's tools.
    pub fn standard() -> &'static Catalog {
        static STANDARD: LazyLock<Catalog> = LazyLock::new(|| Catalog::new(kb::TOOLS));
        &STANDARD
    }

    fn new(entries: &'static [Entry]) -> Catalog {
        let derived: Vec<Derived> = entries.iter().map(derive).collect();
        let list = |admin: bool, top: bool| list_text(entries, &derived, admin, top);
        let lists = [
            [list(false, false), list(false, true)],
            [list(true, false), list(true, true)],
        ];
        Catalog {
            entries,
            derived,
            lists,
        }
    }

    pub fn entries(&self) -> &[Entry] {
        self.entries
    }

    /// By name or alias.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.position(name).map(|i| &self.entries[i])
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.entries
            .iter()
            .position(|e| e.spec.name == name || e.spec.aliases.contains(&name))
    }

    pub(crate) fn derived(&self, position: usize) -> &Derived {
        &self.derived[position]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Entry, &Derived)> {
        self.entries.iter().zip(&self.derived)
    }

    /// What the caller may call.
    pub fn visible<'a>(&'a self, caller: &Caller) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let admin = caller.is_admin();
        self.entries.iter().filter(move |e| shows(&e.spec, admin))
    }

    /// The JSON text of the `tools` array for this caller.
    pub fn list_json(&self, caller: &Caller, labels_top_level: bool) -> Arc<str> {
        Arc::clone(&self.lists[usize::from(caller.is_admin())][usize::from(labels_top_level)])
    }

    /// The tool that was probably meant.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.entries.iter().map(|e| e.spec.name))
    }
}

fn shows(spec: &Spec, admin: bool) -> bool {
    admin || spec.scope == Scope::Agent
}

fn derive(entry: &Entry) -> Derived {
    let mut input = (entry.input)();
    let description = schema::take_description(&mut input);
    once::declare(&entry.spec, &mut input);
    let output = (entry.output)();
    let params = Params::of(&input);
    Derived {
        description: with_examples(description, &entry.spec),
        input,
        output,
        params,
    }
}

fn with_examples(mut description: String, spec: &Spec) -> String {
    if spec.examples.is_empty() {
        return description;
    }
    description.push_str("\n\nExamples:");
    for (shows, arguments) in spec.examples {
        description.push_str(&format!("\n- {shows}: {arguments}"));
    }
    description
}

fn list_text(entries: &[Entry], derived: &[Derived], admin: bool, top: bool) -> Arc<str> {
    let all = entries.iter().zip(derived);
    let tools: Vec<Value> = all
        .filter(|(e, _)| shows(&e.spec, admin))
        .map(|(e, d)| listed(e, d, top))
        .collect();
    Value::Array(tools).to_string().into()
}

fn listed(entry: &Entry, derived: &Derived, labels_top_level: bool) -> Value {
    let spec = &entry.spec;
    let read_only = spec.effect == Effect::Read;
    let mut tool = json!({
        "name": spec.name,
        "title": spec.title,
        "description": derived.description,
        "inputSchema": derived.input,
        "outputSchema": derived.output,
        "annotations": {
            "readOnlyHint": read_only,
            "destructiveHint": spec.effect == Effect::Destroy,
            "idempotentHint": read_only,
            "openWorldHint": false,
        },
        "_meta": { "escurel/execution": spec.execution.as_str(), "escurel/scope": spec.scope.as_str() },
    });
    if labels_top_level && let Some(tool) = tool.as_object_mut() {
        label(tool, spec);
    }
    tool
}

fn label(tool: &mut Map<String, Value>, spec: &Spec) {
    tool.insert("execution".into(), spec.execution.as_str().into());
    tool.insert("scope".into(), spec.scope.as_str().into());
}
