#!/bin/sh
# npm wanakana 5.3.1 and hepburn 1.3.0 (needs Node): Japanese syllables to Latin letters
# (Hepburn) and back, as for a lesson or a search. What wanakana writes it does not read:
# matcha and kotchi, with Hepburn's tch for a doubled ch, leave a Latin t in the middle of the
# kana. The small vowels of most foreign words are read as whole ones, so that a party is
# "paateii", Disney "deizunii" and a fork "fuooku", and the way back makes other words of them;
# those of check and jet are right. hepburn has all of them right. A learner is shown words
# that do not exist, and a search for them finds nothing.
# Seen: see want below: the kana, wanakana's letters, these read by wanakana again, and
# hepburn's.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='マッチャ matcha マtチャ MATCHA
こっち kotchi こtち KOTCHI
パーティー paateii パアテイイ PĀTĪ
ディズニー deizunii デイズニイ DIZUNĪ
フォーク fuooku フオオク FŌKU
ファイル fuairu フアイル FAIRU
チェック chekku チェック CHEKKU
ジェット jetto ジェット JETTO
けっこん kekkon けっこん KEKKON'
cat >main.mjs <<'JS'
import * as wanakana from "wanakana";
import hepburn from "hepburn";

for (const kana of ["マッチャ", "こっち", "パーティー", "ディズニー", "フォーク", "ファイル", "チェック", "ジェット", "けっこん"]) {
  const letters = wanakana.toRomaji(kana);
  const again = wanakana.isKatakana(kana) ? wanakana.toKatakana(letters) : wanakana.toHiragana(letters);
  console.log(kana, letters, again, hepburn.fromKana(kana));
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts wanakana@5.3.1 hepburn@1.3.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
