#!/bin/sh
# npm mqtt-pattern 2.1.1, mqtt-match 3.0.0 and mqtt-wildcard 3.0.9 (needs Node): which handler
# a message of a home's devices belongs to is decided by the topic. By the standard of MQTT
# (4.7.2) a wildcard at the start does not match topics that begin with a dollar sign, in
# which the broker tells about itself; for all three it does, so that a handler of all topics
# also gets them if the program subscribes to both. Levels may be empty, but for mqtt-pattern
# "+" does not match one, although "/a" matches "+/+" in the standard's own example.
# Seen: see want below; in each line the filter, the topic and what the standard says.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='# home/door true: mqtt-pattern true, mqtt-match true, mqtt-wildcard true
# $SYS/uptime false: mqtt-pattern true, mqtt-match true, mqtt-wildcard true
+/uptime $SYS/uptime false: mqtt-pattern true, mqtt-match true, mqtt-wildcard true
+/+ /a true: mqtt-pattern false, mqtt-match true, mqtt-wildcard true
home/+ home/ true: mqtt-pattern false, mqtt-match true, mqtt-wildcard true
home/+/on home//on true: mqtt-pattern false, mqtt-match true, mqtt-wildcard true'
cat >main.mjs <<'JS'
import match from "mqtt-match";
import pattern from "mqtt-pattern";
import wildcard from "mqtt-wildcard";

for (const [filter, topic, expected] of [
  ["#", "home/door", true],
  ["#", "$SYS/uptime", false],
  ["+/uptime", "$SYS/uptime", false],
  ["+/+", "/a", true],
  ["home/+", "home/", true],
  ["home/+/on", "home//on", true],
]) {
  const found = [pattern.matches(filter, topic), match(filter, topic), wildcard(topic, filter) !== null];
  console.log(`${filter} ${topic} ${expected}: mqtt-pattern ${found[0]}, mqtt-match ${found[1]}, mqtt-wildcard ${found[2]}`);
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts mqtt-pattern@2.1.1 mqtt-match@3.0.0 mqtt-wildcard@3.0.9 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
