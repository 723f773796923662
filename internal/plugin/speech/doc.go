// Package speech says texts aloud: with services of OpenAI's format, with ElevenLabs, and
// with programs of this machine.
package speech
