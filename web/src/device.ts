// The identity of this browser: an Ed25519 key that signs the challenge of each connection,
// and the token that the gateway gave to it. The private key cannot be read, also not by this
// page, where the browser has WebCrypto (on HTTPS and on this machine).

import { getPublicKey, hashes, sign as signWith, utils } from "@noble/ed25519";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import * as database from "./database";

hashes.sha512 = sha512;

export interface Device {
  id: string;
  publicKey: string; // base64url
  key: CryptoKey | Uint8Array;
  platform: string;
  token?: string;
  scopes?: string[]; // that the page asks for; absent: all that it uses
}

const slot = "this";

export async function load(): Promise<Device> {
  return (await database.read<Device>("device", slot)) ?? database.claim("device", slot, await create());
}

export async function update(change: (d: Device) => void): Promise<Device> {
  const d = await load();
  change(d);
  await database.write("device", slot, d);
  return d;
}

export function forget(): Promise<void> {
  return database.remove("device", slot);
}

async function create(): Promise<Device> {
  const platform = platformName();
  if (globalThis.crypto.subtle) {
    try {
      const pair = (await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"])) as CryptoKeyPair;
      const raw = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
      return { ...named(raw), key: pair.privateKey, platform };
    } catch {
      // an older browser: the key is made in the script
    }
  }
  const secret = utils.randomSecretKey();
  return { ...named(getPublicKey(secret)), key: secret, platform };
}

function named(publicKey: Uint8Array): { id: string; publicKey: string } {
  const id = [...sha256(publicKey)].map((b) => b.toString(16).padStart(2, "0")).join("");
  return { id, publicKey: base64url(publicKey) };
}

/** sign returns the signature of a text, in base64url. */
export async function sign(d: Device, text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  if (d.key instanceof Uint8Array) return base64url(signWith(bytes, d.key));
  return base64url(new Uint8Array(await crypto.subtle.sign("Ed25519", d.key, bytes)));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

function platformName(): string {
  const agent = navigator.userAgent;
  const known: [RegExp, string][] = [
    [/android/i, "android"],
    [/iphone|ipad|ipod/i, "ios"],
    [/mac os/i, "macos"],
    [/windows/i, "windows"],
    [/linux|x11|cros/i, "linux"],
  ];
  return known.find(([pattern]) => pattern.test(agent))?.[1] ?? "web";
}

/** browserName is how the gateway lists this browser. */
export function browserName(): string {
  const agent = navigator.userAgent;
  const known: [RegExp, string][] = [
    [/edg\//i, "Edge"],
    [/firefox|fxios/i, "Firefox"],
    [/chrom|crios/i, "Chrome"],
    [/safari/i, "Safari"],
  ];
  return known.find(([pattern]) => pattern.test(agent))?.[1] ?? "Browser";
}
