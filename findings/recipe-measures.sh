#!/bin/sh
# npm parse-ingredient 3.0.0, recipe-ingredient-parser-v3 1.5.0 and
# @jlucaspains/sharp-recipe-parser 2.1.0 (needs Node): what a recipe asks for becomes another
# amount in each of them, without an error. A comma, the decimal sign of most of Europe, is
# taken out by the first one unless it is told otherwise: half a litre is 5 litres. Of a cup
# and two tablespoons the second makes one tablespoon, of a can of 14 ounces one ounce, and
# what stands without a space ("500g") has no amount. A capital T is a tablespoon in recipes,
# and for the first; for the others it is a teaspoon, a third. An hour and a half in the oven
# is two hours for the third. Shopping lists and timers that are made of recipes are wrong.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='0,5 l milk: 5 liter | 0 liter | 0 -
1 cup plus 2 tablespoons sugar: 1 cup | 1 tablespoon | 1 cup
1 14-oz can tomatoes: 1 - | 1 ounce | 1 -
500g pork: 500 gram | 0 q.b. | 500 gram
1 T sugar: 1 tablespoon | 1 teaspoon | 1 teaspoon
1 1/2 cups flour: 1.5 cup | 1.5 cup | 1.5 cup
Bake for 1 1/2 hours: 120 minutes
Bake for 1.5 hours: 90 minutes'
cat >main.mjs <<'JS'
import { parseIngredient } from "parse-ingredient";
import { parse } from "recipe-ingredient-parser-v3";
import * as sharp from "@jlucaspains/sharp-recipe-parser";

for (const line of ["0,5 l milk", "1 cup plus 2 tablespoons sugar", "1 14-oz can tomatoes", "500g pork", "1 T sugar", "1 1/2 cups flour"]) {
  const [a] = parseIngredient(line);
  const b = parse(line, "eng");
  const c = sharp.parseIngredient(line, "en");
  console.log(`${line}: ${a.quantity} ${a.unitOfMeasureID ?? "-"} | ${b.quantity} ${b.unit ?? "-"} | ${c.quantity} ${c.unit || "-"}`);
}
for (const line of ["Bake for 1 1/2 hours", "Bake for 1.5 hours"]) {
  console.log(`${line}: ${sharp.parseInstruction(line, "en").totalTimeInSeconds / 60} minutes`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts parse-ingredient@3.0.0 recipe-ingredient-parser-v3@1.5.0 @jlucaspains/sharp-recipe-parser@2.1.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
