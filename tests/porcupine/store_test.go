// Checks exported histories (`quakeproof report RUN --format history`) with porcupine.
//
// For every *.jsonl in the directory that QUAKEPROOF_HISTORIES names, writes
// <file>.result: one line for each epoch with its number and what porcupine found.
package porcupine_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

type line struct {
	Type     string       `json:"type"`
	Epoch    int          `json:"epoch"`
	Base     uint64       `json:"base"`
	Initial  [][2]uint64  `json:"initial"`
	Client   int          `json:"client"`
	CallNs   int64        `json:"callNs"`
	ReturnNs *int64       `json:"returnNs"`
	Id       uint64       `json:"id"`
	Change   string       `json:"change"`
	Expected *uint64      `json:"expected"`
	Result   string       `json:"result"`
	Revision *uint64      `json:"revision"`
	Found    bool         `json:"found"`
	Present  bool         `json:"present"`
	Head     uint64       `json:"head"`
	At       uint64       `json:"at"`
	Fresh    bool         `json:"fresh"`
	Objects  [][2]*uint64 `json:"objects"`
}

// From here on ids are not the ledger's: ranges don't have these objects.
const own = 1 << 62

// One object. Without exact, its revision is known to be higher than the one given.
type cell struct {
	revision uint64
	exact    bool
}

// The whole store: the revision that it has reached at least, and its objects.
type store struct {
	revision uint64
	objects  map[uint64]cell
}

func (s store) with(id uint64, c cell) store {
	objects := maps.Clone(s.objects)
	if objects == nil {
		objects = map[uint64]cell{}
	}
	objects[id] = c
	return store{s.revision, objects}
}

func (s store) shows(id uint64, revision *uint64, acked map[[2]uint64]bool) (store, bool) {
	c, found := s.objects[id]
	switch {
	case !found:
		return s, false
	case revision == nil || c.exact && c.revision == *revision:
		return s, true
	case c.exact || *revision <= c.revision || acked[[2]uint64{id, *revision}]:
		return s, false
	}
	return s.with(id, cell{*revision, true}), true
}

// What answers say of revisions: of each object, and of all writes, ascending. A
// write can only take effect when each with a lower revision has. Without saying so,
// porcupine would try out every increasing part of what was under way at once.
type known struct {
	acked     map[[2]uint64]bool
	revisions []uint64
}

func (k known) skips(from, to uint64) bool {
	next, _ := slices.BinarySearch(k.revisions, from+1)
	return next < len(k.revisions) && k.revisions[next] < to
}

func (s store) write(op *line, known known) []any {
	acked := known.acked
	_, found := s.objects[op.Id]
	holds := found == (op.Change == "update")
	at := s
	if holds && op.Expected != nil {
		at, holds = s.shows(op.Id, op.Expected, acked)
	}
	switch op.Result {
	case "conflict":
		c := s.objects[op.Id]
		if !holds || op.Expected != nil && !c.exact {
			return []any{s}
		}
		return nil
	case "unknown":
		if !holds {
			return []any{s}
		}
		return []any{s, at.with(op.Id, cell{at.objects[op.Id].revision, false})}
	}
	if !holds {
		return nil
	}
	if op.Revision == nil {
		return []any{at.with(op.Id, cell{at.objects[op.Id].revision, false})}
	}
	if *op.Revision <= at.revision || known.skips(at.revision, *op.Revision) {
		return nil
	}
	next := at.with(op.Id, cell{*op.Revision, true})
	next.revision = *op.Revision
	return []any{next}
}

func (s store) rangeRead(op *line, known known) []any {
	if op.Head < s.revision || known.skips(s.revision, op.Head+1) {
		return nil
	}
	ledger := 0
	for id := range s.objects {
		if id < own {
			ledger++
		}
	}
	if len(op.Objects) != ledger {
		return nil
	}
	next := s
	for _, object := range op.Objects {
		var ok bool
		if next, ok = next.shows(*object[0], object[1], known.acked); !ok {
			return nil
		}
	}
	next.revision = op.Head
	return []any{next}
}

func model(base uint64, initial [][2]uint64, known known) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any {
			objects := map[uint64]cell{}
			for _, object := range initial {
				objects[object[0]] = cell{object[1], true}
			}
			return []any{store{base, objects}}
		},
		Step: func(state, input, _ any) []any {
			s, op := state.(store), input.(*line)
			switch op.Type {
			case "write":
				return s.write(op, known)
			case "range":
				return s.rangeRead(op, known)
			}
			if !op.Found {
				if _, found := s.objects[op.Id]; found {
					return nil
				}
				return []any{s}
			}
			if next, ok := s.shows(op.Id, op.Revision, known.acked); ok {
				return []any{next}
			}
			return nil
		},
		Equal: func(a, b any) bool {
			x, y := a.(store), b.(store)
			return x.revision == y.revision && maps.Equal(x.objects, y.objects)
		},
	}
	return nondeterministic.ToModel()
}

// settle does what etcd's own robustness tests do: a write of unknown outcome that
// nobody can have seen is left out, one that was seen at a revision took effect there.
func settle(begin *line, operations []*line, events []*line) []*line {
	acked, seen, involved := map[[2]uint64]bool{}, map[uint64]map[uint64]bool{}, map[uint64]int{}
	for _, object := range begin.Initial {
		acked[object] = true
	}
	note := func(id uint64, revision *uint64) {
		if revision == nil {
			involved[id] = math.MaxInt32
			return
		}
		if seen[id] == nil {
			seen[id] = map[uint64]bool{}
		}
		seen[id][*revision] = true
	}
	for _, op := range operations {
		switch {
		case op.Type == "write" && op.Result == "unknown":
			involved[op.Id]++
		case op.Type == "write":
			involved[op.Id]++
			if op.Revision != nil {
				acked[[2]uint64{op.Id, *op.Revision}] = true
			}
		case op.Type == "read" && op.Found:
			note(op.Id, op.Revision)
		case op.Type == "range":
			for _, object := range op.Objects {
				note(*object[0], object[1])
			}
		}
	}
	for _, event := range events {
		note(event.Id, event.Revision)
	}
	var settled []*line
	for _, op := range operations {
		if op.Type != "write" || op.Result != "unknown" || op.Change != "create" || involved[op.Id] != 1 {
			settled = append(settled, op)
			continue
		}
		var revisions []uint64
		for revision := range seen[op.Id] {
			if !acked[[2]uint64{op.Id, revision}] {
				revisions = append(revisions, revision)
			}
		}
		if len(revisions) == 1 {
			done := *op
			done.Result, done.Revision = "done", &revisions[0]
			settled = append(settled, &done)
		} else if len(revisions) > 1 {
			settled = append(settled, op)
		}
	}
	return settled
}

func check(t *testing.T, begin *line, operations, events []*line) porcupine.CheckResult {
	settled := settle(begin, operations, events)
	known := known{acked: map[[2]uint64]bool{}}
	for _, op := range settled {
		if op.Type == "write" && op.Result == "done" && op.Revision != nil {
			known.acked[[2]uint64{op.Id, *op.Revision}] = true
			known.revisions = append(known.revisions, *op.Revision)
		}
	}
	slices.Sort(known.revisions)
	var history []porcupine.Operation
	for i, op := range settled {
		if op.Type == "range" && (!op.Fresh || op.At != op.Head) {
			continue
		}
		end := int64(math.MaxInt64)
		if op.ReturnNs != nil {
			end = *op.ReturnNs
		}
		// Operations of one client may overlap, so each is a process of its own.
		history = append(history, porcupine.Operation{ClientId: i, Input: op, Call: op.CallNs, Return: end})
	}
	return porcupine.CheckOperationsTimeout(model(begin.Base, begin.Initial, known), history, time.Minute)
}

func TestExportedHistories(t *testing.T) {
	dir := os.Getenv("QUAKEPROOF_HISTORIES")
	if dir == "" {
		t.Skip("QUAKEPROOF_HISTORIES names no directory of exported histories")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories in %s: %v", dir, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			var epochs []*line
			operations, events := map[int][]*line{}, map[int][]*line{}
			lines := bufio.NewScanner(file)
			lines.Buffer(nil, 64<<20)
			for lines.Scan() {
				l := &line{}
				if err := json.Unmarshal(lines.Bytes(), l); err != nil {
					t.Fatal(err)
				}
				switch l.Type {
				case "epoch":
					epochs = append(epochs, l)
				case "event":
					events[l.Epoch] = append(events[l.Epoch], l)
				default:
					operations[l.Epoch] = append(operations[l.Epoch], l)
				}
			}
			if err := lines.Err(); err != nil {
				t.Fatal(err)
			}
			var result strings.Builder
			for _, epoch := range epochs {
				found := check(t, epoch, operations[epoch.Epoch], events[epoch.Epoch])
				fmt.Fprintf(&result, "%d %s\n", epoch.Epoch, found)
			}
			if err := os.WriteFile(name+".result", []byte(result.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}
