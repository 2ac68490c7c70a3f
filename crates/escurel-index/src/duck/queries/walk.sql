-- $3: start. $4: along the links (true) or against them. $5: most hops.
steps AS MATERIALIZED (
  SELECT src AS a, dst AS b, relation FROM edges WHERE $4::BOOLEAN
  UNION ALL
  SELECT dst, src, relation FROM edges WHERE NOT $4::BOOLEAN
),
walk AS (
  SELECT page_no AS page, 0 AS depth FROM alive WHERE page_no = $3
  UNION
  SELECT s.b, w.depth + 1 FROM walk w JOIN steps s ON s.a = w.page WHERE w.depth < $5
),
least AS MATERIALIZED (SELECT page, min(depth) AS depth FROM walk GROUP BY page)
SELECT l.page, s.relation, l.depth, s.a
FROM least l
JOIN steps s ON s.b = l.page
JOIN least m ON m.page = s.a AND m.depth = l.depth - 1
JOIN alive p ON p.page_no = l.page
JOIN alive q ON q.page_no = s.a
QUALIFY row_number() OVER (PARTITION BY l.page ORDER BY s.relation, q.path, s.a) = 1
ORDER BY l.depth, p.path, l.page
