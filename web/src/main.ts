import "./style.css";
import { apply } from "./preferences";
import type { Credential } from "./gateway";
import { State } from "./state";
import { Page } from "./view/page";

// A link of `chela dashboard` carries a code in its fragment, which browsers send to nobody. It
// is taken out of the address, and of the history, before anything else. OpenClaw's links carry
// the gateway's token there.
function credential(): Credential {
  const given = new URLSearchParams(location.hash.slice(1));
  const code = given.get("code");
  const secret = given.get("token");
  if (!code && !secret) return {};
  history.replaceState(null, "", location.pathname);
  return { ...(code ? { code, limited: given.get("access") === "limited" } : {}), ...(secret ? { secret } : {}) };
}

const given = credential();
apply();
const state = new State();
customElements.define(
  "chela-page",
  class extends Page {
    constructor() {
      super(state);
    }
  },
);
void state.start(given);
