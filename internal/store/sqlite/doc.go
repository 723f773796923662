// Package sqlite keeps the truth in one SQLite file with a write-ahead log.
package sqlite
