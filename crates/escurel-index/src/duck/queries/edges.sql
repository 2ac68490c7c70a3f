-- $1: the moment that is looked at. $2: relations, joined by U+001F; '' = all.
-- `alive`: pages that exist at that moment for the caller, in the base.
WITH RECURSIVE alive AS MATERIALIZED (
  SELECT page_no, path, skill, at_first FROM pages
  WHERE valid_from <= $1::BIGINT AND $1::BIGINT < valid_to AND scenario IS NULL
    AND page_no NOT IN (SELECT page_no FROM hidden)
),
-- Of several candidates for one link the best rank that is alive decides, and
-- two of them there decide nothing.
ranked AS (
  SELECT a.page_no, a.ord, a.candidate, a.rank, min(a.rank) OVER (PARTITION BY a.page_no, a.ord) AS best
  FROM alternates a JOIN alive c ON c.page_no = a.candidate
),
chosen AS (
  SELECT page_no, ord, min(candidate) AS dst FROM ranked WHERE rank = best GROUP BY page_no, ord HAVING count(*) = 1
),
contested AS (SELECT DISTINCT page_no, ord FROM alternates),
led AS (
  SELECT l.page_no AS src, l.relation, CASE WHEN x.page_no IS NULL THEN l.dst_no ELSE c.dst END AS dst
  FROM links l
  LEFT JOIN contested x ON x.page_no = l.page_no AND x.ord = l.ord AND l.valid_to = 9223372036854775807
  LEFT JOIN chosen c ON c.page_no = l.page_no AND c.ord = l.ord AND l.valid_to = 9223372036854775807
  WHERE l.relation IS NOT NULL AND l.valid_from <= $1::BIGINT AND $1::BIGINT < l.valid_to
    AND ($2::VARCHAR = '' OR list_contains(string_split($2::VARCHAR, chr(31)), l.relation))
),
edges AS MATERIALIZED (
  SELECT DISTINCT e.src, e.dst, e.relation FROM led e
  JOIN alive s ON s.page_no = e.src
  JOIN alive d ON d.page_no = e.dst
  WHERE e.src <> e.dst
),
