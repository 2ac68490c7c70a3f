-- One row per version that has content; `heads` are the live pages.
CREATE TABLE pages (
  page_no INTEGER NOT NULL, version BIGINT NOT NULL, seq BIGINT NOT NULL, uid VARCHAR NOT NULL, path VARCHAR NOT NULL,
  page_type VARCHAR NOT NULL, skill VARCHAR NOT NULL, id VARCHAR NOT NULL, title VARCHAR NOT NULL,
  at_first BIGINT, at_last BIGINT, layer VARCHAR, scenario VARCHAR, hidden BOOLEAN NOT NULL, frontmatter VARCHAR NOT NULL,
  valid_from BIGINT NOT NULL, valid_to BIGINT NOT NULL
);
CREATE VIEW heads AS SELECT * FROM pages WHERE valid_to = 9223372036854775807;
