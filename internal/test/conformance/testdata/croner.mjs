// Computes the times of cron expressions with croner.
//
//   node croner.mjs MODULES < request.json
//
//   in   {"zone":"Europe/Berlin","texts":["0 9 * * *"],"windows":[{"after":0,"until":172800,"count":2}],"instants":[0]}
//   out  {"times":[[[28800,115200]]],"offsets":[3600]}
//
// All times are in seconds. times has an element for each text, null if it is
// invalid, with the first times after the start of each window, up to the first at
// or after its end. offsets are those of the zone at the instants.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { Cron } = createRequire(process.argv[2] + "/")("croner");
const request = JSON.parse(readFileSync(0, "utf8"));

function times(text) {
  let cron;
  try {
    cron = new Cron(text, { timezone: request.zone });
  } catch {
    return null;
  }
  return request.windows.map(({ after, until, count }) => {
    const found = [];
    for (let at = after; found.length < count && at < until; found.push(at)) {
      const next = cron.nextRun(new Date(at * 1000));
      if (next === null) break;
      at = next.getTime() / 1000;
    }
    return found;
  });
}

const format = new Intl.DateTimeFormat("en-US", {
  timeZone: request.zone, hourCycle: "h23",
  year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
});

function offset(sec) {
  const p = Object.fromEntries(format.formatToParts(new Date(sec * 1000)).map((p) => [p.type, Number(p.value)]));
  return Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute, p.second) / 1000 - sec;
}

process.stdout.write(JSON.stringify({ times: request.texts.map(times), offsets: (request.instants ?? []).map(offset) }));
