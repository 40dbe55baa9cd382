package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddd26017/fixpoint/cmd/fixpoint/internal/terminal"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

func newExplain(stdio IO) *cobra.Command {
	var store string
	var asJSON bool
	var q recording.Query
	c := &cobra.Command{
		Use:   "explain [TRACE] KEY[@REVISION]",
		Short: "Say who wrote a value, over what, and who lost a conflict over it",
		Long: "Say who wrote a key of the state, in which phase and round, from what to what, what it\n" +
			"overwrote, and who lost a conflict over it and what the retry did. With @REVISION it is\n" +
			"the write that counts at that revision, otherwise the last one.\n\n" +
			"KEY is the name of a key, or KEY[ENTRY] an entry of a table or a set.\n\n" + pastHelp + "\n\n" +
			"Exit code: 0 when there is an answer, 1 when the trace cannot be read, 2 for wrong\narguments, such as a key that nobody wrote.",
		Example: "  fixpoint explain run.jsonl budget.spent\n" +
			"  fixpoint explain run.jsonl 'files.seen[go.mod]@41'\n" +
			"  fixpoint explain --store runs fixpoint.lifecycle --thread thread-1",
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return verb(func(ctx context.Context, _ string) error {
			p, args, err := pastOf(c, args, store, "KEY[@REVISION]")
			if err != nil {
				return err
			}
			if q.Key, q.Entry, q.Revision, err = keyArgument(args[0]); err != nil {
				return err
			}
			rec, err := p.read(ctx)
			if err != nil {
				return err
			}
			answer, err := rec.Explain(q)
			if err != nil {
				return unknown(err, "; --thread or --run says which")
			}
			if err := remarks(stdio.Err, rec); err != nil {
				return err
			}
			if asJSON {
				return writeJSON(stdio.Out, answer)
			}
			return paragraph(stdio.Out, answer.String())
		})(c, nil)
	}
	c.ValidArgsFunction = completed(&store)
	storeFlag(c, &store)
	c.Flags().StringVar(&q.Thread, "thread", "", "the `id` of the thread, where there are several")
	c.Flags().StringVar(&q.Run, "run", "", "the `id` of a run of the thread, which the answer does not go beyond")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// unknown is the fault of a question that a recording has no answer to. The hint is for
// one that has several.
func unknown(err error, hint string) error {
	if !errors.Is(err, recording.ErrAmbiguous) {
		hint = ""
	}
	return usageError{fmt.Errorf("fixpoint: %s%s", strings.TrimPrefix(err.Error(), "recording: "), hint)}
}

// keyArgument reads KEY, KEY[ENTRY], and either with @REVISION.
func keyArgument(text string) (key, entry string, revision uint64, err error) {
	key = text
	if at := strings.LastIndexByte(text, '@'); at >= 0 && !strings.HasSuffix(text, "]") {
		if revision, err = strconv.ParseUint(text[at+1:], 10, 64); err != nil || revision == 0 {
			return "", "", 0, usageError{fmt.Errorf("fixpoint: %q is no revision; write KEY@REVISION with a number from 1 on, as the inspector or \"fixpoint history\" shows it", text[at+1:])}
		}
		key = text[:at]
	}
	if before, rest, found := strings.Cut(key, "["); found && strings.HasSuffix(rest, "]") {
		key, entry = before, strings.TrimSuffix(rest, "]")
		if entry == "" {
			return "", "", 0, usageError{fmt.Errorf("fixpoint: %q names no entry between its brackets", text)}
		}
	}
	if key == "" {
		return "", "", 0, usageError{fmt.Errorf("fixpoint: %q names no key; write KEY, KEY[ENTRY] or KEY@REVISION", text)}
	}
	return key, entry, revision, nil
}

// remarks writes what to know of a recording besides the answer.
func remarks(to io.Writer, rec *recording.Recording) error {
	for _, note := range rec.View().Notes {
		if _, err := fmt.Fprintf(to, "note: %s\n", terminal.Clean(note, 1000)); err != nil {
			return err
		}
	}
	return nil
}

// paragraph writes sentences in which texts from anywhere may be, line by line.
func paragraph(to io.Writer, text string) error {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		words := strings.TrimLeft(line, " ")
		if _, err := fmt.Fprintf(to, "%s%s\n", line[:len(line)-len(words)], terminal.Clean(words, len(words))); err != nil {
			return err
		}
	}
	return nil
}
