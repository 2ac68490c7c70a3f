//! The published state that readers hold: the files' searcher and the versions
//! in memory, each with the versions that a later layer replaces. Immutable;
//! a write publishes the next one.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use tantivy::columnar::ColumnValues;
use tantivy::directory::RamDirectory;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::store::Compressor;
use tantivy::{
    DocId, DocSet, Index, IndexSettings, ReloadPolicy, Searcher, SegmentReader, TERMINATED, Term,
};

use crate::api::Doc;
use crate::audience::Hearings;
use crate::census::Census;
use crate::schema::{Fields, Key, PAGE, SEQ, TEXTS, UNIT};

/// Memory for the term table of a layer in memory; it grows on demand.
const DELTA_BUDGET: usize = 1 << 20;

/// One searchable part of the index.
#[derive(Clone)]
pub(crate) struct Layer {
    pub searcher: Searcher,
    pub columns: Arc<[Columns]>,
    census: Vec<Census>,
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

/// Per page, the sequence below which versions do not count any more.
pub(crate) type Forgotten = HashMap<u32, u64>;

/// Pages are looked up one by one while they are fewer than this share of a
/// segment's entries, else all entries are looked at.
const LOOKUP_COST: usize = 64;

impl Layer {
    /// `before` is the layer that this one takes the place of.
    pub fn new(
        fields: &Fields,
        searcher: Searcher,
        before: Option<&Layer>,
    ) -> tantivy::Result<Self> {
        let columns: tantivy::Result<Vec<Columns>> = searcher
            .segment_readers()
            .iter()
            .map(Columns::open)
            .collect();
        let known = |id| before.and_then(|b| b.census.iter().find(|c| c.segment() == id));
        let census: tantivy::Result<Vec<Census>> = searcher
            .segment_readers()
            .iter()
            .map(|segment| Census::new(fields, segment, known(segment.segment_id())))
            .collect();
        let (columns, census) = (columns?.into(), census?);
        Ok(Layer {
            searcher,
            columns,
            census,
            masked: Arc::default(),
        })
    }

    /// Each segment with the identities of its entries.
    pub fn segments(&self) -> impl Iterator<Item = (&SegmentReader, &Columns)> {
        self.searcher
            .segment_readers()
            .iter()
            .zip(self.columns.iter())
    }

    /// What an entry of a segment is, if it counts.
    pub fn living(&self, segment: usize, doc: DocId) -> Option<Key> {
        let counts = self.census.get(segment)?.counts(doc);
        counts.then(|| self.columns[segment].key(doc))
    }

    /// The versions of this layer that no later layer replaces.
    pub fn keys(&self) -> HashSet<Key> {
        let mut keys = HashSet::new();
        for (segment, columns) in self.segments() {
            keys.extend(segment.doc_ids_alive().map(|doc| columns.key(doc)));
        }
        keys.retain(|key| !self.masked.contains(key));
        keys
    }

    /// The versions of one page in this layer.
    pub fn versions(&self, page: &Term) -> tantivy::Result<HashSet<Key>> {
        let mut keys = HashSet::new();
        for (segment, columns) in self.segments() {
            let docs = docs_with(segment, page)?.into_iter();
            keys.extend(
                docs.filter(|doc| !segment.is_deleted(*doc))
                    .map(|doc| columns.key(doc)),
            );
        }
        Ok(keys)
    }

    /// A later layer holds these versions again.
    pub fn mask(
        &mut self,
        fields: &Fields,
        keys: impl Iterator<Item = Key>,
    ) -> tantivy::Result<()> {
        let keys: Vec<Key> = keys.filter(|key| !self.masked.contains(key)).collect();
        if keys.is_empty() {
            return Ok(());
        }
        for (segment, census) in self.searcher.segment_readers().iter().zip(&mut self.census) {
            let mut docs = Vec::new();
            for key in &keys {
                docs.extend(docs_with(segment, &fields.key_term(*key))?);
            }
            census.remove(fields, segment, docs.into_iter())?;
        }
        Arc::make_mut(&mut self.masked).extend(keys);
        Ok(())
    }

    /// Forgotten versions stay where they are and count no longer.
    pub fn forget(&mut self, fields: &Fields, forgotten: &Forgotten) -> tantivy::Result<()> {
        if forgotten.is_empty() {
            return Ok(());
        }
        let segments = self
            .searcher
            .segment_readers()
            .iter()
            .zip(self.columns.iter());
        for ((segment, columns), census) in segments.zip(&mut self.census) {
            let is_gone = |doc: &DocId| is_forgotten(forgotten, columns.key(*doc));
            if forgotten.len() * LOOKUP_COST >= segment.max_doc() as usize {
                census.remove(fields, segment, (0..segment.max_doc()).filter(is_gone))?;
                continue;
            }
            let mut docs = Vec::new();
            for page in forgotten.keys() {
                docs.extend(docs_with(segment, &fields.page_term(*page))?);
            }
            census.remove(fields, segment, docs.into_iter().filter(is_gone))?;
        }
        Ok(())
    }

    /// The entries with a term: as the files have it, and those that count.
    pub fn count(&self, term: &Term) -> tantivy::Result<(u64, u64)> {
        let mut sums = (0, 0);
        for (segment, census) in self.searcher.segment_readers().iter().zip(&self.census) {
            let (written, living) = census.count(segment, term)?;
            sums = (sums.0 + written, sums.1 + living);
        }
        Ok(sums)
    }

    fn add_to(&self, totals: &mut Totals) {
        for (segment, census) in self.searcher.segment_readers().iter().zip(&self.census) {
            totals.add(census.docs(segment), census.lengths());
        }
    }
}

pub(crate) fn is_forgotten(forgotten: &Forgotten, key: Key) -> bool {
    forgotten.get(&key.0).is_some_and(|before| key.1 < *before)
}

pub(crate) fn docs_with(segment: &SegmentReader, term: &Term) -> tantivy::Result<Vec<DocId>> {
    let index = segment.inverted_index(term.field())?;
    let mut docs = Vec::new();
    if let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? {
        while postings.doc() != TERMINATED {
            docs.push(postings.doc());
            postings.advance();
        }
    }
    Ok(docs)
}

/// Some versions in memory, with their source for the fold into the files.
#[derive(Clone)]
pub(crate) struct Delta {
    pub docs: Arc<[Arc<Doc>]>,
    pub layer: Layer,
}

impl Delta {
    pub fn build(fields: &Fields, docs: Vec<Arc<Doc>>) -> tantivy::Result<Self> {
        // What lives for moments in memory is not worth a thread or compression.
        let settings = IndexSettings {
            docstore_compression: Compressor::None,
            docstore_compress_dedicated_thread: false,
            ..IndexSettings::default()
        };
        let builder = Index::builder()
            .schema(fields.schema.clone())
            .settings(settings);
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
            layer: Layer::new(fields, reader.searcher(), None)?,
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
    pub hearings: Hearings,
}

/// Statistics of the entries that count, over all layers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    pub docs: u64,
    tokens: Vec<(Field, u64)>,
}

impl Totals {
    pub fn none(fields: &Fields) -> Totals {
        Totals {
            docs: 0,
            tokens: fields.texts().iter().map(|field| (*field, 0)).collect(),
        }
    }

    pub fn add(&mut self, docs: u64, lengths: [u64; TEXTS]) {
        self.docs += docs;
        for ((_, sum), tokens) in self.tokens.iter_mut().zip(lengths) {
            *sum += tokens;
        }
    }

    pub fn tokens(&self, field: Field) -> u64 {
        self.tokens
            .iter()
            .find(|(name, _)| *name == field)
            .map_or(0, |(_, tokens)| *tokens)
    }
}

impl View {
    pub fn new(fields: &Fields, main: Layer, deltas: Vec<Delta>) -> Self {
        let mut totals = Totals::none(fields);
        main.add_to(&mut totals);
        deltas
            .iter()
            .for_each(|delta| delta.layer.add_to(&mut totals));
        View {
            main,
            deltas,
            totals,
            hearings: Hearings::default(),
        }
    }

    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.main).chain(self.deltas.iter().map(|delta| &delta.layer))
    }
}
