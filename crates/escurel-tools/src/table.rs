//! An answer as a table for people: plain data, drawn by whoever shows it.

use serde_json::Value;

use crate::catalog::Catalog;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub headers: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Text below the table.
    pub footer: Option<String>,
}

/// The answer of tool `name` for people; an unknown name gives the JSON.
pub fn render_table(name: &str, answer: &Value) -> Table {
    match Catalog::standard().find(name) {
        Some(entry) => (entry.spec.cli.table)(answer),
        None => Table {
            footer: Some(answer.to_string()),
            ..Table::default()
        },
    }
}

impl Table {
    /// One row per element of the list at `rows`; a column is a header and a pointer into the element.
    pub fn of(answer: &Value, rows: &str, columns: &[(&str, &str)]) -> Table {
        let list = answer.pointer(rows).and_then(Value::as_array);
        let row = |item: &Value| columns.iter().map(|(_, p)| cell(item.pointer(p))).collect();
        Table {
            headers: columns.iter().map(|(h, _)| (*h).to_owned()).collect(),
            rows: list.map_or_else(Vec::new, |l| l.iter().map(row).collect()),
            footer: None,
        }
    }

    /// One row for the answer itself.
    pub fn one(answer: &Value, columns: &[(&str, &str)]) -> Table {
        Table {
            headers: columns.iter().map(|(h, _)| (*h).to_owned()).collect(),
            rows: vec![
                columns
                    .iter()
                    .map(|(_, p)| cell(answer.pointer(p)))
                    .collect(),
            ],
            footer: None,
        }
    }

    pub fn footer(mut self, text: impl Into<String>) -> Table {
        self.footer = Some(text.into());
        self
    }

    /// A footer that counts the rows.
    pub fn counted(self, one: &str, many: &str) -> Table {
        let text = match self.rows.len() {
            0 => format!("no {many}"),
            1 => format!("1 {one}"),
            n => format!("{n} {many}"),
        };
        self.footer(text)
    }

    /// Appends a line to the footer.
    pub fn note(mut self, line: impl AsRef<str>) -> Table {
        match &mut self.footer {
            Some(text) => {
                text.push('\n');
                text.push_str(line.as_ref());
            }
            None => self.footer = Some(line.as_ref().to_owned()),
        }
        self
    }
}

/// A value in a cell: text as it is, lists joined, nothing for null.
pub fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(s)) => one_line(s),
        Some(Value::Array(items)) => items
            .iter()
            .map(|v| cell(Some(v)))
            .collect::<Vec<_>>()
            .join(", "),
        Some(other) => other.to_string(),
    }
}

fn one_line(s: &str) -> String {
    s.split_whitespace().collect::<Vec<_>>().join(" ")
}
