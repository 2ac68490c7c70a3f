//! What teaches agents is true: the examples of the tools and the page `escurel`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use escurel_access::Caller;
use escurel_core::{Code, Kb};
use escurel_md::{CODES, Wikilink};
use escurel_tools::{Call, Catalog, dispatch};
use serde_json::Value;

const GUIDE: &str = include_str!("../../../../markdown/skills/escurel.md");

static DEMO: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    collect(&root, "markdown", &mut files);
    files
});

static KB: LazyLock<Arc<Kb>> = LazyLock::new(|| {
    let files: Vec<_> = DEMO.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    Kb::in_memory(&files)
});

fn collect(root: &Path, folder: &str, files: &mut Vec<(String, String)>) {
    for item in std::fs::read_dir(root.join(folder)).unwrap() {
        let item = item.unwrap();
        let path = format!("{folder}/{}", item.file_name().into_string().unwrap());
        if item.path().is_dir() {
            collect(root, &path, files);
        } else if path.ends_with(".md") {
            files.push((path, std::fs::read_to_string(item.path()).unwrap()));
        }
    }
}

fn answer(tool: &str, arguments: &str) -> Value {
    let caller = Caller::local();
    let call = Call {
        kb: &KB,
        caller: &caller,
    };
    let arguments = serde_json::from_str(arguments).unwrap();
    let answer = dispatch(Catalog::standard(), &call, tool, arguments)
        .unwrap_or_else(|refused| panic!("{tool} refuses: {refused}"));
    serde_json::from_str(&answer).unwrap()
}

/// Nothing found, or a link that leads nowhere.
fn is_empty(answer: &Value) -> bool {
    let lists = [
        "hits",
        "instances",
        "skills",
        "edges",
        "hops",
        "rows",
        "snapshots",
    ];
    let no = |key: &str| answer[key] == false;
    lists
        .iter()
        .any(|l| answer[*l].as_array().is_some_and(Vec::is_empty))
        || answer.get("page").is_some_and(Value::is_null)
        || ["ok", "reachable", "anchor_exists", "version_exists"]
            .iter()
            .any(|key| no(key))
}

#[test]
fn every_example_finds_something_in_the_demo() {
    for entry in Catalog::standard().entries() {
        let spec = &entry.spec;
        // A session's name cannot be known before it is opened.
        let known = |arguments: &str| !arguments.contains("\"sess_");
        for (shows, arguments) in spec.examples.iter().filter(|(_, a)| known(a)) {
            let answer = answer(spec.name, arguments);
            assert!(!is_empty(&answer), "{}, {shows}: {answer}", spec.name);
        }
    }
}

#[test]
fn every_example_of_the_guide_works() {
    let tools = tool_names();
    let (mut tool, mut ran) = (String::new(), 0);
    let mut parts = GUIDE.split("```");
    while let Some(prose) = parts.next() {
        // Sections are titled with their tool, elsewhere the one named last is meant.
        let titled = prose.replace("### ", "`").replace(": ", "`: `");
        let named = titled.split('`').rfind(|word| tools.contains(*word));
        if let Some(name) = named {
            tool = name.to_owned();
        }
        let Some(arguments) = parts.next().and_then(|code| code.strip_prefix("json")) else {
            continue;
        };
        let answer = answer(&tool, arguments);
        assert!(!is_empty(&answer), "{tool}: {arguments}\n{answer}");
        ran += 1;
    }
    assert!(ran > 10, "only {ran} examples were found");
}

#[test]
fn the_guide_names_only_what_exists() {
    let mut known: BTreeSet<String> = tool_names();
    known.extend(Code::ALL.iter().map(|c| c.name().to_owned()));
    known.extend(CODES.iter().map(|c| c.code.to_owned()));
    let listed = Catalog::standard().list_json(&Caller::local(), false);
    words_of(&serde_json::from_str(&listed).unwrap(), &mut known);
    for (path, text) in DEMO.iter() {
        let page = escurel_md::parse(path, text.as_bytes(), escurel_md::Layout::Tenant);
        known.extend(page.frontmatter.keys().cloned());
        let schema = page.schema.into_iter();
        known
            .extend(schema.flat_map(|s| [s.required_frontmatter, s.optional_frontmatter].concat()));
    }
    for word in backticked(&prose(GUIDE)) {
        let is_name =
            word.contains('_') && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(
            !is_name || known.contains(&word),
            "the guide names `{word}`"
        );
    }
    let headings = GUIDE
        .lines()
        .filter_map(|l| l.strip_prefix("### ")?.split_once(": "));
    for (name, _) in headings {
        assert!(
            tool_names().contains(name),
            "the guide has a section on {name}"
        );
    }
    let table = GUIDE.split_once("| code | means | do |").unwrap().1;
    for row in table.lines().skip(2).take_while(|l| l.starts_with('|')) {
        let first = row.split('|').nth(1).unwrap();
        for code in backticked(first) {
            assert!(Code::ALL.iter().any(|c| c.name() == code), "no code {code}");
        }
        assert!(first.contains('`'), "{row} names no code");
    }
}

#[test]
fn every_link_in_the_guide_can_be_read_and_leads_somewhere() {
    let mut rest = GUIDE;
    while let Some((_, after)) = rest.split_once("[[") {
        let (inside, tail) = after.split_once("]]").unwrap();
        rest = tail;
        let link = format!("[[{inside}]]").replace("\\\"", "\"");
        let parsed = Wikilink::parse(&link).unwrap_or_else(|e| panic!("{link}: {}", e.message));
        if parsed.id.as_deref() == Some("id") {
            continue;
        }
        let arguments = serde_json::json!({"wikilink": link}).to_string();
        let found = answer("resolve", &arguments);
        assert!(!is_empty(&found), "{link}: {found}");
    }
}

fn tool_names() -> BTreeSet<String> {
    let entries = Catalog::standard().entries().iter();
    entries.map(|e| e.spec.name.to_owned()).collect()
}

/// Property names and the texts of enumerations.
fn words_of(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            words.extend(map.keys().cloned());
            map.values().for_each(|v| words_of(v, words));
        }
        Value::Array(items) => items.iter().for_each(|v| words_of(v, words)),
        Value::String(text) if !text.contains(' ') => {
            words.insert(text.clone());
        }
        _ => {}
    }
}

fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

fn backticked(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}
