package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ddd26017/fixpoint/contrib/mcp"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

// A server's tool is one of the agent's, under its gates.
func Example() {
	// Somebody's server; usually a program or a URL.
	clock := sdk.NewServer(&sdk.Implementation{Name: "clock", Version: "1"}, nil)
	clock.AddTool(&sdk.Tool{Name: "time.in", Description: "Tell the time", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "noon, by " + string(r.Params.Arguments)}}}, nil
		})

	ctx := context.Background()
	servers, err := mcp.Connect(ctx, mcp.Options{Servers: []mcp.Server{{Name: "clock", Dial: dial(clock)}}})
	if err != nil {
		log.Fatal(err)
	}
	eng, err := engine.New(engine.Config{
		Plugins: []engine.Plugin{servers},
		Model:   enginetest.NewScript(enginetest.Call("c1", "clock__time_in", inference.JSON(`{"zone":"UTC"}`)), enginetest.Say("It is noon.")),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer eng.Close(ctx)
	th, err := eng.NewThread("")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := th.Run(ctx, engine.AgentSpec{ID: "clerk"}, engine.Prompt("What time is it?")); err != nil {
		log.Fatal(err)
	}
	for _, m := range engine.Transcript.Get(th.Snapshot()).All() {
		fmt.Printf("%s %q\n", m.Role, m.Text)
	}
	// Output:
	// user "What time is it?"
	// assistant ""
	// tool "noon, by {\"zone\":\"UTC\"}"
	// assistant "It is noon."
}

// The servers that a spec names, with secrets from elsewhere.
func ExampleFromSpecs() {
	spec, err := engine.ParseSpec("clerk.json", []byte(`{"id": "clerk", "sections": {"mcp": {
	  "servers": {"search": {"url": "https://search.example/mcp", "headers_from": {"Authorization": "SEARCH_AUTH"}}}}}}`))
	if err != nil {
		log.Fatal(err)
	}
	_, err = mcp.FromSpecs(func(string) (string, bool) { return "", false }, spec)
	fmt.Println(err)
	servers, err := mcp.FromSpecs(func(name string) (string, bool) { return "Bearer from " + name, true }, spec)
	fmt.Println(servers[0].URL, servers[0].Header, err)
	// Output:
	// mcp: server "search": headers_from: the environment variable SEARCH_AUTH is not set
	// https://search.example/mcp map[Authorization:[Bearer from SEARCH_AUTH]] <nil>
}

// An agent is a tool of a server.
func ExampleNewAgent() {
	eng, err := engine.New(engine.Config{Model: enginetest.NewScript(enginetest.Say("Done."))})
	if err != nil {
		log.Fatal(err)
	}
	server, err := mcp.NewAgent(eng, engine.AgentSpec{ID: "clerk", Description: "Keeps the books"}, mcp.AgentOptions{})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	transport, err := dial(server)(ctx)
	if err != nil {
		log.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	res, err := client.CallTool(ctx, &sdk.CallToolParams{Name: "clerk", Arguments: map[string]string{"prompt": "Close the month"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Content[0].(*sdk.TextContent).Text)
	// Output:
	// Done.
}
