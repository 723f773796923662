#!/bin/sh
# modernc.org/sqlite v1.61.1: a file of exactly one byte is an empty database, whatever the
# byte is. It passes PRAGMA integrity_check and accepts writes. From two bytes on, a file
# that is no database is refused: "file is not a database (26)". (The size of a file of one
# byte is taken for 0, a workaround for an old file system.) A program that wants to notice
# that a database was cut must look at the size itself.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"database/sql"
	"fmt"
	"os"

	_ "modernc.org/sqlite"
)

// open says what becomes of a file with n bytes of a text.
func open(n int) string {
	name := fmt.Sprintf("%d.db", n)
	if err := os.WriteFile(name, []byte("text"[:n]), 0o600); err != nil {
		return err.Error()
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	var check string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&check); err != nil {
		return err.Error()
	}
	if _, err := db.Exec("CREATE TABLE t (a)"); err != nil {
		return check + ", but not written to: " + err.Error()
	}
	return check + ", and written to"
}

func main() {
	ok := true
	for n, want := range []string{"ok, and written to", "ok, and written to", "file is not a database (26)", "file is not a database (26)"} {
		got := open(n)
		fmt.Printf("%d bytes: %s\n", n, got)
		ok = ok && got == want
	}
	if !ok {
		os.Exit(1)
	}
}
GO
go mod init example.com/short >/dev/null 2>&1
go get modernc.org/sqlite@v1.61.1 >/dev/null 2>&1
go run .
