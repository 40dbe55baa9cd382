package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	serve "github.com/ddd26017/fixpoint/contrib/http"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
)

// A run is started, followed to its question, answered, and followed to its end from
// where the client left off. A program listens with an [http.Server] of its own.
func Example() {
	s, err := serve.New(engine.Config{
		Model:   enginetest.NewScript(enginetest.Call("c1", "pay", map[string]int{"amount": 3}), enginetest.Say("It is paid.")),
		Agents:  []engine.AgentSpec{{ID: "clerk"}},
		Plugins: []engine.Plugin{till()},
	}, serve.Options{
		Authorize: func(r *http.Request) (serve.Principal, error) { // a real one looks the token up
			user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok {
				return serve.Principal{}, fmt.Errorf("no token")
			}
			return serve.Principal{ID: user}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	web := httptest.NewServer(s)
	defer web.Close()

	var run serve.View
	call(web, "POST", "/v1/runs", `{"thread":"shop","text":"pay 3"}`, &run)
	last := follow(web, run, "", "run_suspended")

	call(web, "GET", "/v1/runs/"+run.Run, "", &run)
	fmt.Println(run.Status, run.Tickets[0].Message)
	call(web, "POST", "/v1/runs/"+run.Run+"/decisions", `{"decisions":[{"id":"d1","approved":true}]}`, &run)
	follow(web, run, last, "")

	call(web, "GET", "/v1/runs/"+run.Run, "", &run)
	fmt.Println(run.Status, run.Text)
	if err := s.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// started: pay 3
	// waiting Pay?
	// answered: true
	// done: natural
	// done It is paid.
}

// call sends a request and reads the answer.
func call(web *httptest.Server, method, path, body string, answer any) {
	resp := ask(web, method, path, body, "")
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		log.Fatal(resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		log.Fatal(err)
	}
}

func ask(web *httptest.Server, method, path, body, last string) *http.Response {
	r, err := http.NewRequest(method, web.URL+path, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer ann")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Last-Event-ID", last)
	resp, err := web.Client().Do(r)
	if err != nil {
		log.Fatal(err)
	}
	return resp
}

// follow prints some events of a run, until one of the type came or there are no more,
// and returns the id of the last.
func follow(web *httptest.Server, run serve.View, last, until string) string {
	resp := ask(web, "GET", "/v1/runs/"+run.Run+"/events", "", last)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for kind := ""; lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "id":
			last = value
		case "event":
			kind = value
		case "data":
			var e struct {
				Input, Reason string
				Approved      bool
			}
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				log.Fatal(err)
			}
			switch kind {
			case "run_started":
				fmt.Println("started:", e.Input)
			case "ticket_answered":
				fmt.Println("answered:", e.Approved)
			case "run_finished":
				fmt.Println("done:", e.Reason)
			}
			if kind == until {
				return last
			}
		}
	}
	return last
}
