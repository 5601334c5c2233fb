package ledger

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOverlay compares the pending writes of a batch with a plain map, over commands
// that are refused, batches, and keys and values that the caller changes afterwards.
func TestOverlay(t *testing.T) {
	type write struct {
		value   string
		deleted bool
	}
	rapid.Check(t, func(t *rapid.T) {
		var o overlay
		o.init()
		batch, before := map[string]write{}, map[string]write{}
		key := make([]byte, keyHead+1) // one slice for every key, as Tx has it
		name := func() string {
			copy(key, "grupo y cuenta")
			key[keyHead] = byte(rapid.IntRange('a', 'f').Draw(t, "key"))
			return string(key)
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k := name()
				value := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "value")
				deleted := rapid.Bool().Draw(t, "deleted")
				o.set(key, value, deleted)
				batch[k] = write{string(value), deleted}
				clear(value)
				clear(key)
			},
			"begin":    func(*rapid.T) { o.begin(); before = maps.Clone(batch) },
			"rollback": func(*rapid.T) { o.rollback(); batch = maps.Clone(before) },
			"reset": func(*rapid.T) {
				o.reset()
				clear(batch)
				clear(before)
			},
			"": func(t *rapid.T) {
				for c := byte('a'); c <= 'f'; c++ {
					name()
					key[keyHead] = c
					e := o.find(key)
					want, ok := batch[string(key)]
					if ok != (e != nil) || ok && (string(e.value) != want.value || e.deleted != want.deleted || !bytes.Equal(e.key, key)) {
						t.Fatalf("find(%q) = %+v; want %+v, %v", key, e, want, ok)
					}
				}
				var keys []string
				for _, e := range o.within([]byte("grupo")) {
					keys = append(keys, string(e.key))
				}
				if want := slices.Sorted(maps.Keys(batch)); !slices.Equal(keys, want) {
					t.Fatalf("within = %q; want %q", keys, want)
				}
			},
		})
	})
}
