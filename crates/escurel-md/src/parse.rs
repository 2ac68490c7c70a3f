//! From bytes to a page.

use serde_json::Map;

use crate::page::{Layout, Page, PageType};

pub fn parse(path: &str, bytes: &[u8], layout: Layout) -> Page {
    let _ = layout;
    let text = String::from_utf8_lossy(bytes).into_owned();
    Page {
        page_type: PageType::Instance, skill: "note".into(), id: path.into(), title: path.into(),
        aliases: vec![], tags: vec![], at: None, description: None, layer: None, scenario: None,
        hidden: false, identity_clear: true, frontmatter: Map::new(), body: 0..text.len(),
        utf8: true, text, body_line: 1, headings: vec![], blocks: vec![], item_anchors: vec![],
        links: vec![], schema: None, issues: vec![],
    }
}
