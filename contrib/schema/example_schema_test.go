package schema_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/contrib/schema"
	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/ddd26017/fixpoint/inference"
)

type booking struct {
	City   string `json:"city" description:"Where to stay."`
	Nights int    `json:"nights" minimum:"1" maximum:"30" default:"1"`
	Board  string `json:"board,omitempty" enum:"none,half,full"`
}

func Example() {
	book, err := schema.Tool(inference.ToolSpec{Name: "book", Description: "Book a room."},
		func(_ context.Context, b booking) (string, error) {
			return fmt.Sprintf("booked %d night in %s", b.Nights, b.City), nil
		})
	if err != nil {
		log.Fatal(err)
	}
	model := enginetest.NewScript(
		enginetest.Call("1", "book", inference.JSON(`{"nights": 0, "board": "all"}`)),
		enginetest.Call("2", "book", inference.JSON(`{"city": "Lisbon"}`)),
		enginetest.Say("You have a room."),
	)
	eng, err := engine.New(engine.Config{Model: model})
	if err != nil {
		log.Fatal(err)
	}
	input := engine.Prompt("A room in Lisbon, please.")
	input.Tools = []engine.Tool{book}
	if _, err := eng.Run(context.Background(), engine.AgentSpec{ID: "clerk"}, input); err != nil {
		log.Fatal(err)
	}
	for _, m := range model.Requests()[2].Messages {
		if m.Role == inference.RoleTool {
			fmt.Println(m.Result.Outcome, m.Result.Content)
		}
	}
	// Output:
	// error arguments of book: /board: is not one of "none", "half", "full", found a string of 3 characters; /city: is missing; /nights: is less than 1, found 0
	// ok booked 1 night in Lisbon
}

func ExampleFor() {
	text, err := schema.For[booking]()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
	// Output:
	// {"additionalProperties":false,"properties":{"board":{"enum":["none","half","full"],"type":"string"},"city":{"description":"Where to stay.","type":"string"},"nights":{"default":1,"maximum":30,"minimum":1,"type":"integer"}},"required":["city"],"type":"object"}
}
