package screening

import (
	"slices"
	"strings"
)

// rule is one kind of text to look for in a plain form.
type rule struct {
	name string
	// phrases are words in a row, each given as alternatives; a number is how many other
	// words may stand before the next, else none may. See phrase.
	phrases []string
	// literals are texts to look for as they are.
	literals []string
}

// Alternatives that several phrases have.
const (
	ignore  = "ignore|ignores|ignoring|disregard|disregarding|forget|forgetting "
	refuse  = "not|don't|never|stop follow|following|obey|obeying "
	earlier = "previous|previously|prior|earlier|above|preceding|foregoing|your|system|original|initial|developer|safety "
	orders  = "instruction|instructions|prompt|prompts|rule|rules|guideline|guidelines|direction|directions|directive|directives|training|policy|policies|programming|restriction|restrictions|guardrail|guardrails|order|orders|command|commands "
	// What one may well be told to ignore all of, such as the rules of a linter, is left out.
	every  = "all|any|every|past|existing "
	briefs = "instruction|instructions|guideline|guidelines|directive|directives|programming|guardrails|training "
	people = "user|users|human|humans|operator|owner|developer "
	reader = "ai|llm|llms|assistant|assistants|agent|agents|chatbot|chatbots|claude|chatgpt|gpt|gemini|copilot "
	say    = "reveal|print|show|repeat|output|display|leak|disclose|tell|write|recite|share "
)

// builtin are the rules, by name.
var builtin = []rule{
	{name: "ai-address", phrases: []string{
		"important|urgent|special|secret|hidden|critical instructions|instruction|message|note|notice 1 to|for 2 " + reader,
		"message|note|notice|instruction|instructions to 1 " + reader,
		"attention|dear 1 " + reader,
	}},
	{name: "conceal", phrases: []string{
		"not|don't|never|without tell|inform|mention|reveal|disclose|telling|informing|mentioning|revealing 3 " + people,
		"not|don't|never reveal|disclose this|these",
	}},
	{name: "exfiltrate", phrases: []string{
		"send|post|upload|forward|email|mail|transmit|exfiltrate|submit 6 " +
			"password|passwords|credential|credentials|secret|secrets|token|tokens|key|keys|cookies|env|rsa 6 to 1 http|https|url|webhook|@",
	}},
	{name: "new-instructions", phrases: []string{
		"your new|real|actual|true|only|updated instruction|instructions|task|tasks|goal|goals|objective|mission|orders",
		"new system|urgent instructions", "instead|now your 1 task|goal|objective|mission is",
	}},
	{name: "override", phrases: []string{
		ignore + "6 " + earlier + "3 " + orders, refuse + "6 " + earlier + "3 " + orders,
		"override|overrides|overriding|bypass|bypassing 3 your|safety 3 " + orders, // the first is a keyword of languages, too
		ignore + "6 " + every + "3 " + briefs, refuse + "6 " + every + "3 " + briefs,
		ignore + "3 " + orders + "3 above|before|previously", ignore + "3 " + orders + "1 you were|have|had|got|received",
		"ignore|disregard|forget everything|all|anything|what 4 above|before|previously|told|said",
	}},
	{name: "override-other-languages", phrases: []string{
		"ignoriere|ignorieren|ignorier|vergiss|vergessen|missachte|missachten 6 anweisung|anweisungen|regeln|vorgaben|befehle|instruktionen",
		"ignora|ignore|olvida|olvide 6 instrucciones|reglas|ordenes",
		"ignore|ignorez|oublie|oubliez 4 consignes|instructions|regles 2 precedentes|anterieures|dessus",
		"ignora|dimentica|ignori 6 istruzioni|regole", "ignore|esqueca 6 instrucoes|regras",
	}, literals: []string{
		"忽略之前的", "忽略以上", "忽略上述", "忽略所有", "忽略先前", "无视之前", "无视以上", "忘记之前", "以前の指示を無視", "上記の指示を無視", "이전 지시를 무시",
	}},
	{name: "prompt-leak", phrases: []string{
		say + "6 your 2 prompt|prompts",
		say + "6 your|the system|hidden|initial|original|secret|confidential|developer prompt|prompts|instructions",
	}},
	{name: "role-marker", literals: []string{
		"<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|system|>", "<|user|>", "<|assistant|>", "<|endoftext|>", "<|start_header_id|>",
		"<|end_header_id|>", "<|eot_id|>", "<|begin_of_text|>", "[inst]", "[/inst]", "<<sys>>", "<</sys>>", "<system>", "</system>",
		"<system-reminder>", "</system-reminder>", "<system_prompt>", "</system_prompt>", "<assistant>", "</assistant>", "<developer>", "</developer>",
		"## system:", "## system prompt:", "## new instructions:",
	}},
	{name: "role-play", phrases: []string{
		"you are now|henceforth a|an|the|in|my 3 ai|assistant|agent|model|bot|persona|character|unrestricted|unfiltered|uncensored|jailbroken|hacker|dan",
		"you are no longer 1 bound|restricted|limited|required|subject", "from now on you will|must|should|shall|are",
		"from now on act|behave|respond|answer|obey", "pretend you", "pretend that you", "act|behave|respond as if you",
		"act|behave|respond as a|an unrestricted|unfiltered|uncensored|jailbroken", "enable|enter|activate god|dan|jailbreak mode",
	}},
}

// hidden is the rule about text in characters of Unicode tags, which nothing shows.
const hidden = "hidden-text"

// Rules returns the names of the built-in rules, sorted, as the section's "without"
// takes them.
func Rules() []string {
	names := []string{hidden}
	for _, r := range builtin {
		names = append(names, r.name)
	}
	slices.Sort(names)
	return names
}

// hiddenText returns the text in such characters, as ASCII.
func hiddenText(text string) string {
	// A flag of a region is written with up to this many of them, of which the last ends it.
	const flag, most, last = '\U0001F3F4', 7, 0x7f
	var b strings.Builder
	before, row := rune(0), []rune(nil)
	end := func(next rune) {
		if before != flag || len(row) > most || len(row) > 0 && row[len(row)-1] != last {
			b.WriteString(string(row))
		}
		before, row = next, row[:0]
	}
	const lead = "\xf3\xa0" // of all characters from U+E0000 to U+E0FFF
	at := strings.Index(text, lead)
	if at < 0 {
		return ""
	}
	for _, r := range text[max(at-len(string(flag)), 0):] {
		if r >= 0xe0000 && r <= 0xe007f {
			row = append(row, r-0xe0000)
		} else {
			end(r)
		}
	}
	end(0)
	return b.String()
}
