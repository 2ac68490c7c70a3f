//! What the index keeps of one parsed version of a page.
//!
//! Built once and shared by the directory and DuckDB. Holds no text of the
//! body. Invariant: equal pages give equal facts.

use std::fmt;
use std::sync::Arc;

use escurel_md::{
    BlockKind, LinkKind, Page, PageType, Severity, SkillSchema, When, Wikilink, name_key, slug,
};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Texts;
use crate::intern::intern;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub page_type: PageType,
    #[serde(with = "shared")]
    pub skill: Arc<str>,
    pub id: Box<str>,
    pub title: Box<str>,
    pub aliases: Texts,
    pub tags: Texts,
    pub description: Option<Box<str>>,
    pub at: Option<When>,
    #[serde(with = "shared_option")]
    pub layer: Option<Arc<str>>,
    #[serde(with = "shared_option")]
    pub scenario: Option<Arc<str>>,
    pub hidden: bool,
    pub identity_clear: bool,
    pub utf8: bool,
    /// JSON text of the frontmatter, order kept.
    pub frontmatter: Box<str>,
    pub links: Box<[LinkFact]>,
    /// Anchors of headings, explicit block ids. Anchors made from a block's
    /// content are not here.
    pub anchors: Texts,
    #[serde(with = "as_json")]
    pub schema: Option<Arc<SkillSchema>>,
    /// Findings at parse time, all and those that are errors.
    pub issues: u16,
    pub errors: u16,
}

impl Facts {
    pub fn of(page: &Page) -> Facts {
        let errors = page
            .issues
            .iter()
            .filter(|i| i.severity == Severity::Error)
            .count();
        Facts {
            page_type: page.page_type,
            skill: intern(&page.skill),
            id: page.id.as_str().into(),
            title: page.title.as_str().into(),
            aliases: page.aliases.iter().collect(),
            tags: page.tags.iter().collect(),
            description: page.description.as_deref().map(Into::into),
            at: page.at,
            layer: page.layer.as_deref().map(intern),
            scenario: page.scenario.as_deref().map(intern),
            hidden: page.hidden,
            identity_clear: page.identity_clear,
            utf8: page.utf8,
            frontmatter: serde_json::to_string(&page.frontmatter)
                .unwrap_or_else(|_| "{}".into())
                .into(),
            links: page.links.iter().map(LinkFact::of).collect(),
            anchors: anchors_of(page),
            schema: page.schema.clone().map(Arc::new),
            issues: u16::try_from(page.issues.len()).unwrap_or(u16::MAX),
            errors: u16::try_from(errors).unwrap_or(u16::MAX),
        }
    }

    pub fn frontmatter_map(&self) -> Map<String, Value> {
        serde_json::from_str(&self.frontmatter).unwrap_or_default()
    }

    /// One key of the frontmatter; what stands after it is not read.
    pub fn frontmatter_value(&self, key: &str) -> Option<Value> {
        json_value(&self.frontmatter, key)
    }

    /// Whether a heading or explicit block id answers to `anchor`. `true` is
    /// certain; `false` about an anchor of the form `b-…` says nothing, since
    /// anchors made from content are not kept.
    pub fn has_anchor(&self, anchor: &str) -> bool {
        let anchor = anchor.trim();
        if let Some(id) = anchor.strip_prefix('^') {
            return self.anchors.contains(id);
        }
        let has = |a: &str| {
            let (key, slug) = (name_key(a.trim()), slug(a));
            self.anchors
                .iter()
                .any(|known| known == a || known == key || (known == slug && !slug.is_empty()))
        };
        has(anchor) || (anchor.contains('#') && anchor.split('#').take(16).all(has))
    }

    /// `layer: base@pack@version`: comes from a pack and yields to pages of
    /// the tenant.
    pub fn is_base_layer(&self) -> bool {
        self.layer
            .as_deref()
            .is_some_and(|l| l == "base" || l.starts_with("base@"))
    }
}

/// The value of `key` in the JSON object `object`; what stands after it is not read.
pub fn json_value(object: &str, key: &str) -> Option<Value> {
    let mut found = None;
    let visitor = UpTo {
        key,
        found: &mut found,
    };
    // Stopping early looks like an error to the parser.
    let _ = serde_json::Deserializer::from_str(object).deserialize_map(visitor);
    found
}

struct UpTo<'a> {
    key: &'a str,
    found: &'a mut Option<Value>,
}

impl<'de> Visitor<'de> for UpTo<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(is_it) = map.next_key_seed(Is(self.key))? {
            if is_it {
                *self.found = Some(map.next_value()?);
                return Err(A::Error::custom("found"));
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Whether the text that is read is this one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<bool, D::Error> {
        text.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(text == self.0)
    }
}

fn anchors_of(page: &Page) -> Texts {
    let headings = page.headings.iter().flat_map(|h| {
        // A heading of punctuation only has no slug; its text addresses it.
        let text = slug(&h.text).is_empty().then(|| name_key(&h.text));
        [Some(h.anchor.clone()), text].into_iter().flatten()
    });
    let blocks = page
        .blocks
        .iter()
        .filter(|b| b.kind != BlockKind::Heading && !is_content_anchor(&b.anchor));
    let items = page.item_anchors.iter().map(|a| a.anchor.clone());
    headings
        .chain(blocks.map(|b| b.anchor.clone()))
        .chain(items)
        .collect()
}

/// `b-` and eight hex digits, perhaps numbered.
fn is_content_anchor(anchor: &str) -> bool {
    let Some(rest) = anchor.strip_prefix("b-") else {
        return false;
    };
    let (hash, number) = rest.split_once('-').unwrap_or((rest, "0"));
    hash.len() == 8
        && hash.bytes().all(|b| b.is_ascii_hexdigit())
        && !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
}

/// One link of a page: its parts in one allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkFact {
    pub kind: LinkKind,
    /// Which of the six parts are present, one bit each.
    present: u8,
    pub line: u32,
    /// The frontmatter key; none in the body.
    #[serde(with = "shared_option")]
    pub relation: Option<Arc<str>>,
    text: Box<str>,
    /// Where each part ends in `text`.
    ends: [u32; 6],
}

impl LinkFact {
    pub fn of(link: &escurel_md::Link) -> LinkFact {
        let t = &link.target;
        let parts = [
            &t.skill,
            &t.id,
            &t.anchor,
            &t.version,
            &t.alias,
            &link.src_anchor,
        ];
        let mut text =
            String::with_capacity(parts.iter().flat_map(|p| p.as_ref()).map(String::len).sum());
        let (mut present, mut ends) = (0, [0; 6]);
        for (i, part) in parts.iter().enumerate() {
            if let Some(part) = part {
                present |= 1 << i;
                text.push_str(part);
            }
            ends[i] = u32::try_from(text.len()).unwrap_or(u32::MAX);
        }
        let relation = link.relation.as_deref().map(intern);
        LinkFact {
            kind: link.kind,
            present,
            line: link.line,
            relation,
            text: text.into(),
            ends,
        }
    }

    fn part(&self, i: usize) -> Option<&str> {
        if self.present >> i & 1 == 0 {
            return None;
        }
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        Some(
            self.text
                .get(start as usize..self.ends[i] as usize)
                .unwrap_or(""),
        )
    }

    pub fn skill(&self) -> Option<&str> {
        self.part(0)
    }

    /// For markdown links and assets the path as written, decoded.
    pub fn id(&self) -> Option<&str> {
        self.part(1)
    }

    pub fn anchor(&self) -> Option<&str> {
        self.part(2)
    }

    pub fn version(&self) -> Option<&str> {
        self.part(3)
    }

    pub fn alias(&self) -> Option<&str> {
        self.part(4)
    }

    /// Anchor of the block that the link stands in.
    pub fn src_anchor(&self) -> Option<&str> {
        self.part(5)
    }

    pub fn wikilink(&self) -> Wikilink {
        let own = |part: Option<&str>| part.map(str::to_owned);
        Wikilink {
            skill: own(self.skill()),
            id: own(self.id()),
            anchor: own(self.anchor()),
            version: own(self.version()),
            alias: own(self.alias()),
        }
    }
}

mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        Ok(crate::intern::intern(<&str>::deserialize(from)?))
    }
}

mod shared_option {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(text: &Option<Arc<str>>, to: S) -> Result<S::Ok, S::Error> {
        text.as_deref().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<str>>, D::Error> {
        Ok(<Option<&str>>::deserialize(from)?.map(crate::intern::intern))
    }
}

/// Schemas hold free JSON, which a format without type marks cannot read back.
mod as_json {
    use std::sync::Arc;

    use escurel_md::SkillSchema;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub fn serialize<S: Serializer>(
        schema: &Option<Arc<SkillSchema>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let text = schema
            .as_deref()
            .map(serde_json::to_string)
            .transpose()
            .map_err(ser::Error::custom)?;
        text.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Arc<SkillSchema>>, D::Error> {
        let text = <Option<&str>>::deserialize(from)?;
        text.map(serde_json::from_str)
            .transpose()
            .map_err(de::Error::custom)
    }
}
