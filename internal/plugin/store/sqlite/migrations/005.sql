-- Entries that refer to files: bit 5 of their flags.
CREATE INDEX entry_media ON entry (flags) WHERE flags & 32;
