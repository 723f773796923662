#!/bin/sh
# npm @slack/bolt 5.1.0 (needs Node): a bot does not get the messages that it posts itself
# (ignoreSelf is on by default), but each time that it edits one of them, the listener of
# app.message is called: the event message_changed names its author only inside, and only
# the outside is looked at. An assistant that writes its answer in pieces by editing it
# wakes itself with each piece, with a message that has no text.
# Seen: see want below: the listener's calls after an event.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='message of a person: called with "hello"
message of the bot: not called
edit of it by the bot: called with undefined, subtype message_changed'
cat >main.mjs <<'JS'
import bolt from "@slack/bolt";

let app;
const receiver = { init: (a) => (app = a), start() {}, stop() {} };
const listening = new bolt.App({ authorize: async () => ({ botToken: "xoxb-1", botId: "B1", botUserId: "U1" }), receiver, logLevel: "error" });
let call = "not called";
listening.message(async ({ message }) => {
  call = "called with " + JSON.stringify(message.text) + (message.subtype ? ", subtype " + message.subtype : "");
});
async function send(name, event) {
  call = "not called";
  await app.processEvent({ body: { type: "event_callback", team_id: "T1", event_id: "E1", event }, ack: async () => {} });
  console.log(`${name}: ${call}`);
}
const message = { type: "message", channel: "C1", channel_type: "channel", ts: "1.0", text: "hello" };
const own = { ...message, user: "U1", bot_id: "B1" };
await send("message of a person", { ...message, user: "U2" });
await send("message of the bot", own);
await send("edit of it by the bot", { type: "message", subtype: "message_changed", channel: "C1", channel_type: "channel", ts: "2.0", message: { ...own, text: "hello, Ann" }, previous_message: own });
JS
npm install --silent --no-audit --no-fund --ignore-scripts @slack/bolt@5.1.0 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
