-- Devices that may connect or wait for approval. device is empty until the first
-- approval; request is empty if no request is pending. A removed device stays as a
-- tombstone.

CREATE TABLE device (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  created INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  device  TEXT NOT NULL,
  request TEXT NOT NULL
) STRICT;
CREATE INDEX device_waiting ON device (n) WHERE request <> '';
