// Package models makes the models that agent specs name.
//
// A model's id is "PROVIDER:MODEL", such as "openai:gpt-5.2": what comes before the first
// colon is one of the providers that Names lists, or a service that the section
// "providers" of a spec describes, and the rest is the model's name there. "script:FILE"
// is a file of answers.
//
//	"providers": {"local": {"protocol": "openai", "endpoint": "http://localhost:8000/v1", "key_from": "LOCAL_KEY"}},
//	"resilience": {"attempts": 3, "timeouts": {"stall": "1m"}, "fallback": ["local:llama"]}
//
// A spec never holds a key, but the name of the environment variable that has it. The key
// of a provider's own variable goes to the provider's own endpoint, or to the one that the
// environment names, and never to one that a spec names.
//
// The section "resilience" says what is done about failures; without it a real model has
// its defaults, and a scripted one nothing. All agents of a file whose section is there
// must say the same of one provider, and of one model.
package models
