-- One row per link of a version. dst_no is the page that the link leads to in
-- the scenario of its own page, everything visible; it follows later changes
-- of names while the row is open.
CREATE TABLE links (
  page_no INTEGER NOT NULL, version BIGINT NOT NULL, ord INTEGER NOT NULL, kind VARCHAR NOT NULL, relation VARCHAR,
  skill VARCHAR, id VARCHAR, anchor VARCHAR, pin VARCHAR, alias VARCHAR, src_anchor VARCHAR, line INTEGER NOT NULL,
  dst_no INTEGER, valid_from BIGINT NOT NULL, valid_to BIGINT NOT NULL
);
-- For open links to which more than one page could answer: all of them, the
-- best rank first, so that the answer for a reader who may not see some of
-- them is the same as if those did not exist.
CREATE TABLE alternates (page_no INTEGER NOT NULL, ord INTEGER NOT NULL, rank INTEGER NOT NULL, candidate INTEGER NOT NULL);
CREATE VIEW resolved_links AS
  SELECT s.path AS src_page, d.path AS dst_page, s.skill AS src_skill, d.skill AS dst_skill, l.relation, l.kind,
    l.src_anchor, l.anchor AS dst_anchor, l.pin AS link_version, l.page_no AS src_no, l.dst_no
  FROM links l
  JOIN heads s ON s.page_no = l.page_no
  JOIN heads d ON d.page_no = l.dst_no
  WHERE l.valid_to = 9223372036854775807 AND s.scenario IS NULL;
