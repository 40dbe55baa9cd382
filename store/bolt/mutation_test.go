package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/store/bolt"
)

const sector = 512

// survey is all that a store has to say, in comparable form.
type survey struct {
	threads string
	images  map[string]string
	lanes   string
	depths  string
	dead    string
	claims  string
}

// look reads everything. Errors other than engine.ErrCorrupt, and panics, fail the test.
func look(t *testing.T, j *bolt.Journal) (s survey, damaged int) {
	ctx := context.Background()
	note := func(err error) bool {
		if err == nil {
			return true
		}
		damaged++
		require.ErrorIs(t, err, engine.ErrCorrupt)
		return false
	}
	ids, err := j.Threads(ctx, "", 100)
	if note(err) {
		s.threads = fmt.Sprint(ids)
	}
	s.images = map[string]string{}
	for _, id := range mutantThreads {
		image, err := j.Load(ctx, id, 0)
		if note(err) {
			s.images[id] = fmt.Sprintf("%+v", image)
		}
	}
	lanes, err := j.Lanes(ctx, "")
	if note(err) {
		s.lanes = fmt.Sprint(lanes)
	}
	mail, err := j.Depth(ctx, "mail")
	fax, faxErr := j.Depth(ctx, "fax")
	if note(errors.Join(err, faxErr)) {
		s.depths = fmt.Sprint(mail, fax)
	}
	dead, err := j.Dead(ctx, "fax", 100)
	if note(err) {
		s.dead = fmt.Sprint(dead)
	}
	claims, err := j.Claim(ctx, "mail", "w", 100, time.Hour)
	if note(err) {
		for i := range claims {
			claims[i].Token = 0
		}
		s.claims = fmt.Sprintf("%+v", claims)
	}
	return s, damaged
}

var mutantThreads = []string{"a", "b", "c", "last", "never"}

// mutant is a store to be damaged: its file, its file some commits ago, and what it has
// to say in the end and before the last commit.
type mutant struct {
	file, older   []byte
	whole, before survey
	dead          engine.EffectRef
}

func newMutant(t *testing.T) mutant {
	var m mutant
	path := newPath(t)
	now := newClock()
	j := open(t, path, bolt.Options{Now: now.Now})
	random := rand.New(rand.NewPCG(1, 2))
	base := map[string]uint64{}
	add := func(id string, size, snapshot, effects int) {
		c := engine.JournalCommit{Thread: id, Base: base[id], Time: now.Now(), Record: noise(random, size)}
		copy(c.ID[:], noise(random, 16))
		if snapshot > 0 {
			c.Snapshot = noise(random, snapshot)
		}
		for range effects {
			c.Effects = append(c.Effects, engine.JournalEffect{Lane: "mail", Body: noise(random, 40)})
		}
		revision, err := j.Append(context.Background(), c)
		require.NoError(t, err)
		base[id] = revision
	}
	for i := range 24 {
		add(mutantThreads[i%3], 40+i*20, 0, i%2)
	}
	_, err := j.Append(context.Background(), engine.JournalCommit{ID: [16]byte{5}, Thread: "a", Base: base["a"], Effects: []engine.JournalEffect{
		{Lane: "fax", Body: noise(random, 40)}, {Lane: "fax", Body: noise(random, 40)},
	}})
	require.NoError(t, err)
	base["a"]++
	claims, err := j.Claim(context.Background(), "fax", "w", 100, time.Hour)
	require.NoError(t, err)
	for _, c := range claims {
		require.NoError(t, j.Settle(context.Background(), c, engine.Settlement{Dead: true, Error: "refused"}))
	}
	m.dead = claims[0].Ref
	require.NoError(t, j.Close())
	m.older = read(t, path)
	j = open(t, path, bolt.Options{Now: now.Now})
	add("a", 10, 9000, 1)
	add("b", 7000, 50, 0)
	add("c", 10, 0, 2)
	require.NoError(t, j.Close())
	before := read(t, path)
	j = open(t, path, bolt.Options{Now: now.Now})
	add("last", 100, 0, 1)
	require.NoError(t, j.Close())
	m.file = read(t, path)

	var damaged int
	m.whole, damaged = m.open(t, m.file)
	require.Zero(t, damaged)
	m.before, damaged = m.open(t, before)
	require.Zero(t, damaged)
	require.NotEqual(t, m.whole, m.before)
	return m
}

func noise(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func read(t *testing.T, path string) []byte {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// open looks at a store that has this file. damaged is -1 when it does not open.
func (m mutant) open(t *testing.T, file []byte) (s survey, damaged int) {
	path := filepath.Join(t.TempDir(), "mutant.db")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	_, verified := bolt.Verify(path, bolt.Options{})
	now := newClock()
	j, err := bolt.Open(path, bolt.Options{NoSync: true, Now: now.Now})
	if err != nil {
		require.ErrorIs(t, err, engine.ErrCorrupt)
		require.ErrorIs(t, verified, engine.ErrCorrupt)
		return s, -1
	}
	defer j.Close()
	s, damaged = look(t, j)
	if damaged > 0 {
		require.ErrorIs(t, verified, engine.ErrCorrupt, "what a call finds, Verify finds")
		var where *bolt.CorruptError
		require.True(t, errors.As(verified, &where))
		require.GreaterOrEqual(t, where.Offset, int64(0), "with its position")
	}
	// A damaged store must not break when it is written to, either.
	for _, id := range []string{"a", "new"} {
		image, err := j.Load(t.Context(), id, 0)
		if err == nil {
			_, err = j.Append(t.Context(), engine.JournalCommit{ID: [16]byte{9}, Thread: id, Base: image.Revision, Record: make([]byte, 3000)})
		}
		if err != nil {
			require.ErrorIs(t, err, engine.ErrCorrupt)
		}
	}
	if err := j.Requeue(t.Context(), m.dead); err != nil {
		require.ErrorIs(t, err, engine.ErrCorrupt)
	}
	return s, damaged
}

// judge opens a damaged file and tells what became of it: "refused", "partly refused",
// "older" or "unharmed". Everything else fails the test.
func (m mutant) judge(t *testing.T, file []byte) string {
	s, damaged := m.open(t, file)
	if damaged < 0 {
		return "refused"
	}
	whole, before := s.partOf(m.whole), s.partOf(m.before)
	require.True(t, whole || before, "damaged data was returned: %+v", s)
	switch {
	case damaged > 0:
		return "partly refused"
	case !whole:
		return "older"
	}
	return "unharmed"
}

// partOf reports whether all that s says is right.
func (s survey) partOf(right survey) bool {
	for id, image := range s.images {
		if right.images[id] != image {
			return false
		}
	}
	for said, is := range map[string]string{s.threads: right.threads, s.lanes: right.lanes, s.depths: right.depths, s.dead: right.dead, s.claims: right.claims} {
		if said != "" && said != is {
			return false
		}
	}
	return true
}

// Every sector is zeroed, filled, flipped in one bit, overwritten by another, put back to what
// it was some commits ago, and the file cut before it. Each time the store must refuse
// what it does not know to be right, and nothing may end the process.
//
// In a short run each sector gets half of these. FIXPOINT_MUTATIONS=10000 does all, and
// adds so many random ones; FIXPOINT_SEED chooses others.
func TestMutations(t *testing.T) {
	t.Parallel()
	m := newMutant(t)
	seed, err := strconv.ParseUint(os.Getenv("FIXPOINT_SEED"), 10, 64)
	if err != nil {
		seed = 3
	}
	random := rand.New(rand.NewPCG(seed, 4))
	more, _ := strconv.Atoi(os.Getenv("FIXPOINT_MUTATIONS"))
	bits := 5
	if more == 0 {
		bits = 31
	}
	outcomes := map[string]int{}
	mutations := 0
	run := func(name string, mutate func(file []byte) []byte) {
		file := mutate(bytes.Clone(m.file))
		if bytes.Equal(file, m.file) {
			return
		}
		mutations++
		var outcome string
		if !t.Run(name, func(t *testing.T) { outcome = m.judge(t, file) }) {
			// bbolt takes free pages in any order, so the seed alone does not repeat it.
			if kept, err := os.CreateTemp("", "mutant-*.db"); err == nil {
				_, err = kept.Write(file)
				t.Logf("%s: the file is kept as %s (%v)", name, kept.Name(), errors.Join(err, kept.Close()))
			}
			return
		}
		outcomes[outcome]++
	}
	for at := 0; at < len(m.file); at += sector {
		for k, mutation := range []struct {
			name   string
			mutate func(file []byte) []byte
		}{
			{"zeroed", func(f []byte) []byte { clear(f[at : at+sector]); return f }},
			{"filled", func(f []byte) []byte { copy(f[at:at+sector], bytes.Repeat([]byte{0xff}, sector)); return f }},
			{"older", func(f []byte) []byte { copy(f[at:at+sector], m.older[min(at, len(m.older)):]); return f }},
			{"cut", func(f []byte) []byte { return f[:at] }},
			{"flipped", func(f []byte) []byte {
				f[at+random.IntN(sector)] ^= 1 << random.IntN(8)
				return f
			}},
			{"other sector", func(f []byte) []byte {
				copy(f[at:at+sector], m.file[random.IntN(len(f)/sector)*sector:])
				return f
			}},
		} {
			if more > 0 || (at/sector+k)%2 == 0 {
				run(fmt.Sprintf("%s at %d", mutation.name, at), mutation.mutate)
			}
		}
	}
	// The first bytes of each page decide most, so each of their bits is flipped.
	for page := range len(m.file) / os.Getpagesize() {
		for bit := 0; bit < 48*8; bit += bits {
			run(fmt.Sprintf("bit %d of page %d", bit, page), func(f []byte) []byte {
				f[page*os.Getpagesize()+bit/8] ^= 1 << (bit % 8)
				return f
			})
		}
	}
	for n := range more {
		run(fmt.Sprintf("random %d", n), func(f []byte) []byte {
			for range 1 + random.IntN(3) {
				at := random.IntN(len(f))
				switch random.IntN(3) {
				case 0:
					f[at] ^= 1 << random.IntN(8)
				case 1:
					copy(f[at:], noise(random, 1+random.IntN(64)))
				case 2:
					copy(f[at:], m.file[random.IntN(len(f)):][:1])
				}
			}
			return f
		})
	}
	t.Logf("mutations=%d bytes=%d seed=%d outcomes=%v", mutations, len(m.file), seed, outcomes)
	require.Positive(t, outcomes["refused"])
	require.Positive(t, outcomes["partly refused"])
	require.Positive(t, outcomes["unharmed"])
}

// A small bucket is a page inside another page. bbolt trusts the header of such a page, so
// each byte of it has to be looked at before.
func TestMutationsOfSmallBuckets(t *testing.T) {
	t.Parallel()
	m := newMutant(t)
	const bucketHeader, pageHeader = 16, 16
	refused := map[string]int{}
	for _, name := range []string{"counters", "threads", "waiting", "dead"} {
		for at := range m.file {
			page := at + len(name) + bucketHeader
			small := bytes.HasPrefix(m.file[at:], append([]byte(name), make([]byte, 8)...)) // no root of its own
			if !small || page+pageHeader > len(m.file) {
				continue
			}
			for i := range pageHeader {
				for _, b := range []byte{0, 1, 2, 0xff} {
					file := bytes.Clone(m.file)
					file[page+i] = b
					if !bytes.Equal(file, m.file) && m.judge(t, file) == "refused" {
						refused[name]++
					}
				}
			}
		}
		require.GreaterOrEqual(t, refused[name], 3*pageHeader, "mutations of %s", name)
	}
}
