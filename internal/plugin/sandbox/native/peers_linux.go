package native

import (
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

const (
	peerEvery = 250 * time.Millisecond // how often the servers of others are looked for
	peerTime  = time.Second            // limit for the answer about them
)

// peers is how a process reaches the servers of others, and they its own. Each keeps a network
// of its own: its launcher listens on the ports of the others, and hands a connection to the
// gateway, which hands it to the launcher of the server.
type peers struct {
	b   *Broker
	key string // "": it reaches none

	asking    sync.Mutex         // held during a question
	listed    chan []launch.Port // receives the answer; capacity 1
	published bool               // guarded by b.mu
	follows   bool               // as above: its servers of others are kept up to date

	mu     sync.Mutex
	shown  []launch.Port // that it was told of
	owners map[launch.Port]*process
}

var _ sandbox.Publisher = (*process)(nil)

// peersKey returns what those have in common who reach each other: nobody gets at what others
// have a right to.
func peersKey(p sandbox.Plan) string {
	if p.Peers == "" {
		return ""
	}
	rights, _ := json.Marshal(p.Rights) // it has texts and a boolean only
	return p.Peers + "\xff" + string(rights)
}

// meet adds a process to those that run.
func (p *process) meet() {
	if p.peers.key == "" {
		return
	}
	b := p.peers.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.peers == nil {
		b.peers = map[string][]*process{}
	}
	b.peers[p.peers.key] = append(b.peers[p.peers.key], p)
	for _, o := range b.peers[p.peers.key] {
		if o.peers.published && o != p {
			p.followLocked()
		}
	}
}

// leave removes a process that has ended.
func (p *process) leave() {
	if p.peers.key == "" {
		return
	}
	b := p.peers.b
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := slices.DeleteFunc(b.peers[p.peers.key], func(o *process) bool { return o == p })
	if b.peers[p.peers.key] = rest; len(rest) == 0 {
		delete(b.peers, p.peers.key)
	}
}

// Publish lets others reach the servers of the process.
func (p *process) Publish() {
	if p.peers.key == "" {
		return
	}
	b := p.peers.b
	b.mu.Lock()
	defer b.mu.Unlock()
	p.peers.published = true
	for _, o := range b.peers[p.peers.key] {
		if o != p {
			o.followLocked()
			if o.peers.published {
				p.followLocked()
			}
		}
	}
}

// followLocked keeps what a process reaches up to date until it has ended.
func (p *process) followLocked() {
	if p.peers.follows {
		return
	}
	p.peers.follows = true
	go func() {
		t := time.NewTicker(peerEvery)
		defer t.Stop()
		for {
			select {
			case <-p.ended:
				return
			case <-t.C:
				before := p.peers.shown
				if now := p.reach(); !slices.Equal(before, now) {
					p.send(launch.Request{Serve: &now})
				}
			}
		}
	}()
}

// others returns the published processes that a process reaches.
func (p *process) others() []*process {
	b := p.peers.b
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.peers[p.peers.key]),
		func(o *process) bool { return o == p || !o.peers.published })
}

// reach finds the servers that a process reaches, and returns their ports. Of two with the
// same port it is that of the first.
func (p *process) reach() []launch.Port {
	if p.peers.key == "" {
		return nil
	}
	owners := map[launch.Port]*process{}
	var ports []launch.Port
	for _, o := range p.others() {
		for _, port := range o.ports() {
			if owners[port] == nil {
				owners[port] = o
				ports = append(ports, port)
			}
		}
	}
	p.peers.mu.Lock()
	defer p.peers.mu.Unlock()
	p.peers.shown, p.peers.owners = ports, owners
	if len(ports) > 0 {
		p.mu.Lock()
		p.shared = true
		p.mu.Unlock()
	}
	return ports
}

// ports returns the ports on which the processes of the command listen.
func (p *process) ports() []launch.Port {
	p.peers.asking.Lock()
	defer p.peers.asking.Unlock()
	select {
	case <-p.peers.listed: // an answer that came too late
	default:
	}
	if !p.send(launch.Request{List: true}) {
		return nil
	}
	select {
	case ports := <-p.peers.listed:
		return ports
	case <-p.ended:
	case <-time.After(peerTime):
	}
	return nil
}

// joinPeer hands a connection of the process to the server that it is for.
func (p *process) joinPeer(port launch.Port, files []*os.File) {
	p.peers.mu.Lock()
	o := p.peers.owners[port]
	p.peers.mu.Unlock()
	if o != nil && len(files) == 1 {
		o.send(launch.Request{Join: &port}, int(files[0].Fd()))
	}
}

// send sends a request to the launcher of a command that has not ended, and reports whether it
// did. The cage is not used again then, because the launcher may get the request late.
func (p *process) send(r launch.Request, fds ...int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.shared = true
	return p.cage.wire.Send(r, fds...) == nil
}
