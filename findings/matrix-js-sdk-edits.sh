#!/bin/sh
# npm matrix-js-sdk 37.5.0 (needs Node): what it shows after a change is not what the
# specification says. A reply that was edited is no reply any more by its content, although
# the relation of the first version counts. Of two edits with the same time, the one with
# the larger id should win, so that all see the same; here the one that arrived last does.
# A redaction in a room of version 11, whose target is in the content, does nothing unless
# the server repeats the target outside, as older versions have it.
# Seen: see want below.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='reply to $question, after its edit to undefined
edits $b and then $a at the same time: a is shown
redacted by the content: false, by the outside: true'
cat >main.mjs <<'JS'
import { MatrixEvent, Room, createClient } from "matrix-js-sdk";
import { logger } from "matrix-js-sdk/lib/logger.js";

logger.disableAll();
const client = createClient({ baseUrl: "https://matrix.example.com", userId: "@me:example.com", accessToken: "x", fetchFn: async () => new Response("{}") });
const room = new Room("!room:example.com", client, "@me:example.com", {});
async function add(id, type, content, rest) {
  const event = new MatrixEvent({ room_id: room.roomId, sender: "@ann:example.com", origin_server_ts: 1, event_id: id, type, content, ...rest });
  await room.addLiveEvents([event], { addToState: true });
  return event;
}
const text = (body, relation) => ({ msgtype: "m.text", body, ...(relation && { "m.relates_to": relation }) });
const edit = (id, body, of, time) => add(id, "m.room.message", { ...text("* " + body, { rel_type: "m.replace", event_id: of }), "m.new_content": text(body) }, { origin_server_ts: time });

await add("$create", "m.room.create", { room_version: "11" }, { state_key: "" });
const reply = await add("$reply", "m.room.message", text("yes", { "m.in_reply_to": { event_id: "$question" } }));
const target = () => reply.getContent()["m.relates_to"]?.["m.in_reply_to"].event_id;
const before = target();
await edit("$edit", "yes!", "$reply", 2);
console.log(`reply to ${before}, after its edit to ${target()}`);

const message = await add("$message", "m.room.message", text("first"));
await edit("$b", "b", "$message", 3);
await edit("$a", "a", "$message", 3);
console.log(`edits $b and then $a at the same time: ${message.getContent().body} is shown`);

await add("$redaction", "m.room.redaction", { redacts: "$message" });
const byContent = message.isRedacted();
await add("$redaction2", "m.room.redaction", { redacts: "$message" }, { redacts: "$message" });
console.log(`redacted by the content: ${byContent}, by the outside: ${message.isRedacted()}`);
process.exit(0);
JS
npm install --silent --no-audit --no-fund --ignore-scripts matrix-js-sdk@37.5.0 >/dev/null 2>&1
got=$(node main.mjs 2>/dev/null)
echo "$got"
[ "$got" = "$want" ]
