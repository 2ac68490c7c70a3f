SELECT l.page_no, d.page_no, l.kind, l.relation, l.skill, l.id, l.anchor, l.pin, l.alias, l.src_anchor, l.line
FROM links l
JOIN pages s ON s.page_no = l.page_no AND s.valid_from <= $2 AND $2 < s.valid_to
LEFT JOIN pages d ON d.page_no = l.dst_no AND d.valid_from <= $2 AND $2 < d.valid_to
WHERE l.valid_from <= $2 AND $2 < l.valid_to AND l.kind <> 'asset'
  AND (($3::BOOLEAN AND l.page_no = $1) OR ($4::BOOLEAN AND d.page_no = $1))
ORDER BY s.path, l.page_no, l.ord
