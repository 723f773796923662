#!/bin/sh
# modernc.org/sqlite v1.53.0 (SQLite 3.53.2): a file of one byte, or of any other content
# that is shorter than the header of a database, is opened as a new, empty database.
