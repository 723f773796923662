#!/bin/sh
# github.com/corentings/chess/v2 v2.3.2 and npm chessops 0.15.1 (needs Go and Node): a game of
# chess in PGN that is read and written again, unchanged. A variation within a variation is
# written a second time, one move earlier, where its moves are impossible: the library refuses
# its own text. Comments in variations and all judgements ($1, !, ??) are dropped, comments in
# the main line stay. It does not read a comment up to the end of a line (;), an escaped line
# (%) or a quotation mark in a name, all in the standard of PGN (5, 6 and 7). chessops keeps
# all but the comment to the end of a line. Who has an assistant add to an analysis gets a file
# that nothing can read.
# Seen: see want below: the moves that were read, what is written, and how that is read.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='1. e4 e5 (1... c5 2. Nf3 (2. c3 d5) 2... d6) 2. Nc3 *
 chess: 1. e4 e5 (1... c5 (1... c3 2. d5) 2. Nf3 (2. c3 d5) 2... d6) 2. Nc3 *, refused
 chessops: 1. e4 e5 ( 1... c5 2. Nf3 ( 2. c3 d5 ) 2... d6 ) 2. Nc3 *
1. e4 {best} e5 $2 (1... c5 {sharp}) 2. Nf3 $1 *
 chess: 1. e4 {best} e5 (1... c5) 2. Nf3 *, read
 chessops: 1. e4 { best } e5 $2 ( 1... c5 { sharp } ) 2. Nf3 $1 *
1. e4 ; best
e5 *
 chess: no valid game
 chessops: 1. e4 e5 *'
cat >games.json <<'JSON'
["1. e4 e5 (1... c5 2. Nf3 (2. c3 d5) 2... d6) 2. Nc3 *", "1. e4 {best} e5 $2 (1... c5 {sharp}) 2. Nf3 $1 *", "1. e4 ; best\ne5 *"]
JSON
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/corentings/chess/v2"
)

func main() {
	var games []string
	b, _ := os.ReadFile("games.json")
	if err := json.Unmarshal(b, &games); err != nil {
		panic(err)
	}
	out := []string{}
	for _, moves := range games {
		read, err := chess.PGN(strings.NewReader("[Event \"?\"]\n\n" + moves + "\n"))
		if err != nil {
			out = append(out, "no valid game")
			continue
		}
		text := chess.NewGame(read).String()
		again := "read"
		if _, err := chess.PGN(strings.NewReader(text)); err != nil {
			again = "refused"
		}
		out = append(out, strings.TrimSpace(text[strings.LastIndex(text, "]")+1:])+", "+again)
	}
	b, _ = json.Marshal(out)
	fmt.Println(string(b))
}
GO
cat >main.mjs <<'JS'
import { readFileSync } from "fs";
import { parsePgn, makePgn } from "chessops/pgn";

const chess = JSON.parse(readFileSync("chess.json", "utf8"));
JSON.parse(readFileSync("games.json", "utf8")).forEach((moves, i) => {
  const [game] = parsePgn(`[Event "?"]\n\n${moves}\n`);
  console.log(`${moves}\n chess: ${chess[i]}\n chessops: ${makePgn(game).split("\n\n")[1].trim()}`);
});
JS
go mod init example.com/games >/dev/null 2>&1
go get github.com/corentings/chess/v2@v2.3.2 >/dev/null 2>&1
npm install --silent --no-audit --no-fund --ignore-scripts chessops@0.15.1 >/dev/null 2>&1
go run . >chess.json
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
