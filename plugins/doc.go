// Package plugins finds plugins by name. A program owns a Registry, says what it
// has and where each comes from, and lets a file, a flag or a person choose:
//
//	reg, err := plugins.NewRegistry(
//		plugins.Entry{Name: audit.Name, Source: plugins.BuiltIn, New: plugins.Plain(newAudit)},
//		plugins.Entry{Name: "tickets", Source: plugins.Module("example.com/tickets"), New: plugins.Typed(newTickets)},
//	)
//	loaded, err := reg.Load(ctx, plugins.Selection{Names: names, Allow: []string{"audit", "tick*"}})
//	...
//	eng, err := engine.New(engine.Config{Plugins: loaded})
//
// There is no list that plugins put themselves on: nothing is loaded, and no code
// of a plugin runs, unless the program has an entry for it, the allowlist lets its
// name through and somebody asked for it. A name that is not allowed is an error
// and not a plugin less, since the one that is left out may be the one that guards
// the rest.
//
// A failed load leaves nothing behind: what had been made is closed again. A loaded
// plugin tells where it is from, by a method Source, for the engine's manifest.
//
// The plugins of this project are in the directories below this one.
package plugins
