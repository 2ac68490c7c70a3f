//! Questions in twenty languages, each with the page that answers it: where
//! does that page rank by words alone, and by words and meaning?
//!
//! Refuses to pass when the second loses a page from the first three that the
//! first has there. Invariant: both are asked on the same folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::client::{Client, request};
use crate::connect;
use crate::corpus::walk;
use crate::rng::Rng;
use crate::server::Server;

/// Language, question, page: one a line, below a line that names the columns.
const QUESTIONS: &str = include_str!("../data/languages.tsv");
/// Pages are looked for among so many hits.
const DEPTH: usize = 100;
/// A page in one of these places is found.
const TOP: usize = 3;

#[derive(Args)]
pub struct Languages {
    /// Checkout of the tldr pages, with a folder of markdown per language (pages.de, pages.zh, ...).
    #[arg(long)]
    corpus: PathBuf,
    /// Folder with the sentence encoder.
    #[arg(long)]
    model: PathBuf,
    /// Pages beside those that the questions are about, drawn at random.
    #[arg(long, default_value_t = 3_000)]
    sample: usize,
    /// All pages: embedding them takes long.
    #[arg(long, conflicts_with = "sample")]
    whole: bool,
    /// What the sample is drawn with.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Write the table here as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

struct Question {
    language: &'static str,
    text: &'static str,
    page: &'static str,
}

#[derive(Serialize)]
struct Row {
    language: &'static str,
    query: &'static str,
    page: &'static str,
    /// 1 = first; absent: not among the hits.
    lexical: Option<usize>,
    hybrid: Option<usize>,
}

impl Row {
    fn is_lost(&self) -> bool {
        is_found(self.lexical) && !is_found(self.hybrid)
    }
}

fn is_found(rank: Option<usize>) -> bool {
    rank.is_some_and(|rank| rank <= TOP)
}

pub async fn run(binary: &Path, asked: &Languages) -> Result<()> {
    let questions = questions()?;
    let scratch = tempfile::Builder::new()
        .prefix("escurel-bench-")
        .tempdir()?;
    let folder = scratch.path().join("kb");
    let pages = copy(asked, &questions, &folder)?;
    println!("{pages} pages, {} questions", questions.len());

    let server = Server::start(binary, &folder, scratch.path(), None)?;
    server.ready(Duration::from_secs(900)).await?;
    let lexical = ranks(&server, &questions).await?;
    server.stop()?;
    let server = Server::start(binary, &folder, scratch.path(), Some(&asked.model))?;
    server.ready(Duration::from_secs(900)).await?;
    let took = server.meaningful().await?;
    println!("vectors after {:.0} s", took.as_secs_f64());
    let hybrid = ranks(&server, &questions).await?;
    server.stop()?;

    let ranks = lexical.into_iter().zip(hybrid);
    let row = |(question, (lexical, hybrid)): (&Question, (_, _))| Row {
        language: question.language,
        query: question.text,
        page: question.page,
        lexical,
        hybrid,
    };
    let rows: Vec<Row> = questions.iter().zip(ranks).map(row).collect();
    print(&rows);
    if let Some(out) = &asked.json {
        fs::write(out, serde_json::to_vec_pretty(&rows)?)?;
    }
    let lost = rows.iter().filter(|row| row.is_lost()).count();
    ensure!(
        lost == 0,
        "{lost} pages are no longer among the first {TOP}"
    );
    Ok(())
}

fn questions() -> Result<Vec<Question>> {
    let question = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [language, text, page] => Ok(Question {
            language,
            text,
            page,
        }),
        _ => bail!("not language, question and page: {line:?}"),
    };
    QUESTIONS.lines().skip(1).map(question).collect()
}

/// Copies what is asked about, in all languages, and what stands beside it.
fn copy(asked: &Languages, questions: &[Question], folder: &Path) -> Result<usize> {
    for question in questions {
        let page = asked.corpus.join(question.page);
        ensure!(page.is_file(), "no such page: {}", page.display());
    }
    let mut files = Vec::new();
    walk(&asked.corpus, &mut files)?;
    files.sort();
    let names: BTreeSet<&str> = questions
        .iter()
        .filter_map(|q| q.page.rsplit('/').next())
        .collect();
    let (mut chosen, mut others): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|file| {
            file.file_name()
                .is_some_and(|name| name.to_str().is_some_and(|name| names.contains(name)))
        });
    let mut rng = Rng::new(asked.seed);
    let beside = if asked.whole {
        others.len()
    } else {
        asked.sample.min(others.len())
    };
    for _ in 0..beside {
        chosen.push(others.swap_remove(rng.below(others.len())));
    }
    for file in &chosen {
        let target = folder.join(file.strip_prefix(&asked.corpus)?);
        fs::create_dir_all(target.parent().context("a page stands in a folder")?)?;
        fs::copy(file, target)?;
    }
    Ok(chosen.len())
}

/// Where the page of each question stands.
async fn ranks(server: &Server, questions: &[Question]) -> Result<Vec<Option<usize>>> {
    let mut client = connect(server).await?;
    let mut ranks = Vec::with_capacity(questions.len());
    for question in questions {
        ranks.push(rank(&mut client, question).await?);
    }
    Ok(ranks)
}

async fn rank(client: &mut Client, question: &Question) -> Result<Option<usize>> {
    let arguments = json!({"q": question.text, "k": DEPTH, "granularity": "page"});
    let answer = client.call(request("search", &arguments)).await?;
    let hits = answer["hits"].as_array().context("no hits")?;
    let place = hits.iter().position(|hit| hit["page_id"] == question.page);
    Ok(place.map(|place| place + 1))
}

fn print(rows: &[Row]) {
    let place = |rank: Option<usize>| rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
    println!("lexical  hybrid        language  page, question");
    for row in rows {
        println!(
            "{:>7} {:>7}  {:<5} {:<8}  {}, {}",
            place(row.lexical),
            place(row.hybrid),
            if row.is_lost() { "LOST" } else { "" },
            row.language,
            row.page,
            row.query
        );
    }
    let found =
        |rank: fn(&Row) -> Option<usize>| rows.iter().filter(|row| is_found(rank(row))).count();
    println!(
        "among the first {TOP}: {} by words, {} by words and meaning, of {}",
        found(|row| row.lexical),
        found(|row| row.hybrid),
        rows.len()
    );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn there_are_two_questions_in_each_of_twenty_languages() -> Result<()> {
        let mut counts = BTreeMap::new();
        for question in questions()? {
            *counts.entry(question.language).or_insert(0) += 1;
            let home = format!("pages.{}/", question.language);
            assert!(question.page.starts_with(&home), "{}", question.page);
            assert!(!question.text.trim().is_empty());
        }
        assert_eq!(counts.len(), 20);
        assert!(counts.values().all(|count| *count == 2), "{counts:?}");
        Ok(())
    }

    #[test]
    fn a_page_is_lost_when_it_leaves_the_first_three() {
        let row = |lexical, hybrid| Row {
            language: "de",
            query: "",
            page: "",
            lexical,
            hybrid,
        };
        assert!(row(Some(3), Some(4)).is_lost() && row(Some(1), None).is_lost());
        assert!(!row(Some(1), Some(3)).is_lost() && !row(Some(4), None).is_lost());
        assert!(!row(None, None).is_lost());
    }

    #[test]
    fn what_is_asked_about_is_copied_in_all_languages() -> Result<()> {
        let (source, target) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let put = |page: &str| {
            let path = source.path().join(page);
            fs::create_dir_all(path.parent().unwrap_or(source.path()))?;
            fs::write(path, "# x\n")
        };
        let questions = questions()?;
        for question in &questions {
            put(question.page)?;
        }
        put("pages/common/tree.md")?;
        for n in 0..20 {
            put(&format!("pages/common/other-{n}.md"))?;
        }
        let mut asked = Languages {
            corpus: source.path().to_owned(),
            model: PathBuf::new(),
            sample: 5,
            whole: false,
            seed: 1,
            json: None,
        };
        assert_eq!(copy(&asked, &questions, target.path())?, 46);
        assert!(target.path().join("pages/common/tree.md").is_file());
        asked.whole = true;
        assert_eq!(copy(&asked, &questions, target.path())?, 61);
        Ok(())
    }
}
