//! A labelled collection in the BEIR layout: `corpus.jsonl`, `queries.jsonl`
//! and `qrels/<split>.tsv`, each as it is or compressed (`.gz`).

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use hashbrown::HashMap;
use serde::Deserialize;

use super::{EvalError, Grades};

#[derive(Debug, Clone, Default)]
pub struct Collection {
    /// Their numbers are their places here.
    pub documents: Vec<Document>,
    /// Those that the split judges, in the order of their file.
    pub questions: Vec<Question>,
    /// Judgements of known questions and documents.
    pub judgements: usize,
    pub aside: SetAside,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    pub id: String,
    pub title: String,
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    pub id: String,
    pub text: String,
    pub grades: Grades,
}

/// What takes no part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetAside {
    /// Judgements that name a query which is not in `queries.jsonl`.
    pub unknown_queries: usize,
    /// Judgements that name a document which is not in `corpus.jsonl`.
    pub unknown_documents: usize,
    /// Judged queries without any relevant document.
    pub nothing_relevant: usize,
}

#[derive(Deserialize)]
struct DocumentLine {
    #[serde(rename = "_id")]
    id: String,
    #[serde(default)]
    title: String,
    text: String,
}

#[derive(Deserialize)]
struct QueryLine {
    #[serde(rename = "_id")]
    id: String,
    text: String,
}

impl Collection {
    /// # Errors
    /// [`EvalError`] names the file, and the line where it is about one.
    pub fn read(dir: &Path, split: &str) -> Result<Collection, EvalError> {
        let corpus = Source::find(dir, "corpus.jsonl")?;
        let queries = Source::find(dir, "queries.jsonl")?;
        let qrels = Source::find(&dir.join("qrels"), &format!("{split}.tsv"))
            .map_err(|error| name_splits(dir, error))?;
        let documents = documents(&corpus)?;
        let mut questions = questions(&queries)?;
        let (judgements, mut aside) = judge(&qrels, &mut questions, &documents)?;
        questions.retain(|question| !question.grades.is_empty());
        let judged = questions.len();
        questions.retain(|question| question.grades.values().any(|grade| *grade > 0.0));
        aside.nothing_relevant = judged - questions.len();
        if questions.is_empty() {
            let reason = "No query of the split has a relevant document in the corpus.";
            return Err(EvalError::Empty {
                path: qrels.path,
                reason: reason.to_owned(),
            });
        }
        Ok(Collection {
            documents,
            questions,
            judgements,
            aside,
        })
    }
}

fn documents(source: &Source) -> Result<Vec<Document>, EvalError> {
    let mut documents = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    source.each_line(|line, text| {
        let read: DocumentLine = source.json(line, text)?;
        if let Some(before) = known.insert(read.id.clone(), line) {
            let reason = format!("the _id {:?} is on line {before}, too", read.id);
            return Err(source.invalid(line, reason));
        }
        documents.push(Document {
            id: read.id,
            title: read.title,
            text: read.text,
        });
        Ok(())
    })?;
    Ok(documents)
}

fn questions(source: &Source) -> Result<Vec<Question>, EvalError> {
    let mut questions = Vec::new();
    source.each_line(|line, text| {
        let read: QueryLine = source.json(line, text)?;
        if read.text.trim().is_empty() {
            return Err(source.invalid(line, "the text is empty"));
        }
        questions.push(Question {
            id: read.id,
            text: read.text,
            grades: Grades::new(),
        });
        Ok(())
    })?;
    Ok(questions)
}

/// Gives the questions their grades, and counts them.
fn judge(
    source: &Source,
    questions: &mut [Question],
    documents: &[Document],
) -> Result<(usize, SetAside), EvalError> {
    let places: HashMap<String, usize> = questions
        .iter()
        .enumerate()
        .map(|(place, question)| (question.id.clone(), place))
        .collect();
    let numbers: HashMap<&str, u32> = documents
        .iter()
        .zip(0u32..)
        .map(|(document, number)| (document.id.as_str(), number))
        .collect();
    let (mut judgements, mut aside) = (0, SetAside::default());
    source.each_line(|line, text| {
        let Some((query, document, grade)) = judgement(source, line, text)? else {
            return Ok(());
        };
        match (places.get(query), numbers.get(document)) {
            (None, _) => aside.unknown_queries += 1,
            (_, None) => aside.unknown_documents += 1,
            (Some(place), Some(number)) => {
                questions[*place].grades.insert(*number, grade);
                judgements += 1;
            }
        }
        Ok(())
    })?;
    Ok((judgements, aside))
}

/// `query-id <tab> corpus-id <tab> score`. The first line may name the columns.
fn judgement<'a>(
    source: &Source,
    line: usize,
    text: &'a str,
) -> Result<Option<(&'a str, &'a str, f64)>, EvalError> {
    let fields: Vec<&str> = text.split('\t').map(str::trim).collect();
    let [query, document, score] = fields[..] else {
        let reason = format!(
            "expected query-id, corpus-id and score with tabs between them, found {} fields",
            fields.len()
        );
        return Err(source.invalid(line, reason));
    };
    match score.parse::<f64>() {
        Ok(grade) if grade.is_finite() => Ok(Some((query, document, grade))),
        _ if line == 1 => Ok(None),
        _ => Err(source.invalid(line, format!("the score {score:?} is not a number"))),
    }
}

/// Says which splits there are.
fn name_splits(dir: &Path, error: EvalError) -> EvalError {
    let EvalError::Missing { path, reason } = error else {
        return error;
    };
    let entries = std::fs::read_dir(dir.join("qrels")).into_iter().flatten();
    let mut splits: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let stem = name.strip_suffix(".gz").unwrap_or(&name);
            stem.strip_suffix(".tsv").map(str::to_owned)
        })
        .collect();
    splits.sort_unstable();
    splits.dedup();
    let reason = match splits.is_empty() {
        true => reason,
        false => format!("{reason} Splits: {}.", splits.join(", ")),
    };
    EvalError::Missing { path, reason }
}

/// A file of lines.
struct Source {
    path: PathBuf,
    compressed: bool,
}

impl Source {
    fn find(dir: &Path, name: &str) -> Result<Source, EvalError> {
        let plain = dir.join(name);
        let packed = dir.join(format!("{name}.gz"));
        match (plain.is_file(), packed.is_file()) {
            (true, _) => Ok(Source {
                path: plain,
                compressed: false,
            }),
            (false, true) => Ok(Source {
                path: packed,
                compressed: true,
            }),
            (false, false) => Err(EvalError::missing(
                &plain,
                "There is no such file, nor one that ends in .gz.",
            )),
        }
    }

    fn invalid(&self, line: usize, reason: impl Into<String>) -> EvalError {
        EvalError::Invalid {
            path: self.path.clone(),
            line,
            reason: reason.into(),
        }
    }

    fn json<'a, T: Deserialize<'a>>(&self, line: usize, text: &'a str) -> Result<T, EvalError> {
        serde_json::from_str(text).map_err(|error| {
            let told = error.to_string();
            // The position that the parser tells is that within the line.
            let reason = told.split(" at line ").next().unwrap_or_default();
            self.invalid(line, format!("column {}: {reason}", error.column()))
        })
    }

    /// Lines by their numbers from 1; those without text are passed over.
    fn each_line(
        &self,
        mut take: impl FnMut(usize, &str) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        let unreadable = |error: std::io::Error| EvalError::missing(&self.path, sentence(&error));
        let file = File::open(&self.path).map_err(unreadable)?;
        let bytes: Box<dyn Read> = match self.compressed {
            true => Box::new(MultiGzDecoder::new(file)),
            false => Box::new(file),
        };
        let mut lines = BufReader::with_capacity(1 << 16, bytes);
        let mut text = String::new();
        for line in 1.. {
            text.clear();
            let read = lines.read_line(&mut text);
            if read.map_err(|error| self.invalid(line, error.to_string()))? == 0 {
                break;
            }
            if !text.trim().is_empty() {
                take(line, text.trim_end_matches(['\n', '\r']))?;
            }
        }
        Ok(())
    }
}

fn sentence(error: &std::io::Error) -> String {
    format!("It cannot be read: {error}.")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    struct Dir(tempfile::TempDir);

    impl Dir {
        fn new(corpus: &str, queries: &str, qrels: &str) -> Dir {
            let dir = Dir(tempfile::tempdir().unwrap());
            std::fs::create_dir(dir.0.path().join("qrels")).unwrap();
            dir.write("corpus.jsonl", corpus);
            dir.write("queries.jsonl", queries);
            dir.write("qrels/test.tsv", qrels);
            dir
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.0.path().join(name), text).unwrap();
        }

        fn pack(&self, name: &str) {
            let path = self.0.path().join(name);
            let text = std::fs::read(&path).unwrap();
            let file = File::create(self.0.path().join(format!("{name}.gz"))).unwrap();
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            packed.write_all(&text).unwrap();
            packed.finish().unwrap();
            std::fs::remove_file(path).unwrap();
        }

        fn read(&self) -> Result<Collection, EvalError> {
            Collection::read(self.0.path(), "test")
        }

        fn refused(&self, expect: &str) {
            let told = self.read().unwrap_err().to_string();
            let told = told.replace(&self.0.path().display().to_string(), "DIR");
            assert_eq!(told, expect);
        }
    }

    const CORPUS: &str = "{\"_id\": \"a\", \"title\": \"T\", \"text\": \"x\"}\n\n\
                          {\"_id\": \"b/ü\", \"text\": \"\", \"metadata\": {}}\n";
    const QUERIES: &str = "{\"_id\": \"1\", \"text\": \"one\"}\n{\"_id\": \"2\", \"text\": \"two\"}\n\
                           {\"_id\": \"3\", \"text\": \"three\"}\n";
    const QRELS: &str =
        "query-id\tcorpus-id\tscore\n3\tb/ü\t2\n1\ta\t1\n1\tb/ü\t-1\n9\ta\t1\n2\tz\t1\n";

    #[test]
    fn is_read_plain_and_compressed() {
        let dir = Dir::new(CORPUS, QUERIES, QRELS);
        let check = |read: Collection| {
            let ids: Vec<&str> = read.documents.iter().map(|d| d.id.as_str()).collect();
            assert_eq!(ids, ["a", "b/ü"]);
            assert_eq!(
                (&*read.documents[0].title, &*read.documents[0].text),
                ("T", "x")
            );
            let asked: Vec<&str> = read.questions.iter().map(|q| q.text.as_str()).collect();
            assert_eq!(asked, ["one", "three"]);
            assert_eq!(
                read.questions[0].grades,
                Grades::from([(0, 1.0), (1, -1.0)])
            );
            assert_eq!(read.judgements, 3);
            let aside = (read.aside.unknown_queries, read.aside.unknown_documents);
            assert_eq!(aside, (1, 1));
        };
        check(dir.read().unwrap());
        for name in ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"] {
            dir.pack(name);
        }
        check(dir.read().unwrap());
    }

    #[test]
    fn bad_input_is_named_with_its_line() {
        let bad = |corpus: &str, queries: &str, qrels: &str, expect: &str| {
            Dir::new(corpus, queries, qrels).refused(expect);
        };
        bad(
            &format!("{CORPUS}{{\"_id\": 7}}\n"),
            QUERIES,
            QRELS,
            "eval_invalid: DIR/corpus.jsonl, line 4: column 9: invalid type: integer `7`, expected a string",
        );
        bad(
            &CORPUS.replace("b/ü", "a"),
            QUERIES,
            QRELS,
            "eval_invalid: DIR/corpus.jsonl, line 3: the _id \"a\" is on line 1, too",
        );
        bad(
            CORPUS,
            "{\"_id\": \"1\"}",
            QRELS,
            "eval_invalid: DIR/queries.jsonl, line 1: column 12: missing field `text`",
        );
        bad(
            CORPUS,
            QUERIES,
            "q\td\ts\n1\ta\n",
            "eval_invalid: DIR/qrels/test.tsv, line 2: expected query-id, corpus-id and score with tabs between them, \
             found 2 fields",
        );
        bad(
            CORPUS,
            QUERIES,
            "q\td\ts\n1\ta\thigh\n",
            "eval_invalid: DIR/qrels/test.tsv, line 2: the score \"high\" is not a number",
        );
    }

    #[test]
    fn missing_files_and_empty_splits_are_told() {
        let dir = Dir::new(CORPUS, QUERIES, "q\td\ts\n1\ta\t-1\n2\tz\t1\n");
        dir.refused(
            "eval_empty: DIR/qrels/test.tsv: No query of the split has a relevant document in the corpus.",
        );
        std::fs::remove_file(dir.0.path().join("qrels/test.tsv")).unwrap();
        dir.write("qrels/train.tsv", QRELS);
        dir.write("qrels/dev.tsv.gz", "");
        dir.refused(
            "eval_missing: DIR/qrels/test.tsv: There is no such file, nor one that ends in .gz. Splits: dev, train.",
        );
        std::fs::remove_file(dir.0.path().join("corpus.jsonl")).unwrap();
        dir.refused(
            "eval_missing: DIR/corpus.jsonl: There is no such file, nor one that ends in .gz.",
        );
    }
}
