"""A chat in folders: CHAT/in/*.txt are messages of a person, CHAT/out/*.txt the answers."""
import hashlib, itertools, json, os, pathlib, queue, sys, threading, time
root = pathlib.Path(os.environ.get("PLUGIN_DATA", "."))
ids, answers, lock = itertools.count(1), queue.SimpleQueue(), threading.Lock()
class Refused(Exception): pass  # with a text and the data of the error
def write(**frame):  # one line, also if two threads write
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)

def place(p):  # the folder of the answers in a chat
    if not p["chat"]["id"].isalnum():
        raise Refused("there is no such chat", {"permanent": True})
    return root / p["chat"]["id"] / "out"

def save(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_suffix(".new").write_text(text, encoding="utf-8")
    file.with_suffix(".new").replace(file)
    return {"id": file.stem}

def find(p):  # was this key sent already?
    key = hashlib.sha256(p["key"].encode()).hexdigest()[:16]
    names = [f.stem for f in place(p).glob(f"*-{key}.txt")]
    return {"found": True, "id": names[0]} if names else {"found": False, "id": f"{time.time_ns()}-{key}"}

def send(p):
    at = find(p)
    return at if at["found"] else save(place(p) / (at["id"] + ".txt"), p["text"])

def change(p):  # edit and delete
    file = place(p) / (p["id"] + ".txt")
    if not file.exists():
        raise Refused("there is no such message", {"gone": True})
    return save(file, p["text"]) if "text" in p else file.unlink() or {}

def initialize(p):
    threading.Thread(target=watch, daemon=True).start()
    return {"protocolVersion": 1, "name": "folder chat", "abilities": ["edit", "delete", "find"]}

def watch():  # passes messages on; a file is removed when its message is on the gateway's disk
    while True:
        for file in sorted(root.glob("*/in/*.txt")):
            write(id=next(ids), method="message", params={
                "id": f"{file.stem}-{file.stat().st_mtime_ns}", "chat": {"id": file.parts[-3]}, "text": file.read_text(encoding="utf-8")})
            answer = answers.get()
            if "result" in answer or answer["error"].get("data", {}).get("permanent"):
                file.unlink()
        time.sleep(0.1)

methods = {"initialize": initialize, "send": send, "edit": change, "delete": change, "find": find}
for line in sys.stdin:  # ends when the gateway closes the input
    m = json.loads(line)
    if "method" not in m:
        answers.put(m)  # to the only request
    elif "id" in m:
        try:
            write(id=m["id"], result=methods.get(m["method"])(m["params"]))
        except Refused as e:
            write(id=m["id"], error={"code": -32000, "message": e.args[0], "data": e.args[1]})
