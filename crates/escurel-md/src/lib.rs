//! What a page is: identity, frontmatter, headings, blocks, links, skill
//! schema, findings, and edits that leave every other byte alone.
//!
//! Refuses nothing: every byte string is a page, and what is wrong with it
//! becomes an [`Issue`]. No IO, no clock, no SQL.
//!
//! Invariant: parsing is total and linear in its input, and every span lies
//! inside the text on character boundaries.

mod body;
mod edit;
mod fence;
mod inline;
mod issue;
mod lines;
mod names;
mod page;
mod parse;
mod path;
#[cfg(feature = "planted-panic")]
#[doc(hidden)]
pub mod planted;
mod schema;
mod units;
mod validate;
mod when;
mod wikilink;
mod yaml;

pub use edit::{
    EditError, How, Misplaced, Place, Relinked, edit_passage, relative_path, relink,
    set_frontmatter_key,
};
pub use issue::{CODES, CodeInfo, Issue, Severity};
pub use names::{name_key, nfc, slug};
pub use page::{
    Anchored, Block, BlockKind, Heading, ItemAnchor, Layout, Link, LinkKind, Page, PageType,
};
pub use parse::parse;
pub use path::{PathError, check_page_path};
pub use schema::{
    Acl, Autonomy, Backend, BackendKind, Param, ParamKind, SkillSchema, Visibility, instance_acl,
};
pub use units::{Unit, units};
pub use validate::{Target, World, duplicate_id, validate};
pub use when::When;
pub use wikilink::{LinkError, Wikilink};
