// Package table implements the tables of the store in SQL. The statements are written
// once, for SQLite and PostgreSQL; the stores (plugin/store/sqlite, plugin/store/postgres)
// provide the connections, the transactions and the schema.
//
// A statement is written in SQLite's form where both databases accept it. PostgreSQL has
// functions of the names instr, json_extract and date that do the same (see migrations
// there), and a connection translates the rest: the parameters, and
//
//	intact(first column, …, last column, crc)
//
// which is true if a row matches its checksum. A statement that returns the content of
// rows selects it, and a statement that updates only some columns has it as a condition.
// A database without checksums takes it for true. Two forms differ between the databases
// without an error, and must be avoided: sums and differences of flags (SQLite's
// conditions are numbers: write flags & 32 <> 0), and the order of NULLs.
package table
