// Package matrixtest is a Matrix homeserver in memory, for tests. It is strict: it refuses
// requests without a valid token, unknown endpoints and events that break the rules. A test
// lets people write, reads what they see, and makes requests fail.
package matrixtest
