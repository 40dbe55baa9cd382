//go:build browser

package inspect_test

// The JSON of a view, as much of it as these tests fill in.
type (
	view struct {
		Version int      `json:"version"`
		Source  string   `json:"source"`
		Zero    string   `json:"zero"`
		Live    bool     `json:"live"`
		Dropped int      `json:"dropped"`
		Notes   []string `json:"notes,omitempty"`
		patch
	}
	patch struct {
		Runs    []*run    `json:"runs,omitempty"`
		Spans   []*span   `json:"spans,omitempty"`
		Commits []*commit `json:"commits,omitempty"`
		Calls   []*call   `json:"calls,omitempty"`
		Effects []*effect `json:"effects,omitempty"`
	}
	run struct {
		ID        string   `json:"id"`
		Parent    string   `json:"parent,omitempty"`
		Thread    string   `json:"thread"`
		Agent     string   `json:"agent"`
		Mode      string   `json:"mode,omitempty"`
		Input     string   `json:"input"`
		Status    string   `json:"status"`
		Reason    string   `json:"reason,omitempty"`
		Start     float64  `json:"start"`
		End       *float64 `json:"end,omitempty"`
		Steps     int      `json:"steps"`
		TokensIn  int      `json:"tokens_in"`
		TokensOut int      `json:"tokens_out"`
		Conflicts int      `json:"conflicts"`
		Retries   int      `json:"retries"`
		Blocked   int      `json:"blocked"`
		Failed    int      `json:"failed"`
		Base      []change `json:"base"`
		BaseRev   int      `json:"base_rev"`
	}
	span struct {
		ID        string         `json:"id"`
		Run       string         `json:"run"`
		Parent    string         `json:"parent,omitempty"`
		Kind      string         `json:"kind"`
		Name      string         `json:"name"`
		Start     float64        `json:"start"`
		End       *float64       `json:"end,omitempty"`
		Plugin    string         `json:"plugin,omitempty"`
		Hook      string         `json:"hook,omitempty"`
		Tier      int            `json:"tier,omitempty"`
		Step      int            `json:"step,omitempty"`
		Phase     string         `json:"phase,omitempty"`
		Round     int            `json:"round,omitempty"`
		Call      string         `json:"call,omitempty"`
		Try       int            `json:"try,omitempty"`
		Status    string         `json:"status"`
		Text      string         `json:"text,omitempty"`
		RevBefore *int           `json:"rev_before,omitempty"`
		RevAfter  *int           `json:"rev_after,omitempty"`
		Facts     map[string]any `json:"facts,omitempty"`
	}
	commit struct {
		ID        string     `json:"id"`
		Run       string     `json:"run"`
		Rev       int        `json:"rev"`
		At        float64    `json:"at"`
		Step      int        `json:"step"`
		Phase     string     `json:"phase,omitempty"`
		PhaseSpan string     `json:"phase_span,omitempty"`
		Round     int        `json:"round,omitempty"`
		Retry     bool       `json:"retry"`
		Writes    []write    `json:"writes"`
		Changes   []change   `json:"changes"`
		Conflicts []conflict `json:"conflicts,omitempty"`
	}
	write struct {
		Plugin string `json:"plugin"`
		Hook   string `json:"hook,omitempty"`
		Key    string `json:"key"`
		Entry  string `json:"entry,omitempty"`
		Op     string `json:"op"`
		Value  any    `json:"value,omitempty"`
	}
	change struct {
		Key    string   `json:"key"`
		Entry  string   `json:"entry,omitempty"`
		At     int      `json:"at,omitempty"`
		Value  any      `json:"value,omitempty"`
		Cut    int      `json:"cut,omitempty"`
		Hidden bool     `json:"hidden,omitempty"`
		Why    []string `json:"why"`
	}
	conflict struct {
		Key        string  `json:"key"`
		Entry      string  `json:"entry,omitempty"`
		Winner     string  `json:"winner"`
		WinnerHook string  `json:"winner_hook,omitempty"`
		Loser      string  `json:"loser"`
		Hook       string  `json:"hook,omitempty"`
		Fate       string  `json:"fate"`
		Lost       []write `json:"lost"`
	}
	call struct {
		ID          string       `json:"id"`
		Call        string       `json:"call"`
		Run         string       `json:"run"`
		Step        int          `json:"step"`
		Tool        string       `json:"tool"`
		Args        any          `json:"args"`
		Span        string       `json:"span,omitempty"`
		Status      string       `json:"status"`
		Outcome     string       `json:"outcome,omitempty"`
		Result      any          `json:"result,omitempty"`
		Error       bool         `json:"error"`
		Votes       []vote       `json:"votes"`
		Resolutions []resolution `json:"resolutions"`
		Clashes     []string     `json:"clashes"`
		Edits       []edit       `json:"edits"`
		Tickets     []ticket     `json:"tickets"`
		Why         []string     `json:"why"`
	}
	vote struct {
		Pass     int    `json:"pass"`
		Plugin   string `json:"plugin"`
		Gate     string `json:"gate"`
		Decision string `json:"decision"`
		Reason   string `json:"reason,omitempty"`
	}
	resolution struct {
		Pass     int    `json:"pass"`
		Decision string `json:"decision"`
		Plugin   string `json:"plugin,omitempty"`
		Cause    string `json:"cause"`
		Reason   string `json:"reason,omitempty"`
	}
	edit struct {
		Plugin string `json:"plugin"`
		Before any    `json:"before"`
		After  any    `json:"after"`
	}
	ticket struct {
		ID       string `json:"id"`
		Kind     string `json:"kind"`
		Message  string `json:"message"`
		Plugin   string `json:"plugin"`
		Answered bool   `json:"answered"`
		Approved bool   `json:"approved"`
		By       string `json:"by,omitempty"`
		Reason   string `json:"reason,omitempty"`
	}
	effect struct {
		ID      string  `json:"id"`
		Span    string  `json:"span,omitempty"`
		Run     string  `json:"run"`
		Effect  string  `json:"effect"`
		Plugin  string  `json:"plugin"`
		Handler string  `json:"handler"`
		At      float64 `json:"at"`
		Rev     int     `json:"rev"`
		Error   string  `json:"error,omitempty"`
		Step    int     `json:"step"`
		Phase   string  `json:"phase"`
	}
)
