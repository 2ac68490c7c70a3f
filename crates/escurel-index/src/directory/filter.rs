//! Frontmatter filters: checked against what exists, then asked of columns.
//!
//! Refuses keys that no page and no schema has, unknown operators, and values
//! of a type that the key never holds. Invariant: [`Directory::filter_pages`]
//! selects exactly the live pages for which [`Filter::matches`] is true.

use serde_json::{Map, Value};

use super::Directory;
use super::cell::{self, Cell, TEXT};
use crate::{Bitmap, Entry};

/// Why a filter cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FilterError {
    /// `unknown_key`, `unknown_operator` or `type_mismatch`.
    pub code: &'static str,
    pub key: String,
    /// The nearest known key or operator.
    pub nearest: Option<String>,
    pub message: String,
}

/// A checked filter. Good for any later state of the directory, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    clauses: Vec<Clause>,
}

#[derive(Clone, Debug, PartialEq)]
struct Clause {
    key: String,
    tests: Vec<Test>,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Is(Cell),
    AtLeast(Cell),
    AtMost(Cell),
    Above(Cell),
    Below(Cell),
    In(Vec<Cell>),
    Not(Vec<Cell>),
    /// The printed form of the value is this text.
    Prints(String),
}

const OPERATORS: [&str; 6] = [">=", "<=", ">", "<", "in", "not"];

impl Test {
    fn holds(&self, cell: &Cell) -> bool {
        match self {
            Test::Not(list) => !list.iter().any(|operand| any(cell, &|c| c.equals(operand))),
            Test::In(list) => list.iter().any(|operand| any(cell, &|c| c.equals(operand))),
            Test::Is(operand) => any(cell, &|c| c.equals(operand)),
            Test::AtLeast(o) => any(cell, &|c| c.is_comparable(o) && !c.is_before(o)),
            Test::AtMost(o) => any(cell, &|c| c.is_comparable(o) && !c.is_after(o)),
            Test::Above(o) => any(cell, &|c| c.is_after(o)),
            Test::Below(o) => any(cell, &|c| c.is_before(o)),
            Test::Prints(text) => any(cell, &|c| match c {
                Cell::Text(value, _) => **value == **text,
                Cell::Bool(value) => value.to_string() == *text,
                Cell::Int(value) => value.to_string() == *text,
                Cell::Float(value) => value.to_string() == *text,
                _ => false,
            }),
        }
    }

    fn operands(&self) -> &[Cell] {
        match self {
            Test::Is(o) | Test::AtLeast(o) | Test::AtMost(o) | Test::Above(o) | Test::Below(o) => {
                std::slice::from_ref(o)
            }
            Test::In(list) | Test::Not(list) => list,
            Test::Prints(_) => &[],
        }
    }
}

/// A list passes if any element does.
fn any(cell: &Cell, test: &dyn Fn(&Cell) -> bool) -> bool {
    match cell {
        Cell::List(list) => list.iter().any(|c| any(c, test)),
        scalar => test(scalar),
    }
}

impl Clause {
    fn holds(&self, cell: &Cell) -> bool {
        self.tests.iter().all(|t| t.holds(cell))
    }
}

impl Filter {
    /// One page, without columns; also good for versions that are not live.
    pub fn matches(&self, facts: &crate::Facts) -> bool {
        self.clauses
            .iter()
            .all(|c| c.holds(&cell::cell_of(facts, &c.key)))
    }

    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty()
    }

    /// `frontmatter_key = frontmatter_value`, compared as printed text.
    pub fn text_equals(key: &str, value: &str) -> Filter {
        let tests = vec![Test::Prints(escurel_md::nfc(value).into_owned())];
        Filter {
            clauses: vec![Clause {
                key: key.to_owned(),
                tests,
            }],
        }
    }
}

fn mismatch(key: &str, message: String) -> FilterError {
    FilterError {
        code: "type_mismatch",
        key: key.to_owned(),
        nearest: None,
        message,
    }
}

fn parse_clause(key: &str, value: &Value) -> Result<Clause, FilterError> {
    let tests = match value {
        Value::Object(operators) if operators.is_empty() => {
            return Err(mismatch(
                key,
                format!("the filter on `{key}` is an empty object; name an operator"),
            ));
        }
        Value::Object(operators) => operators
            .iter()
            .map(|(op, operand)| parse_test(key, op, operand))
            .collect::<Result<_, _>>()?,
        Value::Array(_) => {
            return Err(mismatch(
                key,
                format!("the filter on `{key}` is a list; write {{\"in\": […]}}"),
            ));
        }
        scalar => vec![Test::Is(Cell::of(key, scalar))],
    };
    Ok(Clause {
        key: key.to_owned(),
        tests,
    })
}

fn parse_test(key: &str, op: &str, operand: &Value) -> Result<Test, FilterError> {
    let scalar = |v: &Value| match v {
        Value::Object(_) | Value::Array(_) => Err(mismatch(
            key,
            format!("`{op}` on `{key}` takes a plain value"),
        )),
        v => Ok(Cell::of(key, v)),
    };
    let list = |v: &Value| match v {
        Value::Array(items) => items.iter().map(scalar).collect::<Result<Vec<_>, _>>(),
        v => Ok(vec![scalar(v)?]),
    };
    let ordered = |v: &Value| match scalar(v)? {
        Cell::Null | Cell::Bool(_) => Err(mismatch(
            key,
            format!("`{op}` on `{key}` takes a number, text or instant"),
        )),
        cell => Ok(cell),
    };
    match op {
        ">=" => Ok(Test::AtLeast(ordered(operand)?)),
        "<=" => Ok(Test::AtMost(ordered(operand)?)),
        ">" => Ok(Test::Above(ordered(operand)?)),
        "<" => Ok(Test::Below(ordered(operand)?)),
        "in" if !operand.is_array() => Err(mismatch(key, format!("`in` on `{key}` takes a list"))),
        "in" => Ok(Test::In(list(operand)?)),
        "not" => Ok(Test::Not(list(operand)?)),
        _ => {
            let nearest = nearest(op, OPERATORS.into_iter())
                .unwrap_or(">=")
                .to_owned();
            let message = format!(
                "unknown operator `{op}` on `{key}`; known: {}",
                OPERATORS.join(" ")
            );
            Err(FilterError {
                code: "unknown_operator",
                key: key.to_owned(),
                nearest: Some(nearest),
                message,
            })
        }
    }
}

fn nearest<'k>(asked: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let distance = |k: &str| strsim::damerau_levenshtein(&asked.to_lowercase(), &k.to_lowercase());
    known.min_by_key(|k| (distance(k), k.len()))
}

impl Directory {
    pub fn compile_filter(&self, filter: &Map<String, Value>) -> Result<Filter, FilterError> {
        self.compile_filter_for(filter, &|_| true)
    }

    /// As [`Directory::compile_filter`], for a caller who sees only some
    /// pages: keys and types that only other pages have are unknown.
    pub fn compile_filter_for(
        &self,
        filter: &Map<String, Value>,
        visible: &dyn Fn(&Entry) -> bool,
    ) -> Result<Filter, FilterError> {
        let mut clauses = Vec::with_capacity(filter.len());
        for (key, value) in filter {
            self.check_key(key, visible)?;
            let clause = parse_clause(key, value)?;
            self.check_kinds(&clause, visible)?;
            clauses.push(clause);
        }
        Ok(Filter { clauses })
    }

    /// `text_equals` for a key that must exist.
    pub fn compile_text_filter(
        &self,
        key: &str,
        value: &str,
        visible: &dyn Fn(&Entry) -> bool,
    ) -> Result<Filter, FilterError> {
        self.check_key(key, visible)?;
        Ok(Filter::text_equals(key, value))
    }

    fn check_key(&self, key: &str, visible: &dyn Fn(&Entry) -> bool) -> Result<(), FilterError> {
        if cell::is_effective(key) || self.has_key(key, visible) {
            return Ok(());
        }
        let schema_keys = self.schema_keys(visible);
        if schema_keys.iter().any(|k| k == key) {
            return Ok(());
        }
        let columns = self.columns().iter().map(|(k, _)| &**k);
        let mut known: Vec<&str> = columns.filter(|k| self.has_key(k, visible)).collect();
        known.extend(schema_keys.iter().map(String::as_str));
        known.extend(["id", "title", "skill", "type", "tags"]);
        known.sort_unstable();
        let nearest = nearest(key, known.into_iter()).map(str::to_owned);
        let hint = nearest
            .as_ref()
            .map_or(String::new(), |n| format!("; nearest: `{n}`"));
        let message = format!("no page and no skill has the frontmatter key `{key}`{hint}");
        Err(FilterError {
            code: "unknown_key",
            key: key.to_owned(),
            nearest,
            message,
        })
    }

    fn has_key(&self, key: &str, visible: &dyn Fn(&Entry) -> bool) -> bool {
        let Some(column) = self.columns().get(key) else {
            return false;
        };
        column
            .pages()
            .filter_map(|no| self.get(no))
            .any(|e| visible(e))
    }

    fn schema_keys(&self, visible: &dyn Fn(&Entry) -> bool) -> Vec<String> {
        let pages = self.skill_pages().filter(|e| visible(e));
        let schemas = pages.filter_map(|e| e.facts.schema.as_deref());
        schemas
            .flat_map(|s| {
                s.required_frontmatter
                    .iter()
                    .chain(&s.optional_frontmatter)
                    .cloned()
            })
            .collect()
    }

    fn check_kinds(
        &self,
        clause: &Clause,
        visible: &dyn Fn(&Entry) -> bool,
    ) -> Result<(), FilterError> {
        let wanted: Vec<u8> = clause
            .tests
            .iter()
            .flat_map(Test::operands)
            .map(Cell::kinds)
            .filter(|k| *k != 0)
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let held = self.held_kinds(
            &clause.key,
            wanted.iter().fold(0, |all, k| all | k),
            visible,
        );
        if held == 0 || wanted.iter().all(|k| held & k != 0) {
            return Ok(());
        }
        let message = format!(
            "`{}` holds {}, which the given value is not",
            clause.key,
            kind_names(held)
        );
        Err(mismatch(&clause.key, message))
    }

    /// Kinds that visible pages hold under `key`; stops once all `wanted` are seen.
    fn held_kinds(&self, key: &str, wanted: u8, visible: &dyn Fn(&Entry) -> bool) -> u8 {
        if cell::is_effective(key) {
            return TEXT;
        }
        let Some(column) = self.columns().get(key) else {
            return 0;
        };
        let mut held = 0;
        for entry in column.pages().filter_map(|no| self.get(no)) {
            let Some(cell) = column.cell(entry.no) else {
                continue;
            };
            if cell.kinds() & !held != 0 && visible(entry) {
                held |= cell.kinds();
                if held & wanted == wanted {
                    break;
                }
            }
        }
        held
    }

    pub fn filter_pages(&self, f: &Filter) -> Bitmap {
        let mut pages = self.live_pages();
        for clause in &f.clauses {
            pages.and(&self.clause_pages(clause));
        }
        pages
    }

    fn clause_pages(&self, clause: &Clause) -> Bitmap {
        if matches!(clause.key.as_str(), "id" | "title") {
            let hit =
                |e: &&std::sync::Arc<Entry>| clause.holds(&cell::cell_of(&e.facts, &clause.key));
            return self.iter().filter(hit).map(|e| e.no).collect();
        }
        let absent = clause.holds(&Cell::Null);
        match self.columns().get(&clause.key) {
            Some(column) => column.select(self.capacity(), absent, |c| clause.holds(c)),
            None if absent => self.live_pages(),
            None => Bitmap::new(),
        }
    }
}

fn kind_names(kinds: u8) -> String {
    let names = [
        (cell::NUMBER, "numbers"),
        (TEXT, "text"),
        (cell::BOOL, "true or false"),
        (cell::OBJECT, "mappings"),
    ];
    let held: Vec<&str> = names
        .iter()
        .filter(|(k, _)| kinds & k != 0)
        .map(|(_, n)| *n)
        .collect();
    held.join(" and ")
}
