// A program around the reference client. It connects as a device, makes the
// requests on its standard input, one per line, and writes events and results
// to its standard output, one per line.
//
//   node client.mjs MODULE URL TOKEN
//
//   in   {"id":1,"method":"health","params":{}}
//   out  {"hello":{…}} {"event":{…}} {"closed":1012,"reason":"…"} {"gap":{…}}
//        {"id":1,"result":{…}} {"id":1,"error":{…}}
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { createInterface } from "node:readline";

const [module, url, token] = process.argv.slice(2);
const { GatewayClient } = await import(module);
const write = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const raw = (pem) => Buffer.from(createPublicKey(pem).export({ format: "jwk" }).x, "base64url");
const pair = generateKeyPairSync("ed25519", {
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});
let kept = null; // the device token that the gateway issued

const client = new GatewayClient({
  url,
  token,
  clientName: "openclaw-tui",
  mode: "ui",
  scopes: ["operator.admin"],
  caps: ["tool-events"],
  deviceIdentity: {
    deviceId: createHash("sha256").update(raw(pair.publicKey)).digest("hex"),
    privateKeyPem: pair.privateKey,
    publicKeyPem: pair.publicKey,
  },
  hostDeps: {
    signDevicePayload: (pem, payload) => sign(null, Buffer.from(payload), createPrivateKey(pem)).toString("base64url"),
    publicKeyRawBase64UrlFromPem: (pem) => raw(pem).toString("base64url"),
    loadDeviceAuthToken: () => kept,
    storeDeviceAuthToken: ({ token, scopes }) => (kept = { token, scopes }),
    clearDeviceAuthToken: () => (kept = null),
  },
  onHelloOk: (hello) => write({ hello }),
  onEvent: (event) => write({ event }),
  onGap: (gap) => write({ gap }),
  onClose: (closed, reason) => write({ closed, reason }),
  onConnectError: (error) => write({ refused: String(error) }),
});
client.start();

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  client.request(method, params).then(
    (result) => write({ id, result: result ?? null }),
    (error) => write({ id, error: { message: String(error.message), code: error.gatewayCode ?? error.code } }),
  );
}
client.stop();
