#!/bin/sh
# npm ollama 0.6.4 (needs Node): a host that is given with port 80, such as "127.0.0.1:80"
# for a server behind a reverse proxy, is asked at port 11434. Any other port is kept. The
# port of the standard is dropped when the host is read as a URL, and what has no port gets
# the usual one of Ollama. Only the full "http://127.0.0.1:80" reaches port 80.
# Seen: see want below: the host that is given and the URL that is asked.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='127.0.0.1:80 -> http://127.0.0.1:11434/api/version
127.0.0.1:81 -> http://127.0.0.1:81/api/version
http://127.0.0.1:80 -> http://127.0.0.1:80/api/version'
cat >main.mjs <<'JS'
import { Ollama } from "ollama";

for (const host of ["127.0.0.1:80", "127.0.0.1:81", "http://127.0.0.1:80"]) {
  let asked;
  const fetch = async (url) => {
    asked = url;
    return new Response('{"version":"1"}');
  };
  await new Ollama({ host, fetch }).version();
  console.log(`${host} -> ${asked}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts ollama@0.6.4 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
