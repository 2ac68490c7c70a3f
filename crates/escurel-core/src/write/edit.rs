//! One place of a page changed: compare, change and swap under the page's lock.

use escurel_access::Caller;
use escurel_md::{How, Misplaced, Place, edit_passage, set_frontmatter_key};
use serde_json::Value;

use super::guard_version;
use super::update::{NewText, refused};
use crate::api::{EditRequest, PageName, UpdateAnswer};
use crate::kb::Core;
use crate::{Code, Refusal, Result};

/// The place to change.
#[derive(Clone, Debug)]
pub enum Part {
    /// What a heading opens.
    Heading(String),
    /// A block by its id or anchor.
    Block(String),
    /// Text that stands there exactly once.
    Text(String),
}

/// Where the new text goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    #[default]
    Replace,
    Before,
    After,
}

/// What is done to the page.
#[derive(Clone, Debug)]
pub enum Edit {
    Passage {
        part: Part,
        position: Position,
        text: String,
    },
    /// Sets a frontmatter key, or removes it.
    Key { key: String, value: Option<Value> },
}

impl Core {
    /// Changes one place of a page and nothing else.
    ///
    /// # Errors
    /// `page_not_found`, `ambiguous`, `anchor_not_found`, `text_not_found`,
    /// `frontmatter_unparsable`, and those of [`Core::update_page`].
    pub fn edit_page(
        &self,
        caller: &Caller,
        request: &EditRequest,
        edit: &Edit,
    ) -> Result<UpdateAnswer> {
        let name = PageName {
            id: request.page_id.clone(),
            scenario: request.scenario.clone(),
        };
        let path = self.named(caller, &name)?.path.to_string();
        let _page = self.page_locks.lock(&path);
        // It may have moved before the lock was ours.
        let entry = self.named(caller, &PageName::from(&path))?;
        if let Err(refusal) = guard_version(&entry, request.base_version) {
            return refused(refusal);
        }
        let before = self.head_text(&entry)?;
        let content = match edit {
            Edit::Key { key, value } => set_key(&before, key, value.as_ref())?,
            Edit::Passage {
                part,
                position,
                text,
            } => {
                let page = escurel_md::parse(&path, &before, self.layout);
                if !page.utf8 {
                    let why = format!("{path} is not UTF-8.");
                    return refused(Refusal::new(Code::NotUtf8, why).at("page_id"));
                }
                edit_passage(&page, part.place(), position.how(), text)
                    .map_err(|misplaced| part.refusal(&path, misplaced))?
                    .into_bytes()
            }
        };
        let draft = NewText {
            content: content.into(),
            base_version: None,
            dry_run: request.dry_run,
            authors: Vec::new(),
        };
        self.update_locked(caller, &path, draft)
    }
}

pub(super) fn set_key(before: &[u8], key: &str, value: Option<&Value>) -> Result<Vec<u8>> {
    set_frontmatter_key(before, key, value).map_err(|error| {
        let code = match error.code {
            "not_utf8" => Code::NotUtf8,
            _ => Code::FrontmatterUnparsable,
        };
        Refusal::new(code, crate::errors::sentence(&error.message)).at("key")
    })
}

impl Part {
    fn place(&self) -> Place<'_> {
        match self {
            Part::Heading(name) => Place::Section(name),
            Part::Block(anchor) => Place::Block(anchor),
            Part::Text(text) => Place::Text(text),
        }
    }

    fn refusal(&self, path: &str, Misplaced::Times(times): Misplaced) -> Refusal {
        let (code, argument, what) = match self {
            Part::Heading(name) => (Code::AnchorNotFound, "heading", format!("heading `{name}`")),
            Part::Block(anchor) => (Code::AnchorNotFound, "block", format!("block `{anchor}`")),
            Part::Text(_) => (Code::TextNotFound, "find", "such text".to_owned()),
        };
        let why = match times {
            0 => format!("{path} has no {what}."),
            _ => format!("{path} has {times} times {what}, so it is unclear which is meant."),
        };
        Refusal::new(code, why).at(argument)
    }
}

impl Position {
    fn how(self) -> How {
        match self {
            Position::Replace => How::Replace,
            Position::Before => How::Before,
            Position::After => How::After,
        }
    }
}
