//! A collection as a folder of markdown, a page per document.
//!
//! Invariant: a page's path names its document's number, so that any id comes
//! back as it was.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use escurel_search::eval::{Document, EvalError};

use super::Work;
use crate::failure::Failure;

/// Pages in one folder.
const IN_FOLDER: u32 = 1_000;

pub fn write(work: &Work<'_>, folder: &Path) -> Result<(), Failure> {
    let documents = &work.collection.documents;
    for (document, number) in documents.iter().zip(0u32..) {
        if number % IN_FOLDER == 0 {
            if !(work.watch)("writing", number as usize, documents.len()) {
                return Err(EvalError::Stopped.into());
            }
            fs::create_dir_all(folder.join(part(number)))?;
        }
        fs::write(folder.join(path(number)), page(document))?;
    }
    Ok(())
}

fn part(number: u32) -> String {
    format!("part-{:04}", number / IN_FOLDER)
}

fn path(number: u32) -> String {
    format!("{}/d{number:07}.md", part(number))
}

/// The document's number, of a page that [`write`] wrote.
pub fn number(page: &str) -> Option<u32> {
    let (_, name) = page.split_once("/d")?;
    name.strip_suffix(".md")?.parse().ok()
}

fn page(document: &Document) -> String {
    let mut page = String::with_capacity(document.text.len() + document.title.len() + 32);
    if !document.title.is_empty() {
        // Text in JSON is text in YAML.
        let title = serde_json::Value::from(document.title.as_str());
        let _ = write!(page, "---\ntitle: {title}\n---\n");
    }
    let _ = writeln!(page, "\n{}", document.text.trim());
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_its_document() {
        for n in [0, 7, 999, 1_000, 1_234_567, 12_345_678] {
            assert_eq!(number(&path(n)), Some(n), "{}", path(n));
        }
        assert_eq!(number("skills/d.md"), None);
        assert_eq!(number("other.md"), None);
    }

    #[test]
    fn titles_of_any_kind_stay_what_they_are() {
        let page = |title: &str| {
            page(&Document {
                id: "x".to_owned(),
                title: title.to_owned(),
                text: " Some text.\n".to_owned(),
            })
        };
        let quoted = page("A: \"b\" #c\n");
        assert_eq!(
            quoted,
            "---\ntitle: \"A: \\\"b\\\" #c\\n\"\n---\n\nSome text.\n"
        );
        assert_eq!(page(""), "\nSome text.\n");
    }
}
