//! A second opinion on the best hits: the seam that a cross-encoder fills.

use crate::embed::EmbedError;

/// Judges texts against a query one by one, slower and better than ranking can.
pub trait Reranker: Send + Sync + 'static {
    /// How well each text answers the query, in the order of the texts; more is better.
    ///
    /// # Errors
    /// [`EmbedError`]; the hits then stay in their first order.
    fn judge(&self, query: &str, texts: &[&str]) -> Result<Vec<f32>, EmbedError>;
}

/// Hits that are judged, if so many are not asked for.
pub(crate) const JUDGED: usize = 30;

/// The order of `texts` by the reranker's judgement, with it; equals keep their order.
pub(crate) fn order(
    reranker: &dyn Reranker,
    query: &str,
    texts: &[&str],
) -> Result<Vec<(usize, f32)>, EmbedError> {
    let judged = reranker.judge(query, texts)?;
    if judged.len() != texts.len() || judged.iter().any(|score| !score.is_finite()) {
        let told = format!("{} texts, {} judgements", texts.len(), judged.len());
        return Err(EmbedError::Refused(told));
    }
    let mut order: Vec<(usize, f32)> = judged.into_iter().enumerate().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(order)
}
