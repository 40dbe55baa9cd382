package lineedit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/lineedit"
	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/screentest"
)

// bench is an editor at which a test types.
type bench struct {
	*lineedit.Editor
	t           *testing.T
	keys        *io.PipeWriter
	screen      *screentest.Screen
	interrupted int
}

func newBench(t *testing.T, columns, rows int) *bench {
	in, keys := io.Pipe()
	b := &bench{t: t, keys: keys, screen: screentest.New(columns)}
	b.Editor = lineedit.New(lineedit.Config{
		In: in, Out: b.screen, Size: func() (int, int) { return columns, rows }, Interrupt: func() { b.interrupted++ },
	})
	return b
}

func (b *bench) press(text string) {
	b.t.Helper()
	_, err := io.WriteString(b.keys, text)
	require.NoError(b.t, err)
	synctest.Wait()
}

type read struct {
	text string
	err  error
}

// ask reads a line in the background.
func (b *bench) ask(ctx context.Context, q lineedit.Query) chan read {
	got := make(chan read, 1)
	go func() {
		text, err := b.ReadLine(ctx, q)
		got <- read{text, err}
	}()
	synctest.Wait()
	return got
}

// bubble runs a test whose editor ends with it.
func bubble(t *testing.T, columns, rows int, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, columns, rows)
		defer func() {
			require.NoError(t, b.keys.Close())
			b.Close()
			require.Empty(t, b.screen.Unknown())
		}()
		test(t, b)
	})
}

const paste, unpaste = "\x1b[200~", "\x1b[201~"

// Keys make a line.
func TestKeys(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"abc\r", "abc"},
		{"abc\x01x\x05y\r", "xabcy"},
		{"abc\x02\x02x\x06y\r", "axbyc"},
		{"abc\x1b[D\x1b[Dx\x1b[Cy\x1b[Hh\x1b[Fe\r", "haxbyce"},
		{"ac\x1bODb\x1bOH1\r", "1abc"},
		{"one two three\x17\x17x\r", "one x"},
		{"one two\x1bb\x1bb\x1bfX\x1b[1;5CY\x1b[1;5DZ\r", "oneX ZtwoY"},
		{"abc\x7f\x08\r", "a"},
		{"abc\x01\x1b[3~\x04\r", "c"},
		{"abc\x02\x15\r", "c"},
		{"abc\x02\x0b\r", "ab"},
		{"one\x1b\rtwo\r", "one\ntwo"},
		{"äöü\x7f\x02x\r", "äxö"},
		{"日本語\x7f\x02x\r", "日x本"},
		{"e\u0301a\x02\x7f\r", "a"},
		{"👩‍👧x\x02\x7f\r", "x"},
		{"a\xffb\x1b[99;99Zc\x1b[\x00~\x00d\x1bx\r", "abcd"},
		{paste + "one\r\ntwo\rthree\n\x1b[31m\x03\tx" + unpaste + " end\r", "one\ntwo\nthree\n[31m\tx end"},
		{"\r", ""},
	} {
		bubble(t, 80, 24, func(t *testing.T, b *bench) {
			got := b.ask(t.Context(), lineedit.Query{Prompt: "> "})
			b.press(c.keys)
			require.Equal(t, read{text: c.want}, <-got, "%q", c.keys)
			// The same, key by key.
			got = b.ask(t.Context(), lineedit.Query{Prompt: "> "})
			for i := range len(c.keys) {
				b.press(c.keys[i : i+1])
			}
			require.Equal(t, read{text: c.want}, <-got, "%q", c.keys)
		})
	}
}

// What is on the screen is the prompt and the line, however narrow it is and however wide
// the characters are, with the cursor in front of the right one.
func TestScreen(t *testing.T) {
	bubble(t, 11, 24, func(t *testing.T, b *bench) { // ten columns are used
		got := b.ask(t.Context(), lineedit.Query{Prompt: "a › "})
		b.press("123456789")
		require.Equal(t, "a › 123456\n789", b.screen.Text())
		b.press("\x01日本")
		require.Equal(t, "a › 日本12\n3456789", b.screen.Text())
		row, column := b.screen.Cursor()
		require.Equal(t, []int{0, 8}, []int{row, column})
		b.press("語\x05")
		require.Equal(t, "a › 日本語\n123456789", b.screen.Text())
		row, column = b.screen.Cursor()
		require.Equal(t, []int{1, 9}, []int{row, column})
		b.press("0") // and the cursor does not fit any more
		row, column = b.screen.Cursor()
		require.Equal(t, []int{2, 0}, []int{row, column})
		_, err := b.Write([]byte("above\nand\n"))
		require.NoError(t, err)
		require.Equal(t, "above\nand\na › 日本語\n1234567890\n", b.screen.Text())
		b.press("\x15x\x0c")
		require.Equal(t, "a › x", b.screen.Text())
		b.press("\r")
		require.Equal(t, read{text: "x"}, <-got)
		require.Equal(t, "a › x\n", b.screen.Text())
	})
}

// A line that is higher than the screen is seen around the cursor.
func TestHighLine(t *testing.T) {
	bubble(t, 11, 5, func(t *testing.T, b *bench) {
		got := b.ask(t.Context(), lineedit.Query{Prompt: "> ", Text: strings.Repeat("0123456789", 20)})
		require.Equal(t, 3, strings.Count(b.screen.Text(), "\n"))
		b.press("\x01")
		require.Equal(t, "> 01234567\n8901234567\n8901234567\n8901234567", b.screen.Text())
		b.press("\r")
		require.Len(t, (<-got).text, 200)
	})
}

// Of two lines that are asked for, the later one is edited, and the earlier one comes
// back as it was.
func TestTwoLines(t *testing.T) {
	bubble(t, 40, 24, func(t *testing.T, b *bench) {
		first := b.ask(t.Context(), lineedit.Query{Prompt: "first > "})
		b.press("half")
		second := b.ask(t.Context(), lineedit.Query{Prompt: "second > "})
		require.Equal(t, "second >", b.screen.Text())
		b.press("y\r")
		require.Equal(t, read{text: "y"}, <-second)
		require.Equal(t, "second > y\nfirst > half", b.screen.Text())
		b.press(" way\r")
		require.Equal(t, read{text: "half way"}, <-first)
	})
}

// What is typed behind a line that holds is for the next one, or for the one below when
// there is none.
func TestHolds(t *testing.T) {
	bubble(t, 40, 24, func(t *testing.T, b *bench) {
		below := b.ask(t.Context(), lineedit.Query{Prompt: "below > "})
		b.press("half")
		first := b.ask(t.Context(), lineedit.Query{Prompt: "first > ", Holds: true})
		b.press("1\r2\r3")
		require.Equal(t, read{text: "1"}, <-first)
		require.Equal(t, "first > 1\n", b.screen.Text())
		_, err := b.Write([]byte("above\n"))
		require.NoError(t, err)
		require.Equal(t, read{text: "2"}, <-b.ask(t.Context(), lineedit.Query{Prompt: "second > ", Holds: true}))
		require.Equal(t, "first > 1\nabove\nsecond > 2\n", b.screen.Text())
		b.Release()
		require.Equal(t, "first > 1\nabove\nsecond > 2\nbelow > half3", b.screen.Text())
		b.Release()
		b.press("\r")
		require.Equal(t, read{text: "half3"}, <-below)
	})
}

// A line that is given up returns what was typed, and what is typed while there is none is
// for the next.
func TestGivenUp(t *testing.T) {
	bubble(t, 40, 24, func(t *testing.T, b *bench) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		got := b.ask(ctx, lineedit.Query{Prompt: "> ", Text: "start"})
		b.press("ed")
		cancel(enough)
		require.Equal(t, read{"started", enough}, <-got)
		require.Equal(t, "", b.screen.Text())
		b.press("ahead\rmo")
		require.Equal(t, read{text: "ahead"}, <-b.ask(t.Context(), lineedit.Query{Prompt: "> "}))
		got = b.ask(t.Context(), lineedit.Query{Prompt: "> "})
		b.press("re\r")
		require.Equal(t, read{text: "more"}, <-got)
	})
}

func TestInterruptAndEnd(t *testing.T) {
	bubble(t, 40, 24, func(t *testing.T, b *bench) {
		got := b.ask(t.Context(), lineedit.Query{Prompt: "> "})
		b.press("abc\x03")
		require.Equal(t, read{err: lineedit.ErrInterrupt}, <-got)
		require.Equal(t, "> abc^C\n", b.screen.Text())
		b.press("x\x03")
		require.Equal(t, 1, b.interrupted, "while no line is read")
		got = b.ask(t.Context(), lineedit.Query{Prompt: "> "})
		b.press("\x04")
		require.Equal(t, read{err: io.EOF}, <-got)
		// The end of the input ends all lines, and those that are asked for later.
		first, second := b.ask(t.Context(), lineedit.Query{}), b.ask(t.Context(), lineedit.Query{})
		require.NoError(t, b.keys.Close())
		require.Equal(t, read{err: io.EOF}, <-first)
		require.Equal(t, read{err: io.EOF}, <-second)
		require.Equal(t, read{err: io.EOF}, <-b.ask(t.Context(), lineedit.Query{}))
	})
}

// A secret is never on the screen.
func TestHidden(t *testing.T) {
	bubble(t, 40, 24, func(t *testing.T, b *bench) {
		got := b.ask(t.Context(), lineedit.Query{Prompt: "secret > ", Hidden: true})
		b.press("hunter2")
		require.Equal(t, "secret >", b.screen.Text())
		b.press("\r")
		require.Equal(t, read{text: "hunter2"}, <-got)
		require.Equal(t, "secret >\n", b.screen.Text())
	})
}

func TestComplete(t *testing.T) {
	words := []string{"/help", "/history", "/hide\x1b", "dir/", "name=", "日本", "日光"}
	q := lineedit.Query{Prompt: "> ", Complete: func(text string) (int, []string) {
		from := strings.LastIndex(text, " ") + 1
		var all []string
		for _, w := range words {
			if strings.HasPrefix(w, text[from:]) {
				all = append(all, w)
			}
		}
		return from, all
	}}
	for keys, want := range map[string]string{
		"/he\t\r": "/help ", "/h\tx\r": "/hx", "/hi\t\r": "/history ", "x di\t\r": "x dir/", "n\tv\r": "name=v", "日\t光\r": "日光", "zz\t\r": "zz",
		"/he!\x02\t\r": "/help !",
	} {
		bubble(t, 40, 24, func(t *testing.T, b *bench) {
			got := b.ask(t.Context(), q)
			b.press(keys)
			require.Equal(t, read{text: want}, <-got, "%q", keys)
			if keys == "/h\tx\r" {
				require.Equal(t, "/help  /history\n> /hx\n", b.screen.Text())
			}
		})
	}
}

// FuzzKeys. Whatever is typed, the line holds no control characters but breaks and tabs,
// the cursor stays on the screen, and the editor goes on.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"abc", "\x1b[D日本\x7f", paste + "x\ny" + unpaste, "\x1b", "\x1b[200~x", "e\u0301\x02\x02👩‍👧", "\x0c\x17\x10\x0e\t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, keys string) {
		keys = strings.NewReplacer("\r", "", "\n", "", "\x03", "", "\x04", "").Replace(keys)
		bubble(t, 20, 10, func(t *testing.T, b *bench) {
			got := b.ask(t.Context(), lineedit.Query{Prompt: "> "})
			b.press(keys)
			row, column := b.screen.Cursor()
			require.Less(t, column, 20)
			require.Less(t, row, strings.Count(b.screen.Text(), "\n")+1)
			b.press("\x1b[Z" + unpaste) // ends what is half
			b.press("\x01#\r")
			select {
			case r := <-got:
				require.NoError(t, r.err)
				require.Contains(t, r.text, "#")
				require.Equal(t, r.text, ansi.Strip(r.text), fmt.Sprintf("%q", r.text))
			default:
				t.Fatalf("it hangs after %q", keys)
			}
		})
	})
}
