//! A collection in an index, and the ways to ask it: words, meaning, both.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::{Collection, Document, EvalError, Watch};
use crate::api::{AdmitAll, Doc, DocUnit, Query};
use crate::embed::{Embedder, Purpose, QueryVector, QueryVectors, quantised};
use crate::index::TextIndex;
use crate::vectors::{Cache, Code, TextKey, VectorIndex, Version};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Lexical,
    Vector,
    Hybrid,
}

impl Lane {
    pub fn name(self) -> &'static str {
        match self {
            Lane::Lexical => "lexical",
            Lane::Vector => "vector",
            Lane::Hybrid => "hybrid",
        }
    }
}

/// What it cost to give the documents vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub model: String,
    /// Texts that had no vector from before.
    pub embedded: usize,
    pub took: Duration,
}

impl Embedding {
    /// Texts a second, of those that were embedded.
    pub fn rate(&self) -> Option<f64> {
        let seconds = self.took.as_secs_f64();
        (self.embedded > 0 && seconds > 0.0).then(|| self.embedded as f64 / seconds)
    }
}

/// Every document is one unit of a page whose number is the document's.
pub struct Lanes {
    text: TextIndex,
    indexed: Duration,
    meaning: Option<(Arc<dyn Embedder>, VectorIndex)>,
}

/// All pages have this version.
const SEQ: u64 = 1;
/// Documents between two looks at the clock.
const STRIDE: usize = 1_000;

impl Lanes {
    /// Makes the documents findable by words.
    ///
    /// # Errors
    /// [`EvalError::Search`], [`EvalError::Stopped`].
    pub fn index(collection: &Collection, watch: Watch<'_>) -> Result<Lanes, EvalError> {
        let began = Instant::now();
        let text = TextIndex::in_memory();
        let all = collection.documents.len();
        for (round, some) in collection.documents.chunks(STRIDE).enumerate() {
            go_on(watch("indexing", round * STRIDE, all))?;
            let numbers = (round * STRIDE) as u32..;
            let docs = some.iter().zip(numbers).map(doc).collect();
            text.add_bulk(docs)?;
        }
        text.commit(SEQ)?;
        text.settle();
        Ok(Lanes {
            text,
            indexed: began.elapsed(),
            meaning: None,
        })
    }

    /// How long indexing by words took.
    pub fn indexed(&self) -> Duration {
        self.indexed
    }

    /// Makes the documents findable by meaning, too. Vectors are taken from
    /// `cache`, and put there.
    ///
    /// # Errors
    /// [`EvalError::Embed`], [`EvalError::Stopped`].
    pub fn embed(
        &mut self,
        collection: &Collection,
        embedder: Arc<dyn Embedder>,
        cache: Option<&Cache>,
        watch: Watch<'_>,
    ) -> Result<Embedding, EvalError> {
        let texts: Vec<String> = collection.documents.iter().map(meaning_text).collect();
        let (codes, embedding) = codes(&*embedder, &texts, cache, watch)?;
        let version = |(page, code): (u32, Code)| Version {
            page,
            seq: SEQ,
            units: vec![(0, code)],
        };
        let versions: Vec<Version> = (0..).zip(codes).map(version).collect();
        let index = VectorIndex::new(embedder.dimensions());
        index.put(&versions);
        self.meaning = Some((embedder, index));
        Ok(embedding)
    }

    /// The numbers of the best `k` documents.
    ///
    /// # Errors
    /// [`EvalError::Search`], [`EvalError::Embed`].
    pub fn ask(&self, lane: Lane, text: &str, k: usize) -> Result<Vec<u32>, EvalError> {
        match lane {
            Lane::Lexical => self.search(text, k, None),
            Lane::Vector => self.near(text, k),
            Lane::Hybrid => self.search(text, k, self.query_vectors(text)?),
        }
    }

    fn search(
        &self,
        text: &str,
        k: usize,
        vectors: Option<QueryVectors>,
    ) -> Result<Vec<u32>, EvalError> {
        let answer = self.text.snapshot().search(&Query {
            texts: &[text.to_owned()],
            k,
            by_page: true,
            candidates: &AdmitAll,
            audience: None,
            only_page: None,
            vectors,
            reranker: None,
        })?;
        Ok(answer.hits.iter().map(|hit| hit.page).collect())
    }

    fn near(&self, text: &str, k: usize) -> Result<Vec<u32>, EvalError> {
        let Some((embedder, index)) = &self.meaning else {
            return Ok(Vec::new());
        };
        let vector = query_vector(&**embedder, text)?;
        let near = index.snapshot().near(&vector, k, &AdmitAll);
        Ok(near.iter().map(|near| near.page).collect())
    }

    /// As a search makes them: a model that does not know the words is not asked.
    fn query_vectors(&self, text: &str) -> Result<Option<QueryVectors>, EvalError> {
        let Some((embedder, index)) = &self.meaning else {
            return Ok(None);
        };
        let trust = embedder.trust(text);
        if trust <= 0.0 {
            return Ok(None);
        }
        let vector = QueryVector {
            vector: query_vector(&**embedder, text)?.into(),
            trust,
        };
        Ok(Some(QueryVectors {
            snapshot: index.snapshot(),
            vectors: vec![Some(vector)],
        }))
    }
}

fn go_on(yes: bool) -> Result<(), EvalError> {
    if yes { Ok(()) } else { Err(EvalError::Stopped) }
}

fn doc((document, number): (&Document, u32)) -> Doc {
    Doc {
        page: number,
        seq: SEQ,
        title: document.title.clone(),
        units: vec![DocUnit {
            text: document.text.clone(),
            ..DocUnit::default()
        }],
        ..Doc::default()
    }
}

/// As the text of a page with this title and one unit is embedded.
fn meaning_text(document: &Document) -> String {
    format!("{}\n{}", document.title, document.text.trim())
}

fn query_vector(embedder: &dyn Embedder, text: &str) -> Result<Vec<f32>, EvalError> {
    let vectors = embedder.embed(&[text], Purpose::Query)?;
    Ok(vectors.into_iter().next().unwrap_or_default())
}

/// One code per text, those that the cache lacks made now.
fn codes(
    embedder: &dyn Embedder,
    texts: &[String],
    cache: Option<&Cache>,
    watch: Watch<'_>,
) -> Result<(Vec<Code>, Embedding), EvalError> {
    let keys: Vec<TextKey> = texts.iter().map(|text| TextKey::of(text)).collect();
    let known = |key: &TextKey| cache.and_then(|cache| cache.code(cache.row(*key)?));
    let mut codes: Vec<Option<Code>> = keys.iter().map(known).collect();
    let lacking: Vec<usize> = (0..texts.len()).filter(|n| codes[*n].is_none()).collect();
    let done = AtomicUsize::new(0);
    let began = Instant::now();
    let made: Result<Vec<Vec<Code>>, EvalError> = lacking
        .par_chunks(embedder.batch().max(1))
        .map(|some| {
            go_on(watch(
                "embedding",
                done.load(Ordering::Relaxed),
                lacking.len(),
            ))?;
            let batch: Vec<&str> = some.iter().map(|n| texts[*n].as_str()).collect();
            let vectors = embedder.embed(&batch, Purpose::Document)?;
            let made = quantised(embedder, batch.len(), &vectors)?;
            done.fetch_add(some.len(), Ordering::Relaxed);
            keep(
                cache,
                some.iter().map(|n| keys[*n]).zip(made.iter().cloned()),
            );
            Ok(made)
        })
        .collect();
    let made = made?;
    let took = began.elapsed();
    for (n, code) in lacking.iter().zip(made.into_iter().flatten()) {
        codes[*n] = Some(code);
    }
    let embedding = Embedding {
        model: embedder.id().to_owned(),
        embedded: lacking.len(),
        took,
    };
    Ok((codes.into_iter().flatten().collect(), embedding))
}

/// What cannot be kept is made again the next time.
fn keep(cache: Option<&Cache>, made: impl Iterator<Item = (TextKey, Code)>) {
    let Some(cache) = cache else { return };
    if let Err(error) = cache.put(&made.collect::<Vec<_>>()) {
        tracing::warn!(%error, "vectors are not kept for the next time");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::EmbedError;

    /// Knows three words; the rest of the world is foreign to it.
    struct Words;

    impl Embedder for Words {
        fn id(&self) -> &'static str {
            "words"
        }

        fn dimensions(&self) -> usize {
            3
        }

        fn embed(&self, texts: &[&str], _: Purpose) -> Result<Vec<Vec<f32>>, EmbedError> {
            let vector = |text: &&str| {
                let has = |words: [&str; 2]| f32::from(words.iter().any(|w| text.contains(w)));
                let axes = [
                    has(["ship", "boat"]),
                    has(["sea", "ocean"]),
                    has(["bread", "loaf"]),
                ];
                let length = axes.iter().map(|x| x * x).sum::<f32>().sqrt().max(1.0);
                axes.iter().map(|x| x / length).collect()
            };
            Ok(texts.iter().map(vector).collect())
        }

        fn trust(&self, query: &str) -> f32 {
            f32::from(query.is_ascii())
        }

        fn batch(&self) -> usize {
            1
        }
    }

    fn collection() -> Collection {
        let document = |(title, text): (&str, &str)| Document {
            id: title.to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
        };
        let all = [
            ("Dough", "a loaf from the oven"),
            ("Voyage", "the boat left for the ocean"),
            ("Oven", "how hot is hot"),
        ];
        Collection {
            documents: all.map(document).to_vec(),
            ..Collection::default()
        }
    }

    const ON: Watch<'_> = &|_, _, _| true;

    #[test]
    fn each_lane_answers_in_its_own_way() {
        let collection = collection();
        let mut lanes = Lanes::index(&collection, ON).unwrap();
        let embedding = lanes.embed(&collection, Arc::new(Words), None, ON).unwrap();
        assert_eq!(embedding.embedded, 3);
        let check = |lane, text, first: &[u32]| {
            let found = lanes.ask(lane, text, 10).unwrap();
            assert_eq!(&found[..first.len()], first, "{text}: {found:?}");
            found.len()
        };
        assert_eq!(check(Lane::Lexical, "oven", &[2, 0]), 2);
        assert_eq!(check(Lane::Lexical, "ship", &[]), 0);
        assert_eq!(check(Lane::Vector, "ship", &[1]), 3);
        check(Lane::Hybrid, "ship", &[1]);
        check(Lane::Hybrid, "bread oven", &[0]);
        assert_eq!(check(Lane::Hybrid, "oven ü", &[2, 0]), 2);
        assert_eq!(lanes.ask(Lane::Vector, "ship", 2).unwrap().len(), 2);
    }

    #[test]
    fn a_text_is_embedded_once() {
        let collection = collection();
        let dir = tempfile::tempdir().unwrap();
        let mut lanes = Lanes::index(&collection, ON).unwrap();
        let mut embed = || {
            let cache = Cache::open(dir.path(), "words", 3).unwrap();
            lanes
                .embed(&collection, Arc::new(Words), Some(&cache), ON)
                .unwrap()
        };
        assert!(embed().rate().is_some());
        let again = embed();
        assert_eq!((again.embedded, again.rate()), (0, None));
        assert_eq!(lanes.ask(Lane::Vector, "ship", 1).unwrap(), [1]);
    }

    #[test]
    fn what_is_stopped_ends() {
        let collection = collection();
        let stopped = Lanes::index(&collection, &|_, _, _| false);
        assert!(matches!(stopped, Err(EvalError::Stopped)));
        let mut lanes = Lanes::index(&collection, ON).unwrap();
        let stopped = lanes.embed(&collection, Arc::new(Words), None, &|_, done, _| done < 1);
        assert!(matches!(stopped, Err(EvalError::Stopped)));
    }
}
