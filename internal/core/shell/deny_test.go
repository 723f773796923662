package shell_test

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/shell"
)

// TestLookAlikes checks what is denied among commands that look alike.
func TestLookAlikes(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"rm -rf /":                     true,
		"srm -r /":                     true,
		"RM -R /":                      true,
		"rm --recursive /":             true,
		"rm --rec ~":                   true,
		"rm -- -r /":                   false,
		"rm -f /":                      false,
		"rm -rf x":                     false,
		"find / -delete":               true,
		"find / -exec rm {} +":         true,
		"find ~ -execdir /bin/rm {} ;": true,

		"find / -ok rm {} ;":           true,
		"find / -xdev -type f -delete": true,
		"find / -exec ls {} +":         false,
		"find / -exec":                 false,
		"find / -print rm":             false,
		"find x -delete":               false,
		"find / -name x -delete":       false,
		"chmod -R 777 /":               true,
		"chown -R me /etc":             true,
		"chgrp -R me /usr":             true,
		"chmod 777 /":                  false,

		"chmod -R 777 x":      false,
		"mkfs /dev/sda1":      true,
		"mkfs.ext4 /dev/sda1": true,
		"mke2fs x":            true,
		"newfs x":             true,

		"mkfs --help":        false,
		"mkfs -V":            false,
		"dd if=x of=y":       true,
		"dd of=/dev/sda":     true,
		"dd of=x":            false,
		"tee /dev/sda":       true,
		"cp x /dev/sda":      true,
		"mv x /dev/nvme0n1":  true,
		"install x /dev/sda": true,

		"shred /dev/sda":      true,
		"wipefs -a /dev/sda":  true,
		"wipefs /dev/sda":     false,
		"blkdiscard /dev/sda": true,
		"cp x /dev/null":      false,
		"cat /dev/sda":        false,
	} {
		if got := (shell.Judge{Dir: "/work", Home: "/home/anna"}).Parse(command).Denied; (got != "") != want {
			t.Errorf("%s: denied %q, want %v", command, got, want)
		}
	}
	// From a length on a command is not read, and nothing is known of it.
	for n, want := range map[int]bool{8 << 10: true, 8<<10 + 1: false} {
		command := "ls " + strings.Repeat("x", n-len("ls "))
		if got := (shell.Judge{Dir: "/work", Home: "/home/anna"}).Parse(command).Changes; (got == "") != want {
			t.Errorf("%d bytes: changes %q, want none: %v", n, got, want)
		}
	}
}
