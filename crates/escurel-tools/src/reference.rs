//! The reference pages for people: tools and errors.
//!
//! Invariant: nothing here is written by hand that a declaration already says.

use std::fmt::Write;

use escurel_core::{Audience, Code};
use escurel_md::{CodeInfo, Severity};
use serde_json::Value;

use crate::catalog::{Catalog, Derived};
use crate::cli;
use crate::tool::Entry;

const NOTE: &str = "<!-- Generated from the declarations of the tools; `UPDATE_DOCS=1 cargo test -p escurel-tools` writes it anew. -->";

/// `docs/reference/tools.md`
pub fn reference_md(catalog: &Catalog) -> String {
    let mut out = format!("# Tools\n\n{NOTE}\n\n");
    out.push_str(
        "The same tools answer over MCP (`tools/call`), over plain HTTP (`POST /api/tools/<name>` with the \
         arguments as JSON body) and as sub-commands of `escurel`. Every argument named `page_id` takes the \
         page's path, its uid or `[[skill::id]]`. `null` is the same as leaving an argument out. An unknown \
         argument is refused, never ignored.\n\n| Tool | What it does |\n|---|---|\n",
    );
    let commands = cli::commands(catalog);
    for command in &commands {
        let _ = writeln!(
            out,
            "| [`{0}`](#{0}) | {1}. |",
            command.tool,
            in_table(&command.about)
        );
    }
    for ((entry, derived), command) in catalog.iter().zip(&commands) {
        tool(&mut out, entry, derived, command);
    }
    out
}

fn tool(out: &mut String, entry: &Entry, derived: &Derived, command: &cli::CommandSpec) {
    let spec = &entry.spec;
    let (scope, execution, effect) = (
        spec.scope.as_str(),
        spec.execution.as_str(),
        spec.effect.as_str(),
    );
    let _ = writeln!(out, "\n## {}\n\n{}\n", spec.name, command.long_about);
    let _ = writeln!(
        out,
        "For {scope}s · {execution} · {effect} · charged as {}\n",
        spec.quota.as_str()
    );
    arguments(out, &derived.input);
    answer(out, &derived.output);
    if !spec.examples.is_empty() {
        out.push_str("\n### Examples\n");
    }
    for (shows, arguments) in spec.examples {
        let _ = writeln!(out, "\n{}\n\n```json\n{arguments}\n```", capital(shows));
        if let Some((_, line)) = command.examples.iter().find(|(s, _)| s == shows) {
            let _ = writeln!(out, "\n```sh\nescurel {line}\n```");
        }
    }
}

fn arguments(out: &mut String, input: &Value) {
    let fields = input["properties"].as_object().into_iter().flatten();
    let required = input["required"].as_array();
    let mut rows = fields.peekable();
    if rows.peek().is_none() {
        out.push_str("It takes no arguments.\n");
        return;
    }
    out.push_str("| Argument | Type | Default | Meaning |\n|---|---|---|---|\n");
    for (name, schema) in rows {
        let needed = required.is_some_and(|r| r.iter().any(|v| v == name));
        let default = match &schema["default"] {
            Value::Null if needed => "required".to_owned(),
            Value::Null => String::new(),
            value => format!("`{value}`"),
        };
        let meaning = in_table(schema["description"].as_str().unwrap_or_default());
        let _ = writeln!(
            out,
            "| `{name}` | {} | {default} | {meaning} |",
            type_text(schema, false)
        );
    }
}

fn answer(out: &mut String, output: &Value) {
    out.push_str("\n### Answer\n\n| Field | Type | Meaning |\n|---|---|---|\n");
    fields(out, "", output);
}

/// The fields of an object, inner ones after theirs.
fn fields(out: &mut String, prefix: &str, schema: &Value) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let meaning = in_table(field["description"].as_str().unwrap_or_default());
        let path = format!("{prefix}{name}");
        let _ = writeln!(out, "| `{path}` | {} | {meaning} |", type_text(field, true));
        fields(out, &format!("{path}."), field);
        fields(out, &format!("{path}[]."), &field["items"]);
    }
}

/// `string or null`, `list of string`, `"up", "down"`.
fn type_text(schema: &Value, null: bool) -> String {
    let names: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec!["any"],
    };
    let text = |name: &&str| match (*name, schema["enum"].as_array()) {
        ("string", Some(choices)) => {
            let choices = choices
                .iter()
                .filter(|c| !c.is_null())
                .map(|c| format!("`{c}`"));
            choices.collect::<Vec<_>>().join(", ")
        }
        ("array", _) => format!("list of {}", type_text(&schema["items"], false)),
        ("integer", _) => format!("integer{}", range(schema)),
        (name, _) => name.to_owned(),
    };
    let shown = names.iter().filter(|n| null || **n != "null");
    shown.map(text).collect::<Vec<_>>().join(" or ")
}

fn range(schema: &Value) -> String {
    match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(min), Some(max)) => format!(", {min} to {max}"),
        (Some(min), None) if min > 0 => format!(", at least {min}"),
        _ => String::new(),
    }
}

/// `docs/reference/errors.md`
pub fn errors_md() -> String {
    let mut out = format!("# Errors\n\n{NOTE}\n\n");
    out.push_str(
        "A refused call is a tool result with `isError: true` and the text `code: sentence. Next step.`; its \
         `_meta[\"escurel/error\"]` holds `{code, retryable}` and, where they help, `location` and `candidates`. \
         Branch on `code`; wordings may change. `retryable` is true when the very same call can succeed later.\n",
    );
    let groups = [
        (
            Audience::Caller,
            "For the caller",
            "The same call can never succeed; correct it.",
        ),
        (
            Audience::Later,
            "For later",
            "The same call can succeed in a moment: these are `retryable`.",
        ),
        (
            Audience::Operator,
            "For the operator",
            "Something about the server or its disk needs a person.",
        ),
    ];
    for (audience, title, text) in groups {
        refusals(&mut out, audience, title, text);
    }
    numbers(&mut out);
    findings(&mut out);
    out
}

fn refusals(out: &mut String, audience: Audience, title: &str, text: &str) {
    let _ = writeln!(
        out,
        "\n## {title}\n\n{text}\n\n| Code | HTTP | Meaning | Next step |\n|---|---|---|---|"
    );
    for code in Code::ALL.iter().filter(|c| c.audience() == audience) {
        let (meaning, next) = (in_table(code.meaning()), in_table(code.next_step()));
        let _ = writeln!(
            out,
            "| `{}` | {} | {meaning} | {next} |",
            code.name(),
            code.http_status()
        );
    }
}

fn numbers(out: &mut String) {
    out.push_str(
        "\n## JSON-RPC numbers\n\nOnly these are JSON-RPC errors instead of results; `data` holds `{code, retryable}`.\n\n\
         | Number | `data.code` | When |\n|---|---|---|\n\
         | -32602 | `unknown_tool` | No tool has this name. |\n\
         | -32001 | `admin_required` | An administrator's tool, called by an agent. |\n",
    );
    for entry in Catalog::standard().entries() {
        for n in entry.spec.numbered {
            let at =
                n.at.map_or_else(String::new, |at| format!(", argument `{at}`"));
            let _ = writeln!(
                out,
                "| {} | `{}` | `{}`{at}. |",
                n.number,
                n.code.name(),
                entry.spec.name
            );
        }
    }
}

fn findings(out: &mut String) {
    out.push_str(
        "\n## Findings about pages\n\nWhat `validate` reports as `issues`. `expand` reports of them what the text of the page \
         alone shows, and `duplicate_id`; what depends on skills and on the targets of links only `validate` looks \
         up. Errors make a draft not `ok`, \
         warnings do not. A page with findings stays readable and searchable.\n\n\
         | Code | Severity | Meaning | Next step |\n|---|---|---|---|\n",
    );
    for CodeInfo {
        code,
        severity,
        meaning,
        next_step,
    } in escurel_md::CODES
    {
        let severity = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let _ = writeln!(
            out,
            "| `{code}` | {severity} | {} | {} |",
            in_table(meaning),
            in_table(next_step)
        );
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect::<String>() + ":"
    })
}

fn in_table(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
