-- $3: skill of the retired pages; NULL = any.
retired AS (
  SELECT dst AS page_no, relation AS via FROM edges WHERE relation IN ('supersedes', 'abandons')
  UNION
  SELECT src, relation FROM edges WHERE relation IN ('superseded_by', 'abandoned_by')
  UNION
  SELECT page_no, 'status' FROM pages
  WHERE valid_from <= $1::BIGINT AND $1::BIGINT < valid_to
    AND contains(frontmatter, 'abandoned') AND json_extract_string(frontmatter, '$.status') = 'abandoned'
)
SELECT r.page_no, p.skill, r.via FROM retired r JOIN alive p ON p.page_no = r.page_no
WHERE $3::VARCHAR IS NULL OR p.skill = $3
ORDER BY p.path, r.via
