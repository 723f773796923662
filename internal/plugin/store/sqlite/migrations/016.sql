-- People who ask to be admitted on channels, or were admitted. guest is the whole record.
CREATE TABLE guest (
  n       INTEGER PRIMARY KEY,
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  id      TEXT NOT NULL,
  guest   TEXT NOT NULL,
  crc     INTEGER NOT NULL AS (crc32c(n, channel, account, id, guest)) STORED,
  UNIQUE (channel, account, id)
) STRICT;
