package plugins_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/plugins"
)

func Example() {
	ctx := context.Background()
	type limits struct {
		Calls int `json:"calls"`
	}
	reg, err := plugins.NewRegistry(
		plugins.Entry{Name: "quota", Source: plugins.BuiltIn, Description: "counts calls",
			New: plugins.Typed(func(_ context.Context, l limits) (engine.Plugin, error) {
				fmt.Println("quota of", l.Calls)
				return engine.NewPlugin("quota", func(*engine.Registrar) error { return nil }), nil
			})},
		plugins.Entry{Name: "shell", Source: plugins.Module("example.com/shell"), Description: "runs commands",
			New: plugins.Plain(func() engine.Plugin { panic("nobody may load it") })},
	)
	if err != nil {
		log.Fatal(err)
	}
	allowed := []string{"quota"}
	_, err = reg.Load(ctx, plugins.Selection{Names: []string{"quota", "shell"}, Allow: allowed})
	fmt.Println(err)

	loaded, err := reg.Load(ctx, plugins.Selection{Names: []string{"quota"}, Allow: allowed,
		Settings: map[string]inference.JSON{"quota": `{"calls": 3}`}})
	if err != nil {
		log.Fatal(err)
	}
	eng, err := engine.New(engine.Config{Plugins: loaded})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(eng.Describe().Plugins[0].Name)
	// Output:
	// plugins: plugin "shell" (example.com/shell): it is not on the allowlist
	// quota of 3
	// quota
}
