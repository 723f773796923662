// Prints the schemas of OpenClaw's gateway methods as it validates them: an object
// from names such as ChatSendParams to JSON schemas. The argument is the directory of
// the program's modules.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const dist = process.argv[2];
const out = {};
for (const file of readdirSync(dist)) {
	if (!file.endsWith(".mjs")) continue;
	const text = readFileSync(join(dist, file), "utf8");
	const exported = text.slice(text.lastIndexOf("\nexport {"));
	const names = [...exported.matchAll(/(?:(\w+(?:Params|Result))Schema|validate(\w+(?:Params|Result))) as ([\w$]+)/g)];
	if (names.length === 0) continue;
	const module = await import(pathToFileURL(join(dist, file)));
	for (const [, schema, validator, alias] of names) {
		const value = schema ? module[alias] : module[alias]?.schema;
		if (value) out[schema || validator] = value;
	}
}
console.log(JSON.stringify(out));
