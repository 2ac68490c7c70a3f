-- One row per version of a page, tombstones included. Times are UTC
-- microseconds; the newest version of a page has valid_to 9223372036854775807.
CREATE TABLE versions (
  page_no INTEGER NOT NULL, uid VARCHAR NOT NULL, version BIGINT NOT NULL, seq BIGINT NOT NULL, path VARCHAR NOT NULL,
  valid_from BIGINT NOT NULL, valid_to BIGINT NOT NULL, written_at BIGINT NOT NULL, actor VARCHAR NOT NULL,
  origin VARCHAR NOT NULL, object VARCHAR NOT NULL, bytes BIGINT NOT NULL, deleted BOOLEAN NOT NULL
);
