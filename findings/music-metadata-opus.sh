#!/bin/sh
# npm music-metadata 11.16.1 (needs Node): what it says of an Ogg Opus file, the format of
# voice messages. The number of samples is at 48 kHz and the sample rate that of the
# microphone, so that one divided by the other is three times the duration. A file whose
# header leaves the rate open (0 is allowed, RFC 7845) has no duration. And a recording
# that was cut from a running stream is as long as the stream, because the count at its
# first page is not subtracted. A limit on the length of voice messages is then a guess.
# Seen: see want below. Each file has 100 packets of 20 ms, less 312 samples to skip.
# Exits with 1 if that changes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='rate 16000: duration 1.9935, samples/rate 5.9805
rate 0: duration undefined
cut after ten seconds: duration 11.9935'
cat >main.mjs <<'JS'
import { parseBuffer } from "music-metadata";

// checksum is that of a page of Ogg.
function checksum(bytes) {
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte << 24;
    for (let i = 0; i < 8; i++) sum = sum & 0x80000000 ? (sum << 1) ^ 0x04c11db7 : sum << 1;
  }
  return sum >>> 0;
}

// page returns a page with packets of up to 254 bytes; samples counts up to its end.
function page(flags, samples, number, packets) {
  const head = Buffer.alloc(27 + packets.length);
  head.write("OggS");
  head[5] = flags;
  head.writeBigInt64LE(BigInt(samples), 6);
  head.writeUInt32LE(1, 14);
  head.writeUInt32LE(number, 18);
  head[26] = packets.length;
  packets.forEach((p, i) => (head[27 + i] = p.length));
  const all = Buffer.concat([head, ...packets]);
  all.writeUInt32LE(checksum(all), 22);
  return all;
}

// voice returns a file of two seconds.
function voice(rate, start) {
  const head = Buffer.alloc(19);
  head.write("OpusHead");
  head[8] = head[9] = 1; // version, channels
  head.writeUInt16LE(312, 10); // samples to skip
  head.writeUInt32LE(rate, 12);
  const tags = Buffer.from("OpusTags\x01\0\0\0x\0\0\0\0", "latin1");
  const packets = Array(50).fill(Buffer.from([0x78, 0xff, 0xfe])); // 20 ms each
  return Buffer.concat([page(2, 0, 0, [head]), page(0, 0, 1, [tags]), page(0, start + 48000, 2, packets), page(4, start + 96000, 3, packets)]);
}

const read = async (...file) => (await parseBuffer(voice(...file), { mimeType: "audio/ogg" }, { duration: true })).format;
const usual = await read(16000, 0);
console.log(`rate 16000: duration ${usual.duration}, samples/rate ${usual.numberOfSamples / usual.sampleRate}`);
console.log(`rate 0: duration ${(await read(0, 0)).duration}`);
console.log(`cut after ten seconds: duration ${(await read(16000, 480000)).duration}`);
JS
npm install --silent --no-audit --no-fund --ignore-scripts music-metadata@11.16.1 >/dev/null 2>&1
got=$(node main.mjs)
echo "$got"
[ "$got" = "$want" ]
