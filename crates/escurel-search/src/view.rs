//! The published state that readers hold: the files' searcher and the versions
//! in memory, each with the versions that a later layer replaces. Immutable;
//! a write publishes the next one.

use std::sync::Arc;

use hashbrown::HashSet;
use tantivy::columnar::ColumnValues;
use tantivy::directory::RamDirectory;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Index, ReloadPolicy, Searcher, SegmentReader, TERMINATED, Term};

use crate::api::Doc;
use crate::schema::{Fields, Key, PAGE, SEQ, UNIT};

/// Memory for the term table of a layer in memory; it grows on demand.
const DELTA_BUDGET: usize = 1 << 20;

/// One searchable part of the index.
#[derive(Clone)]
pub(crate) struct Layer {
    pub searcher: Searcher,
    pub columns: Arc<[Columns]>,
    /// Versions that a later layer holds again.
    pub masked: Arc<HashSet<Key>>,
}

/// The identity of each entry of a segment.
pub(crate) struct Columns {
    page: Arc<dyn ColumnValues<u64>>,
    seq: Arc<dyn ColumnValues<u64>>,
    unit: Arc<dyn ColumnValues<u64>>,
}

impl Columns {
    fn open(segment: &SegmentReader) -> tantivy::Result<Self> {
        let column = |name| segment.fast_fields().column_first_or_default::<u64>(name);
        let columns = Columns {
            page: column(PAGE)?,
            seq: column(SEQ)?,
            unit: column(UNIT)?,
        };
        for column in [&columns.page, &columns.seq, &columns.unit] {
            if column.num_vals() != segment.max_doc() {
                let what = "a column does not cover its segment".to_string();
                return Err(tantivy::TantivyError::InternalError(what));
            }
        }
        Ok(columns)
    }

    pub fn key(&self, doc: DocId) -> Key {
        (self.page.get_val(doc) as u32, self.seq.get_val(doc))
    }

    pub fn unit(&self, doc: DocId) -> u32 {
        self.unit.get_val(doc) as u32
    }
}

impl Layer {
    pub fn new(searcher: Searcher) -> tantivy::Result<Self> {
        let columns: tantivy::Result<Vec<Columns>> = searcher
            .segment_readers()
            .iter()
            .map(Columns::open)
            .collect();
        Ok(Layer {
            searcher,
            columns: columns?.into(),
            masked: Arc::default(),
        })
    }

    /// The versions of this layer that no later layer replaces.
    pub fn keys(&self) -> HashSet<Key> {
        let mut keys = HashSet::new();
        for (segment, columns) in self
            .searcher
            .segment_readers()
            .iter()
            .zip(self.columns.iter())
        {
            keys.extend(segment.doc_ids_alive().map(|doc| columns.key(doc)));
        }
        keys.retain(|key| !self.masked.contains(key));
        keys
    }

    /// The versions of one page in this layer.
    pub fn versions(&self, page: &Term) -> tantivy::Result<HashSet<Key>> {
        let mut keys = HashSet::new();
        for (segment, columns) in self
            .searcher
            .segment_readers()
            .iter()
            .zip(self.columns.iter())
        {
            let index = segment.inverted_index(page.field())?;
            let Some(mut docs) = index.read_postings(page, IndexRecordOption::Basic)? else {
                continue;
            };
            while docs.doc() != TERMINATED {
                if !segment.is_deleted(docs.doc()) {
                    keys.insert(columns.key(docs.doc()));
                }
                docs.advance();
            }
        }
        Ok(keys)
    }

    pub fn mask(&mut self, keys: impl Iterator<Item = Key>) {
        let mut keys = keys.peekable();
        if keys.peek().is_some() {
            Arc::make_mut(&mut self.masked).extend(keys);
        }
    }
}

/// Some versions in memory, with their source for the fold into the files.
#[derive(Clone)]
pub(crate) struct Delta {
    pub docs: Arc<[Arc<Doc>]>,
    pub layer: Layer,
}

impl Delta {
    pub fn build(fields: &Fields, docs: Vec<Arc<Doc>>) -> tantivy::Result<Self> {
        let builder = Index::builder().schema(fields.schema.clone());
        let mut writer = builder
            .tokenizers(fields.tokenizers.clone())
            .single_segment_index_writer(RamDirectory::default(), DELTA_BUDGET)?;
        for doc in &docs {
            for document in fields.documents(doc) {
                writer.add_document(document)?;
            }
        }
        let index: Index = writer.finalize()?;
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()?;
        Ok(Delta {
            docs: docs.into(),
            layer: Layer::new(reader.searcher())?,
        })
    }

    /// The versions that no later layer replaces.
    pub fn live(&self) -> impl Iterator<Item = &Arc<Doc>> {
        self.docs
            .iter()
            .filter(|doc| !self.layer.masked.contains(&(doc.page, doc.seq)))
    }
}

/// What one snapshot sees.
pub(crate) struct View {
    pub main: Layer,
    pub deltas: Vec<Delta>,
    pub totals: Totals,
}

/// Collection statistics over all layers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    pub docs: u64,
    tokens: Vec<(Field, u64)>,
}

impl Totals {
    pub fn tokens(&self, field: Field) -> u64 {
        self.tokens
            .iter()
            .find(|(name, _)| *name == field)
            .map_or(0, |(_, tokens)| *tokens)
    }
}

impl View {
    pub fn new(fields: &Fields, main: Layer, deltas: Vec<Delta>) -> tantivy::Result<Self> {
        let mut view = View {
            main,
            deltas,
            totals: Totals::default(),
        };
        view.totals = view.count(fields)?;
        Ok(view)
    }

    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.main).chain(self.deltas.iter().map(|delta| &delta.layer))
    }

    fn count(&self, fields: &Fields) -> tantivy::Result<Totals> {
        let mut totals = Totals::default();
        let names = [fields.body, fields.title, fields.names, fields.fields];
        totals.tokens = names.iter().map(|field| (*field, 0)).collect();
        for segment in self
            .layers()
            .flat_map(|layer| layer.searcher.segment_readers())
        {
            totals.docs += u64::from(segment.max_doc());
            for (field, tokens) in &mut totals.tokens {
                *tokens += segment.inverted_index(*field)?.total_num_tokens();
            }
        }
        Ok(totals)
    }
}
