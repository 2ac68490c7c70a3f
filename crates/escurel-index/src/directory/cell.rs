//! A frontmatter value as filters see it, and how two of them compare.

use escurel_md::{When, nfc};
use serde_json::Value;

use crate::Facts;

/// One value. Text that is an instant or a date carries it, parsed once.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) enum Cell {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Box<str>, Option<When>),
    List(Box<[Cell]>),
    /// Nested mappings cannot be compared.
    Object,
}

pub(crate) const NUMBER: u8 = 1;
pub(crate) const TEXT: u8 = 2;
pub(crate) const BOOL: u8 = 4;
pub(crate) const OBJECT: u8 = 8;

/// Keys whose values are names, whatever they look like.
fn is_name_key(key: &str) -> bool {
    matches!(
        key,
        "id" | "skill"
            | "type"
            | "title"
            | "aliases"
            | "tags"
            | "layer"
            | "scenario"
            | "description"
    )
}

impl Cell {
    pub fn of(key: &str, value: &Value) -> Cell {
        match value {
            Value::Null => Cell::Null,
            Value::Bool(b) => Cell::Bool(*b),
            Value::Number(n) => match n.as_i64() {
                Some(int) => Cell::Int(int),
                None => Cell::Float(n.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(s) => Cell::text(key, s),
            Value::Array(list) => Cell::List(list.iter().map(|v| Cell::of(key, v)).collect()),
            Value::Object(_) => Cell::Object,
        }
    }

    pub fn text(key: &str, text: &str) -> Cell {
        let when = if is_name_key(key) {
            None
        } else {
            When::parse(text)
        };
        Cell::Text(nfc(text).into_owned().into_boxed_str(), when)
    }

    /// Which kinds of values are in it; none for null.
    pub fn kinds(&self) -> u8 {
        match self {
            Cell::Null => 0,
            Cell::Bool(_) => BOOL,
            Cell::Int(_) | Cell::Float(_) => NUMBER,
            Cell::Text(..) => TEXT,
            Cell::List(list) => list.iter().fold(0, |all, c| all | c.kinds()),
            Cell::Object => OBJECT,
        }
    }

    pub fn fingerprint(&self) -> u64 {
        let mix = |tag: u64, value: u64| {
            rapidhash::v3::rapidhash_v3(&[tag.to_le_bytes(), value.to_le_bytes()].concat())
        };
        match self {
            Cell::Null => 1,
            Cell::Bool(b) => mix(2, u64::from(*b)),
            Cell::Int(i) => mix(3, i.cast_unsigned()),
            Cell::Float(f) => mix(4, f.to_bits()),
            Cell::Text(t, _) => mix(5, super::sharded::hash(t)),
            Cell::List(list) => list.iter().fold(6, |all, c| mix(all, c.fingerprint())),
            Cell::Object => 7,
        }
    }

    /// Scalar against scalar operand. A day contains its instants.
    pub fn equals(&self, operand: &Cell) -> bool {
        match (self, operand) {
            (Cell::Text(_, Some(value)), Cell::Text(_, Some(asked))) => {
                asked.first <= value.first && value.last <= asked.last
            }
            (Cell::Text(value, _), Cell::Text(asked, _)) => value == asked,
            (Cell::Bool(value), Cell::Bool(asked)) => value == asked,
            (Cell::Null, Cell::Null) => true,
            _ => self
                .number_order(operand)
                .is_some_and(std::cmp::Ordering::is_eq),
        }
    }

    fn number_order(&self, operand: &Cell) -> Option<std::cmp::Ordering> {
        match (self, operand) {
            (Cell::Int(a), Cell::Int(b)) => Some(a.cmp(b)),
            (Cell::Int(a), Cell::Float(b)) => (*a as f64).partial_cmp(b),
            (Cell::Float(a), Cell::Int(b)) => a.partial_cmp(&(*b as f64)),
            (Cell::Float(a), Cell::Float(b)) => a.partial_cmp(b),
            _ => None,
        }
    }

    /// Whether the value lies wholly after the operand.
    pub fn is_after(&self, operand: &Cell) -> bool {
        match (self, operand) {
            (Cell::Text(_, Some(value)), Cell::Text(_, Some(asked))) => value.first > asked.last,
            (Cell::Text(_, None), Cell::Text(_, Some(_))) => false,
            (Cell::Text(value, _), Cell::Text(asked, None)) => value > asked,
            _ => self
                .number_order(operand)
                .is_some_and(std::cmp::Ordering::is_gt),
        }
    }

    /// Whether the value lies wholly before the operand.
    pub fn is_before(&self, operand: &Cell) -> bool {
        match (self, operand) {
            (Cell::Text(_, Some(value)), Cell::Text(_, Some(asked))) => value.last < asked.first,
            (Cell::Text(_, None), Cell::Text(_, Some(_))) => false,
            (Cell::Text(value, _), Cell::Text(asked, None)) => value < asked,
            _ => self
                .number_order(operand)
                .is_some_and(std::cmp::Ordering::is_lt),
        }
    }

    /// Whether there is an order between the two at all.
    pub fn is_comparable(&self, operand: &Cell) -> bool {
        match (self, operand) {
            (Cell::Text(_, value), Cell::Text(_, asked)) => value.is_some() || asked.is_none(),
            _ => self.number_order(operand).is_some(),
        }
    }
}

/// What a page holds under the keys that columns keep. `id` and `title` have
/// a value per page and are read from the pages.
pub(crate) fn cells_of(facts: &Facts) -> Vec<(String, Cell)> {
    let mut cells: Vec<_> = facts
        .frontmatter_map()
        .iter()
        .filter(|(key, _)| !is_effective(key))
        .map(|(key, value)| (key.clone(), Cell::of(key, value)))
        .collect();
    cells.push(("skill".into(), Cell::text("skill", &facts.skill)));
    cells.push(("type".into(), Cell::text("type", facts.page_type.as_str())));
    if !facts.tags.is_empty() {
        cells.push((
            "tags".into(),
            Cell::List(facts.tags.iter().map(|t| Cell::text("tags", t)).collect()),
        ));
    }
    cells
}

/// Keys that hold what the page is, also where the header leaves it out.
pub(crate) fn is_effective(key: &str) -> bool {
    matches!(key, "id" | "title" | "skill" | "type" | "tags")
}

/// The value of one page under one key; `Null` when absent.
pub(crate) fn cell_of(facts: &Facts, key: &str) -> Cell {
    match key {
        "id" => Cell::text(key, &facts.id),
        "title" => Cell::text(key, &facts.title),
        "skill" => Cell::text(key, &facts.skill),
        "type" => Cell::text(key, facts.page_type.as_str()),
        "tags" if facts.tags.is_empty() => Cell::Null,
        "tags" => Cell::List(facts.tags.iter().map(|t| Cell::text(key, t)).collect()),
        _ => facts
            .frontmatter_value(key)
            .map_or(Cell::Null, |v| Cell::of(key, &v)),
    }
}
