CREATE TABLE note (
	id INTEGER PRIMARY KEY,
	path TEXT NOT NULL UNIQUE,
	version TEXT NOT NULL,
	hash BLOB,
	size INTEGER NOT NULL,
	time INTEGER NOT NULL,
	problem TEXT NOT NULL DEFAULT ''
);
CREATE TABLE chunk (
	id INTEGER PRIMARY KEY,
	note INTEGER NOT NULL REFERENCES note(id),
	first INTEGER NOT NULL,
	last INTEGER NOT NULL,
	head TEXT NOT NULL,
	text TEXT NOT NULL,
	terms TEXT NOT NULL,
	hash BLOB NOT NULL -- of what is embedded
);
CREATE INDEX chunk_note ON chunk(note);
CREATE INDEX chunk_hash ON chunk(hash);
CREATE VIRTUAL TABLE words USING fts5(terms, content='', contentless_delete=1, tokenize='ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, 'row');
CREATE TABLE model ( -- that made the vectors; at most one row
	name TEXT NOT NULL,
	dimension INTEGER NOT NULL
);
CREATE TABLE vector (
	id INTEGER PRIMARY KEY,
	hash BLOB NOT NULL UNIQUE,
	unused INTEGER NOT NULL, -- since when no chunk has this text, in seconds; 0: one has
	data BLOB NOT NULL -- empty: the provider refuses the text
);
CREATE INDEX vector_unused ON vector(unused) WHERE unused > 0;
CREATE TABLE sign ( -- of the vectors in use, a bit for each number
	id INTEGER PRIMARY KEY,
	bits BLOB NOT NULL
)
