-- $3: skill of the decisions; NULL = any. A page without `at` counts from its
-- first version.
born AS MATERIALIZED (
  SELECT p.page_no, coalesce(p.at_first, (SELECT min(v.valid_from) FROM versions v WHERE v.page_no = p.page_no)) AS moment
  FROM alive p
)
SELECT DISTINCT m.src, m.dst, s.src, d.moment, x.moment, pd.path, pe.path, px.path
FROM edges m
JOIN edges s ON s.dst = m.dst AND s.relation = 'supersedes'
JOIN born d ON d.page_no = m.src
JOIN born x ON x.page_no = s.src
JOIN alive pd ON pd.page_no = m.src
JOIN alive pe ON pe.page_no = m.dst
JOIN alive px ON px.page_no = s.src
WHERE m.relation IN ('motivated_by', 'addresses') AND x.moment > d.moment
  AND ($3::VARCHAR IS NULL OR pd.skill = $3)
ORDER BY pd.path, pe.path, px.path
