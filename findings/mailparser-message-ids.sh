#!/bin/sh
# npm mailparser 3.14.2 (needs Node): two allowed forms of the headers that connect mails do
# not survive. A comment after the id in In-Reply-To stays in it and gets a bracket, so that
# no mail has this id; and ids in References that follow each other without a space, as
# RFC 5322 permits, are one. The answer is then a new conversation for who looks ids up.
# github.com/emersion/go-message v0.18.2 has the ids right in both.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='In-Reply-To: "<2@example.com> (Ann'"'"'s mail)>"
References: "<1@example.com><2@example.com>"'
cat >main.mjs <<'JS'
import { simpleParser } from "mailparser";

const mail = await simpleParser("From: Bob <bob@example.com>\r\nIn-Reply-To: <2@example.com> (Ann's mail)\r\nReferences: <1@example.com><2@example.com>\r\n\r\nHello\r\n");
console.log("In-Reply-To: " + JSON.stringify(mail.inReplyTo));
console.log("References: " + JSON.stringify(mail.references));
JS
npm install --silent --no-audit --no-fund --ignore-scripts mailparser@3.14.2 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
