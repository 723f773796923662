#!/usr/bin/env bash
# A tour of what Chela does by itself: it schedules, watches its files, lets other programs
# give it work, keeps a long conversation, remembers, learns, answers programs and editors, runs programs on another machine, has a web page, and moves in
# from OpenClaw. It runs on a fresh home in a temporary folder, without a key, and ends with an error if one of the steps
# does not work.
#
#     go build -o bin/chela ./cmd/chela && CHELA=bin/chela docs/tour.sh
#
# CHELA is the program, by default the one in PATH. The tour needs bash and curl, and takes
# about half a minute.
set -euo pipefail

chela=$(command -v "${CHELA:-chela}") || { echo "there is no program ${CHELA:-chela}; set CHELA to its path" >&2; exit 2; }
chela=$(cd "$(dirname "$chela")" && pwd)/$(basename "$chela")
home=$(mktemp -d)
export HOME=$home CHELA_STATE_DIR=$home/.chela NO_COLOR=1
unset ANTHROPIC_API_KEY OPENAI_API_KEY OPENROUTER_API_KEY GEMINI_API_KEY GOOGLE_API_KEY GROQ_API_KEY XAI_API_KEY
workspace=$CHELA_STATE_DIR/workspace
port=$((20000 + RANDOM % 20000))
gateway=''

finish() {
	code=$?
	[ -z "$gateway" ] || kill "$gateway" 2>/dev/null || true
	wait 2>/dev/null || true
	if [ "$code" = 0 ]; then
		rm -rf "$home"
	else
		printf '\nthe tour ended at: %s\nits home is kept: %s\n' "$title" "$home" >&2
	fi
}
trap finish EXIT

title='the start'
out=''

# step TITLE: begins a part of the tour.
step() { title=$1 && printf '\n== %s\n' "$1"; }

# run COMMAND…: shows a command, executes it and shows what it printed.
run() {
	printf '\n$ %s\n' "$*"
	out=$("$@" 2>&1) || { printf '%s\n' "$out"; return 1; }
	printf '%s\n' "$out"
}

# has PATTERN: ends the tour unless the last output has a line like PATTERN.
has() { grep -Eq -- "$1" <<<"$out" || { printf 'no line like: %s\n' "$1" >&2; return 1; }; }

# lacks PATTERN: the opposite.
lacks() { ! grep -Eq -- "$1" <<<"$out" || { printf 'a line like: %s\n' "$1" >&2; return 1; }; }

# until_has PATTERN COMMAND…: executes the command until its output has a line like PATTERN.
until_has() {
	pattern=$1 && shift
	for _ in $(seq 600); do
		out=$("$@" 2>&1) || true
		if grep -Eq -- "$pattern" <<<"$out"; then
			printf '\n$ %s\n%s\n' "$*" "$out"
			return 0
		fi
		sleep 0.2
	done
	printf '\n$ %s\n%s\n' "$*" "$out"
	return 1
}

# until_lacks PATTERN COMMAND…: the opposite.
until_lacks() {
	pattern=$1 && shift
	for _ in $(seq 600); do
		out=$("$@" 2>&1) || true
		grep -Eq -- "$pattern" <<<"$out" || return 0
		sleep 0.2
	done
	printf '\n$ %s\n%s\n' "$*" "$out"
	return 1
}

# start starts the gateway, and stop ends it, with a signal if there is one.
start() {
	"$chela" gateway run --port "$port" >>"$home/gateway.log" 2>&1 &
	gateway=$!
	until_has '"status":"started"' curl -s "http://127.0.0.1:$port/startupz"
}
stop() { kill "$@" "$gateway" && { wait "$gateway" || true; } 2>/dev/null; gateway=''; }

step 'Schedule: reminders, regular tasks, and what was missed'
start
run "$chela" agent -m 'remind me in 2 seconds to stretch'
has 'I will remind you'
until_has '^⏰ Reminder: stretch' "$chela" sessions show main
run "$chela" cron add --name weekday --cron '0 8 * * MON-FRI' --tz Europe/Berlin --message 'list the files here'
run "$chela" cron run weekday
until_has 'weekday .*AGENTS.md' "$chela" cron runs weekday
run "$chela" cron edit weekday --every 2h
run "$chela" cron disable weekday
run "$chela" cron list --all
has 'every 2h'
run "$chela" cron rm weekday
run "$chela" agent -m 'remind me in 3 seconds to drink'
stop -9 # as if the power had failed
sleep 4
start
until_has '^⏰ Reminder: drink' "$chela" sessions show main
[ "$(grep -c '^⏰ Reminder: drink' <<<"$out")" = 1 ]

step 'Heartbeat: a list that is looked at from time to time, and events of scripts'
run "$chela" system event --mode now --text 'the backup failed'
until_has 'backup failed' "$chela" sessions show main
run "$chela" system heartbeat last
has 'ok|sent|skipped'

step 'Webhooks: other programs give it work'
run "$chela" webhooks enable
run curl -fsS "http://127.0.0.1:$port/hooks/agent" -H "Authorization: Bearer $("$chela" webhooks token)" \
	-H 'Content-Type: application/json' -d '{"message": "list the files here", "name": "build"}'
has '"ok":true'
until_has 'AGENTS.md' "$chela" sessions show "$(sed -n 's/.*"sessionKey":"\([^"]*\)".*/\1/p' <<<"$out")"
out=$(curl -s -o /dev/null -w '%{http_code}' -XPOST "http://127.0.0.1:$port/hooks/agent" -d '{"message": "hello"}')
has 401
run "$chela" webhooks disable

step 'Hooks: a program that forbids something'
mkdir -p "$CHELA_STATE_DIR/hooks/no-rm"
cat >"$CHELA_STATE_DIR/hooks/no-rm/HOOK.md" <<'END'
---
name: no-rm
description: "Refuse commands that delete"
metadata: {"openclaw": {"events": ["before_tool_call"]}}
---
END
cat >"$CHELA_STATE_DIR/hooks/no-rm/handler.sh" <<'END'
#!/bin/sh
if grep -q '"command":"rm '; then
	echo '{"block": true, "blockReason": "nothing is deleted here"}'
fi
END
chmod +x "$CHELA_STATE_DIR/hooks/no-rm/handler.sh"
until_has 'no-rm' "$chela" hooks list
run "$chela" hooks check
run "$chela" agent --yes -m 'create kept.txt with "still here"'
until_has 'nothing is deleted here' "$chela" agent --yes -m 'run `rm kept.txt`'
run "$chela" hooks disable no-rm
run "$chela" agent --yes -m 'run `rm kept.txt`'
run "$chela" undo --yes
has 'kept.txt is back'
run "$chela" agent -m 'show kept.txt'
has 'still here'

step 'Context: what the model sees, and a summary of a long conversation'
run "$chela" agent -m '/context list'
has 'AGENTS.md'
for i in 1 2 3 4 5 6; do "$chela" agent -m "create list$i.txt with \"$(printf 'line %s ' $(seq 400))\"" >"$home/out"; done
run "$chela" agent -m '/compact keep the names of the files'
has 'Compacted: [0-9]+ messages'
run "$chela" agent -m '/compact undo'
has 'is undone'

step 'Memory: what it is told to remember'
run "$chela" agent -m 'remember that the spare key is at Ann'"'"'s'
run "$chela" agent -m '记住：我的车停在三楼'
run "$chela" memory list
run "$chela" memory search 'spare key'
has "Ann's"
run "$chela" memory search '停在'
has '三楼'
run "$chela" agent -m 'what do you remember about the key?'
has "Ann's"
run "$chela" memory why MEMORY.md
has 'after a message of owner'

step 'Skills: an ability is a folder'
mkdir -p "$workspace/skills/greeting"
cat >"$workspace/skills/greeting/SKILL.md" <<'END'
---
name: greeting
description: Greet somebody by name in the style of the house.
---
Say "Moin" and the name.
END
until_has 'greeting +yes' "$chela" skills list
run "$chela" skills info greeting
run "$chela" agent -m '/context list'
has 'greeting'
rm -r "$workspace/skills/greeting"
until_lacks 'greeting' "$chela" skills list

step 'Forgetting: what it was told is gone, and it says from where'
run "$chela" memory forget --yes 'spare key'
run "$chela" memory search 'spare key'
lacks "Ann's"
! grep -rq "spare key is at Ann" "$CHELA_STATE_DIR" || { echo "the text is still on the disk" >&2; exit 1; }

step 'The browser: a page, and what is on it'
if "$chela" browser status | grep -q '^program'; then browser=yes; else browser=''; fi
if [ -z "$browser" ] && [ "$(id -u)" = 0 ]; then # Chromium has no sandbox as root
	run "$chela" config set browser.noSandbox true
	if "$chela" browser status | grep -q '^program'; then browser=yes; fi
fi
if [ -n "$browser" ]; then
	run "$chela" config set browser.ssrfPolicy.allowedHostnames '["127.0.0.1"]'
	run "$chela" browser open "http://127.0.0.1:$port/startupz"
	run "$chela" browser snapshot
	has '"status":"started"|status.*started'
	run "$chela" agent -m "open http://127.0.0.1:$port/startupz in the browser and show it"
	has 'started'
	run "$chela" browser stop
else
	printf 'left out: there is no Chromium here\n'
fi

step 'Programs: the assistant as a model, and in an editor'
run "$chela" config set gateway.http.endpoints.chatCompletions.enabled true
key=$(cat "$CHELA_STATE_DIR/credentials/gateway.token")
ask() { curl -sS "http://127.0.0.1:$port/v1/$1" -H "Authorization: Bearer $key" "${@:2}"; }
until_has '"chela/main"' ask models
run ask chat/completions -H 'Content-Type: application/json' -d '{"model": "chela", "messages": [{"role": "user", "content": "what time is it?"}]}'
has 'It is [A-Z][a-z]+day'
coproc editor { "$chela" acp --session editor 2>"$home/editor"; }
from=${editor[0]} to=${editor[1]}
printf '%s\n' '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}' \
	'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}' \
	'{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"agent:main:editor","prompt":[{"type":"text","text":"what time is it?"}]}}' >&"$to"
out=''
while read -r -t 60 line <&"$from"; do
	out+=$line$'\n'
	case $line in *'"id":2'*) break ;; esac
done
exec {to}>&- {from}<&-
printf '%s' "$out" | cut -c1-160
has '"sessionUpdate":"agent_message_chunk"'
has '"stopReason":"end_turn"'

step 'Nodes: another machine that runs programs'
run "$chela" devices invite --access node --url "ws://127.0.0.1:$port"
code=$(sed -n 's/^setup code *//p' <<<"$out")
CHELA_STATE_DIR=$home/node "$chela" approvals allowlist add uname
CHELA_STATE_DIR=$home/node "$chela" node run --pair "oc-pair://$code" --display-name laptop >"$home/node.log" 2>&1 &
node=$!
until_has 'connected' cat "$home/node.log"
run "$chela" nodes pending
has 'system.run'
run "$chela" nodes approve
run "$chela" nodes status
has 'laptop.*approved +connected'
run "$chela" nodes run --node laptop -- uname -s
has "$(uname -s)"
run "$chela" nodes invoke --node laptop --command system.which --params '{"bins":["sh"]}'
has '/sh'
until_has 'SYSTEM_RUN_DENIED' "$chela" nodes run --node laptop -- rm nothing
CHELA_STATE_DIR=$home/node run "$chela" node status
has 'running +yes'
run "$chela" nodes remove laptop
kill "$node" 2>/dev/null || true
wait "$node" || true

step 'The web page: for a computer and a phone'
run "$chela" dashboard --no-open
has "http://127.0.0.1:$port/#code="
run curl -sS -D - "http://127.0.0.1:$port/"
has 'Content-Security-Policy: default-src .none.'
has '<title>Chela</title>'

step 'The canvas: a page beside the conversation'
mkdir -p "$workspace/canvas"
printf '%s\n' '<!doctype html><title>Tides</title><h1>The tide turns at six</h1>' >"$workspace/canvas/index.html"
signed() { curl -sS -H "Authorization: Bearer $key" "${@:2}" "http://127.0.0.1:$port/$1"; }
run signed __openclaw__/canvas/ -D -
has 'Content-Security-Policy: sandbox allow-scripts'
has 'The tide turns at six'
run curl -sS -o "$home/none" -w 'without a credential: %{http_code}\n' "http://127.0.0.1:$port/__openclaw__/canvas/"
has 'without a credential: 401'
run signed tools/invoke -H 'Content-Type: application/json' -d '{"tool":"canvas","args":{"action":"present"}}'
has 'Shown: index.html'
run curl -sS "$(grep -Eo 'http://127[^"]*/index.html' <<<"$out")"
has 'The tide turns at six'

step 'A voice: a program says what it is given'
printf '%s\n' '#!/bin/sh' 'printf "RIFF----WAVE%s" "$2" >"$1"' >"$home/voice" && chmod +x "$home/voice"
run "$chela" config set tts.providers.tour '{command: "'"$home/voice"'", args: ["{{OutputPath}}", "{{Text}}"], outputFormat: "wav"}'
run "$chela" tts status
has '^tour .*yes .*first'
run "$chela" tts say 'Good morning' --output "$home/morning.wav"
has 'morning.wav .tour, wav.'
run cat "$home/morning.wav"
has 'Good morning'

step 'A picture: a program draws it'
base64 -d >"$home/dot.png" <<<'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=='
run "$chela" config set agents.defaults.mediaModels.image '{command: "cp", args: ["'"$home/dot.png"'", "{{OutputPath}}"]}'
draw() { signed tools/invoke -H 'Content-Type: application/json' -d '{"tool":"image_generate","args":{"prompt":"a dot","action":"'"$1"'"}}'; }
until_has 'program' draw list
run draw generate
has 'Task '
until_has 'image image/png' "$chela" sessions show agent:main:main

step 'Moving in: what OpenClaw has, and the way back'
stop
old=$home/openclaw
mkdir -p "$old/workspace/memory" "$old/agents/main/sessions" "$old/cron"
printf '%s\n' '{agents: {defaults: {workspace: "'"$old"'/workspace"}}, channels: {telegram: {enabled: false}}}' >"$old/openclaw.json"
printf '%s\n' 'The boiler was serviced in May.' >"$old/workspace/memory/2026-05-04.md"
printf '%s\n' '{"agent:main:boiler": {"sessionId": "11111111-aaaa-4aaa-8aaa-000000000001", "updatedAt": 1772352004000}}' >"$old/agents/main/sessions/sessions.json"
printf '%s\n' '{"type":"session","version":3,"id":"11111111-aaaa-4aaa-8aaa-000000000001","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/"}' \
	'{"type":"message","id":"00000001","parentId":null,"timestamp":"2026-03-01T08:00:01.000Z","message":{"role":"user","content":"is the boiler warm?","timestamp":1772352001000}}' \
	>"$old/agents/main/sessions/11111111-aaaa-4aaa-8aaa-000000000001.jsonl"
run "$chela" migrate openclaw --from "$old"
has '1 session with 1 message'
has 'Nothing was changed'
run "$chela" migrate openclaw --from "$old" --apply --yes
has '^Done'
run "$chela" sessions list
has 'boiler'
run "$chela" migrate openclaw --undo --yes
run "$chela" sessions list
lacks 'boiler'

step 'The end'
run "$chela" doctor
has 'undamaged'
printf '\nthe tour is over: everything worked\n'
