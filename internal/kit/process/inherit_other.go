//go:build !unix

package process

// KeepDescriptors does nothing: a program is given the handles that are named
// when it is started.
func KeepDescriptors() {}
